"""What is compiled here: reading adjacency dictionaries where they lie, and queue order.

A NetworkX graph is a dictionary of dictionaries.  To walk through it as Python does costs 90 ns an
edge, mostly waiting for memory, half of what NetworkX needs for a whole search; so no algorithm
could pay for its own conversion.  The kernels below read the dictionaries in place and ask for
memory ahead of time: 10 ns an edge (bench/networkx_backend/conversion.py).

They rely on the layout of CPython's dictionaries, the same from 3.11 to 3.14:

    dict            16 used   32 keys   (bytes from the object's address)
    keys             9 log2 of the size of the index table   10 kind   24 entries   32 index table
    entry           hash, key, value; kind 1, where every key is a string: key, value
    str             24 hash
    float           16 value
    int             16 number of digits, negative for negative numbers; from 3.12 on eight times
                    that, plus 2 for negative numbers and 1 for zero        24 first digit, 30 bits
    any object       8 type

An entry without a value was deleted.  reading.py decides whether this may be used, and tests it
once against plain Python.  The kernels hold the interpreter lock, so nobody changes a dictionary
meanwhile.  They look at no key but through its hash: a neighbour equals one of the nodes, and what
is equal has the same hash, so where the nodes' hashes differ the hash says which node it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from matchwood.teams import device, interrupted, kernel

AHEAD = 8  # rows; each stage of reading asks for memory that the next needs so many rows later
OTHER_LAYOUT = -1  # not a plain dictionary, or of a kind that is not read here


def _loading(kind: Any, bits: int) -> Any:
    """An intrinsic that loads a number from an address; an unsigned byte becomes an int64."""

    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.DoubleType() if kind is types.float64 else ir.IntType(bits)
            loaded = builder.load(builder.inttoptr(args[0], word.as_pointer()))
            return builder.zext(loaded, ir.IntType(64)) if bits < 64 else loaded

        return kind(types.int64), codegen

    return intrinsic(load)


load_word = _loading(types.int64, 64)
load_byte = _loading(types.int64, 8)
load_float = _loading(types.float64, 64)


def _of_python(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's stable C interface; objects are addresses."""
    return types.ExternalFunction(name, result(*arguments))


one_more = _of_python("Py_IncRef", types.void, types.intp)
one_less = _of_python("Py_DecRef", types.void, types.intp)
list_item = _of_python("PyList_GetItem", types.intp, types.intp, types.intp)
set_list_item = _of_python("PyList_SetItem", types.intc, types.intp, types.intp, types.intp)
copy_dict = _of_python("PyDict_Copy", types.intp, types.intp)
set_dict_item = _of_python("PyDict_SetItem", types.intc, types.intp, types.intp, types.intp)
clear_error = _of_python("PyErr_Clear", types.void)


@intrinsic
def touch(typingctx: Any, address: Any) -> Any:
    """Ask for the memory at an address, which need not be valid."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        place = builder.inttoptr(args[0], pointer)
        builder.call(prefetch, [place, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@device
def _first_entry(keys: int) -> int:
    return keys + 32 + (1 << load_byte(keys + 9))


def _holding_the_lock(function: Any) -> Any:
    """A kernel that keeps the interpreter lock, as it reads what Python code may change."""
    dispatcher = kernel(function)
    dispatcher.targetoptions["nogil"] = False
    return dispatcher


@_holding_the_lock
def read_nodes(outer: int, int_type: int, rows: Any, hashes: Any) -> int:
    """Hash of each key of a dictionary, and address of its value.

    Returns 1 when all keys are plain integers, else 0.
    """
    keys = load_word(outer + 32)
    kind, count, entry = load_byte(keys + 10), load_word(keys + 24), _first_entry(keys)
    if load_word(outer + 16) != rows.size or kind > 1:
        return OTHER_LAYOUT
    size = 16 if kind == 1 else 24
    integers, k = 1, 0
    for i in range(count):
        if i + 2 * AHEAD < count:
            touch(load_word(entry + 2 * AHEAD * size + size - 16))
        value = load_word(entry + size - 8)
        if value != 0:
            key = load_word(entry + size - 16)
            if k == rows.size:
                return OTHER_LAYOUT
            rows[k] = value
            hashes[k] = load_word(key + 24) if kind == 1 else load_word(entry)
            if load_word(key + 8) != int_type:
                integers = 0
            k += 1
        entry += size
    return integers if k == rows.size else OTHER_LAYOUT


@_holding_the_lock
def count_rows(rows: Any, dict_type: int, indptr: Any) -> int:
    """Replace the addresses of dictionaries by those of their keys; indptr from their lengths."""
    n, total = rows.size, 0
    indptr[0] = 0
    for i in range(n):
        if i + 2 * AHEAD < n:
            touch(rows[i + 2 * AHEAD])
            touch(rows[i + 2 * AHEAD] + 40)
        if load_word(rows[i] + 8) != dict_type:
            return OTHER_LAYOUT
        total += load_word(rows[i] + 16)
        rows[i] = load_word(rows[i] + 32)
        indptr[i + 1] = total
    return total


@_holding_the_lock
def read_rows(rows: Any, indptr: Any, bound: int, hashes: Any) -> int:
    """Hash of every neighbour, row by row.  `rows` holds the addresses of the rows' keys.

    With a `bound` above 0 the hashes must lie within 0 .. bound - 1.  Three rows are on their way
    at any time: one whose table is asked for, one whose strings are, one that is read.
    """
    n = rows.size
    for i in range(n + 2 * AHEAD):
        if i < n:
            keys = rows[i]
            for line in range(0, 24 * (indptr[i + 1] - indptr[i]) + 96, 64):
                touch(keys + line)
        if AHEAD <= i < n + AHEAD:
            keys = rows[i - AHEAD]
            if load_byte(keys + 10) == 1:
                entry = _first_entry(keys)
                for _ in range(load_word(keys + 24)):
                    touch(load_word(entry) + 24)
                    entry += 16
        j = i - 2 * AHEAD
        if j >= 0:
            keys, k, end = rows[j], indptr[j], indptr[j + 1]
            kind, count, entry = load_byte(keys + 10), load_word(keys + 24), _first_entry(keys)
            if kind > 1:
                return OTHER_LAYOUT
            size = 16 if kind == 1 else 24
            for _ in range(count):
                if load_word(entry + size - 8) != 0:
                    if k == end:
                        return OTHER_LAYOUT
                    value = load_word(load_word(entry) + 24) if kind == 1 else load_word(entry)
                    if bound > 0 and not 0 <= value < bound:
                        return OTHER_LAYOUT
                    hashes[k] = value
                    k += 1
                entry += size
            if k != end:
                return OTHER_LAYOUT
    return 0


@_holding_the_lock
def read_cells(rows: Any, indptr: Any, indices: Any, half: bool, cells: Any) -> int:
    """Address of the value of every entry; with `half`, of those at or right of the diagonal.

    `indices` must have been read from the same rows.
    """
    n, place = rows.size, 0
    for i in range(n + AHEAD):
        if i < n:
            for line in range(0, 24 * (indptr[i + 1] - indptr[i]) + 96, 64):
                touch(rows[i] + line)
        j = i - AHEAD
        if j >= 0:
            keys, k, end = rows[j], indptr[j], indptr[j + 1]
            kind, count, entry = load_byte(keys + 10), load_word(keys + 24), _first_entry(keys)
            if kind > 1:
                return OTHER_LAYOUT
            size = 16 if kind == 1 else 24
            for _ in range(count):
                value = load_word(entry + size - 8)
                if value != 0:
                    if k == end:
                        return OTHER_LAYOUT
                    if not half or indices[k] >= j:
                        if place == cells.size:
                            return OTHER_LAYOUT
                        cells[place] = value
                        place += 1
                    k += 1
                entry += size
            if k != end:
                return OTHER_LAYOUT
    return 0 if place == cells.size else OTHER_LAYOUT


@device
def _attribute(cell: int, name: int, name_hash: int) -> int:
    """Address of a dictionary's value under a name; 0 where it is missing, -1 where in doubt."""
    keys = load_word(cell + 32)
    kind, count, entry = load_byte(keys + 10), load_word(keys + 24), _first_entry(keys)
    if kind > 1:
        return OTHER_LAYOUT
    size = 16 if kind == 1 else 24
    for _ in range(count):
        value = load_word(entry + size - 8)
        if value != 0:
            key = load_word(entry + size - 16)
            if key == name:
                return value
            if (load_word(key + 24) if kind == 1 else load_word(entry)) == name_hash:
                return OTHER_LAYOUT  # perhaps an equal name
        entry += size
    return 0


@_holding_the_lock
def read_attribute(
    cells: Any, name: int, name_hash: int, kinds: Any, tagged: bool, missing: float, found: Any
) -> int:
    """A number out of each dictionary: a float, or an integer of one digit.

    `cells` holds the addresses of the dictionaries, and is overwritten; `kinds` those of dict,
    float and int; `tagged` says how integers are stored.  Four dictionaries are on their way at
    a time: one asked for, one whose table is, one whose value is, one that is read.
    """
    m = cells.size
    for i in range(m + 3 * AHEAD):
        if i < m:
            touch(cells[i] + 32)
        k = i - AHEAD
        if 0 <= k < m:
            if load_word(cells[k] + 8) != kinds[0]:
                return OTHER_LAYOUT
            touch(load_word(cells[k] + 32))
        k = i - 2 * AHEAD
        if 0 <= k < m:
            cells[k] = _attribute(cells[k], name, name_hash)
            if cells[k] < 0:
                return OTHER_LAYOUT
            touch(cells[k] + 16)
        k = i - 3 * AHEAD
        if k >= 0:
            value = cells[k]
            if value == 0:
                found[k] = missing
            elif load_word(value + 8) == kinds[1]:
                found[k] = load_float(value + 16)
            elif load_word(value + 8) == kinds[2]:
                size, digit = load_word(value + 16), load_word(value + 24) & 0x3FFFFFFF
                if tagged:
                    sign = 1 - (size & 3)
                    size = size >> 3
                else:
                    sign = -1 if size < 0 else 1
                    size = abs(size)
                if size > 1:
                    return OTHER_LAYOUT
                found[k] = 0 if size == 0 else sign * digit
            else:
                return OTHER_LAYOUT
    return 0


# From addresses to objects, and new dictionaries: Python's own C functions, called with the lock.


@_holding_the_lock
def gather(
    outer: int,
    kinds: Any,
    indptr: Any,
    indices: Any,
    half: bool,
    cells: Any,
    chosen: Any,
    found: int,
) -> int:
    """Put the values of chosen entries into a list, which has room for them.

    In one go from the dictionaries to references, so that nobody can change anything between.
    `cells` has room for all entries, and for `rows` and `indptr` after them.
    """
    n = indptr.size - 1
    m = cells.size - 3 * n - 1
    rows, ends, hashes = cells[m : m + n], cells[m + n : m + 2 * n + 1], cells[m + 2 * n + 1 :]
    if read_nodes(outer, kinds[2], rows, hashes) < 0 or count_rows(rows, kinds[0], ends) < 0:
        return OTHER_LAYOUT
    for i in range(n + 1):
        if ends[i] != indptr[i]:
            return OTHER_LAYOUT
    if read_cells(rows, indptr, indices, half, cells[:m]) < 0:
        return OTHER_LAYOUT
    for i in range(chosen.size):
        if i + 2 * AHEAD < chosen.size:
            touch(cells[chosen[i + 2 * AHEAD]])
        one_more(cells[chosen[i]])
        set_list_item(found, i, cells[chosen[i]])
    return 0


@_holding_the_lock
def join(rows: int, nodes: int, data: int, dict_type: int, u: Any, v: Any) -> int:
    """rows[u][nodes[v]] = rows[v][nodes[u]] = data.copy() for every edge; all three are lists.

    Returns how many were done: fewer than all when Python raised something.
    """
    for i in range(u.size):
        if i + 4 * AHEAD < u.size:
            touch(list_item(data, i + 4 * AHEAD) + 32)
            touch(list_item(rows, u[i + 4 * AHEAD]) + 16)
            touch(list_item(rows, v[i + 4 * AHEAD]) + 16)
            touch(list_item(nodes, u[i + 4 * AHEAD]))
            touch(list_item(nodes, v[i + 4 * AHEAD]))
            touch(load_word(list_item(data, i + 2 * AHEAD) + 32))
            coming = list_item(data, i + AHEAD)
            if load_word(coming + 8) == dict_type and load_word(coming + 16) > 0:
                first = _first_entry(load_word(coming + 32))
                touch(load_word(first))
                touch(load_word(first + 8))
        copy = copy_dict(list_item(data, i))
        if copy == 0:
            clear_error()
            return i
        a = set_dict_item(list_item(rows, u[i]), list_item(nodes, v[i]), copy)
        b = set_dict_item(list_item(rows, v[i]), list_item(nodes, u[i]), copy)
        one_less(copy)
        if a != 0 or b != 0:
            clear_error()
            return i
    return u.size


@kernel
def upper(team: Any, indptr: Any, indices: Any, u: Any, v: Any, count: Any) -> None:
    """The entries at or right of the diagonal, row by row; `u` and `v` have room for all."""
    place = 0
    for i in range(indptr.size - 1):
        if interrupted(team, i):
            return
        row = indices[indptr[i] : indptr[i + 1]]
        for k in range(row.size):
            u[place] = i
            v[place] = row[k]
            place += row[k] >= i
    count[0] = place


# From hashes to numbers.  `slots` has a power of two of places, at least twice as many as nodes.


@device
def _slot(value: int, slots: Any) -> int:
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(slots.size - 1))


@kernel
def enter(hashes: Any, slots: Any) -> int:
    """Put every node into the table; `slots` comes filled with -1.  0 when two hashes are equal."""
    for v in range(hashes.size):
        s = _slot(hashes[v], slots)
        while slots[s] >= 0:
            if hashes[slots[s]] == hashes[v]:
                return 0
            s = (s + 1) & (slots.size - 1)
        slots[s] = v
    return 1


@kernel
def look_up(team: Any, wanted: Any, hashes: Any, slots: Any, found: Any) -> None:
    """Number of the node that has each of the wanted hashes, -1 where there is none."""
    each = (wanted.size + team.size - 1) // team.size
    lo, hi = min(team.rank * each, wanted.size), min((team.rank + 1) * each, wanted.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        s = _slot(wanted[k], slots)
        while slots[s] >= 0 and hashes[slots[s]] != wanted[k]:
            s = (s + 1) & (slots.size - 1)
        found[k] = slots[s]


@kernel
def queue_order(
    team: Any, indptr: Any, indices: Any, order: Any, parent: Any, layers: Any, limit: int
) -> None:
    """Breadth-first search in the order of a queue that looks at each row from its beginning.

    Serial: the order is that of the queue.  `order` begins with the sources, layers[0] of them,
    for which `parent` is already set to themselves; elsewhere it is -1.  layers[d] becomes the
    number of vertices at most d arcs away, layers[-1] the number of layers.
    """
    begin, end, depth = 0, layers[0], 0
    while begin < end and depth < limit:
        last = end
        for i in range(begin, last):
            if interrupted(team, i):
                return
            u = order[i]
            row = indices[indptr[u] : indptr[u + 1]]
            for k in range(row.size):
                v = row[k]
                if parent[v] < 0:
                    parent[v] = u
                    order[end] = v
                    end += 1
        begin = last
        depth += 1
        layers[depth] = end
    if begin == end and depth > 0:  # the last layer was empty
        depth -= 1
    layers[layers.size - 1] = depth + 1
