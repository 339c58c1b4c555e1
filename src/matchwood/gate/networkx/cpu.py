"""Reading a graph of dictionaries by compiled code.

`read_rows` goes through the dictionaries as __init__.py does, by functions of Python's stable C
interface, two to seven times as fast (bench/networkx_backend/conversion.py).  Objects are
addresses, which is safe because

- it holds the interpreter lock from its first line to its last, and nothing that it calls releases
  the lock or runs code written in Python.  So the graph stays as it is, and what its dictionaries
  hold stays alive;
- objects are read by functions of their type alone, never by their memory;
- what is kept afterwards is in lists, which count their references.

A graph for which that is not enough is OTHER, and is left to __init__.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, device, kernel
from matchwood.engines.cpu.compiled import external
from matchwood.engines.cpu.hints import prefetch

# What `read_rows` returns: the nodes are 0, 1, 2, ..., or plain (see `_is_plain`), or of any kind;
# or the graph was not read.
NUMBERED, PLAIN, ANY, OTHER = range(4)
DICT, TUPLE, STR, INT = range(4)  # places in `kinds`, addresses of types; plain ones from STR on
AHEAD = 8  # rows and edges between the one that is read and the one that is prefetched
BATCH = 32  # neighbours that are looked up side by side, so that they wait for memory together


_next_item = external("PyDict_Next", "intc", "intp", "intp", "intp", "intp")
_append = external("PyList_Append", "intc", "intp", "intp")
_new_type = external("PyObject_Type", "intp", "intp")
_give_back = external("Py_DecRef", "void", "intp")
_hash = external("PyObject_Hash", "intp", "intp")
_compare = external("PyObject_RichCompareBool", "intc", "intp", "intp", "intc")
_to_number = external("PyLong_AsLongLongAndOverflow", "int64", "intp", "intp")
_tuple_size = external("PyTuple_Size", "intp", "intp")
_tuple_item = external("PyTuple_GetItem", "intp", "intp", "intp")
_clear_error = external("PyErr_Clear", "void")
EQUAL = 2  # Py_EQ


class Work(NamedTuple):
    """Memory for a graph of n nodes and nnz neighbours."""

    kinds: Any  # set by the caller
    item: Any  # (4,) position, key and value of `_next_item`; the last is written and not read
    nodes: Any  # (n,)
    rows: Any  # (n,)
    neighbours: Any  # (nnz,)
    data: Any  # (nnz,) or empty, where no attribute is wanted
    places: Any  # (nnz,) of entries that still have to be looked at
    hashes: Any  # (BATCH,)
    # At least 2 n pairs, a power of two: an address or a hash, and the node's number + 1.  Zeros.
    by_address: Any
    by_hash: Any


@device
def _type(thing: int) -> int:
    kind = _new_type(thing)
    _give_back(kind)  # the object still has its own
    return kind


@device
def _of_plain_type(kind: int, kinds: Any) -> bool:
    found = False
    for k in range(STR, kinds.size):
        found = found or kinds[k] == kind
    return found


@device
def _is_plain(thing: int, kinds: Any) -> bool:
    """Whether it is a number, a text or a tuple of these: its hash then runs no Python code."""
    kind = _type(thing)
    if kind != kinds[TUPLE]:
        return _of_plain_type(kind, kinds)
    for k in range(_tuple_size(thing)):
        if not _of_plain_type(_type(_tuple_item(thing, k)), kinds):
            return False
    return True


@device
def _number(thing: int, work: Work) -> int:
    """The value of an int between 0 and n; else -1."""
    if _type(thing) != work.kinds[INT]:
        return -1
    number = _to_number(thing, work.item.ctypes.data + 24)
    return number if 0 <= number < work.nodes.size else -1


@device
def _ask_for(item: Any, thing: int) -> None:
    """Prefetch 64 bytes at an address, given to `prefetch` as an index into `item`."""
    first = (thing - item.ctypes.data) >> 3
    prefetch(item, np.uint64(first))
    prefetch(item, np.uint64(first + 7))


@device
def _slot(table: Any, key: int) -> int:
    """Where the search for a key begins."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(24)) & np.uint64(table.shape[0] - 1))


@device
def _enter(table: Any, key: int, number: int) -> None:
    slot = _slot(table, key)
    while table[slot, 1] != 0:
        slot = (slot + 1) & (table.shape[0] - 1)
    table[slot, 0], table[slot, 1] = key, number + 1


@device
def _same(table: Any, thing: int) -> int:
    """The number of the node that is this object; -1 where none is."""
    slot = _slot(table, thing)
    while table[slot, 1] != 0 and table[slot, 0] != thing:
        slot = (slot + 1) & (table.shape[0] - 1)
    return table[slot, 1] - 1


@device
def _equal(thing: int, key: int, work: Work) -> int:
    """The number of the node that equals this object, whose hash is `key`; -1 where none does."""
    table = work.by_hash
    slot = _slot(table, key)
    while table[slot, 1] != 0:
        if table[slot, 0] == key:
            answer = _compare(thing, work.nodes[table[slot, 1] - 1], EQUAL)
            if answer != 0:  # yes, or an error
                return table[slot, 1] - 1 if answer == 1 else -1
        slot = (slot + 1) & (table.shape[0] - 1)
    return -1


@device
def _walk(adjacency: int, nodes: int, work: Work, indptr: Any) -> bool:
    """Read nodes, rows and what is in them.  False if their numbers are not the expected ones."""
    item, k, n = work.item, 0, 0
    at = item.ctypes.data
    item[0] = 0
    while _next_item(adjacency, at, at + 8, at + 16) != 0:
        if n == work.rows.size or _type(item[2]) != work.kinds[DICT]:
            return False
        work.nodes[n], work.rows[n] = item[1], item[2]
        if _append(nodes, item[1]) != 0:
            return False
        n += 1
    for i in range(n):
        if i + AHEAD < n:
            _ask_for(item, work.rows[i + AHEAD])
        item[0] = 0
        while _next_item(work.rows[i], at, at + 8, at + 16) != 0:
            if k == work.neighbours.size:
                return False
            work.neighbours[k] = item[1]
            if work.data.size != 0:
                work.data[k] = item[2]
            k += 1
        indptr[i + 1] = k
    return n == work.rows.size and k == work.neighbours.size


@device
def _find(work: Work, indices: Any) -> int:
    """Number the neighbours.  Most often one is the same object as the node."""
    nodes, neighbours, count = work.nodes, work.neighbours, 0
    kind = NUMBERED
    for i in range(nodes.size):
        if kind == NUMBERED and _number(nodes[i], work) != i:
            kind = PLAIN
        if kind == PLAIN and not _is_plain(nodes[i], work.kinds):
            kind = ANY
        _enter(work.by_address, nodes[i], i)
    for k in range(neighbours.size):
        indices[k] = _same(work.by_address, neighbours[k])
        if indices[k] < 0 and kind == NUMBERED:
            indices[k] = _number(neighbours[k], work)
        if indices[k] < 0:
            work.places[count] = k
            count += 1
    if count != 0 and not (kind <= PLAIN and _look_up(work, work.places[:count], indices)):
        return OTHER
    return kind


@device
def _look_up(work: Work, places: Any, indices: Any) -> bool:
    """Number neighbours that equal a node but are other objects; all nodes are plain."""
    table = work.by_hash
    for i in range(work.nodes.size):
        _enter(table, _hash(work.nodes[i]), i)
    for start in range(0, places.size, BATCH):
        batch = places[start : min(start + BATCH, places.size)]
        for j in range(batch.size):
            _ask_for(work.item, work.neighbours[batch[j]])
        for j in range(batch.size):
            thing = work.neighbours[batch[j]]
            if not _is_plain(thing, work.kinds):
                return False
            work.hashes[j] = _hash(thing)
            prefetch(table, np.uint64(2 * _slot(table, work.hashes[j])))
        for j in range(batch.size):
            number = table[_slot(table, work.hashes[j]), 1]
            if number != 0:
                _ask_for(work.item, work.nodes[number - 1])
        for j in range(batch.size):
            number = _equal(work.neighbours[batch[j]], work.hashes[j], work)
            if number < 0:
                return False
            indices[batch[j]] = number
    return True


@device
def _value(data: int, name: int, one: int, work: Work) -> int:
    """The value of that name, `one` where there is none; 0 for what is OTHER.

    Not looked up by its hash: that may call a method of another key.
    """
    item = work.item
    at = item.ctypes.data
    if _type(data) != work.kinds[DICT]:
        return 0
    item[0] = 0
    while _next_item(data, at, at + 8, at + 16) != 0:
        if item[1] == name:
            return item[2]
        if _type(item[1]) != work.kinds[STR]:
            return 0
        answer = _compare(item[1], name, EQUAL)
        if answer != 0:
            return item[2] if answer == 1 else 0
    return one


@device
def _append_values(
    name: int, one: int, directed: bool, values: int, work: Work, indptr: Any, indices: Any
) -> bool:
    """Append that attribute of every edge; of an undirected one at the node of smaller number."""
    places, count = work.places, 0
    for i in range(work.nodes.size):
        for k in range(indptr[i], indptr[i + 1]):
            if directed or i <= indices[k]:
                places[count] = k
                count += 1
    for j in range(count):
        if j + AHEAD < count:
            _ask_for(work.item, work.data[places[j + AHEAD]])
        value = _value(work.data[places[j]], name, one, work)
        if value == 0 or _append(values, value) != 0:
            return False
    return True


@device
def _append_items(attributes: int, pairs: int, work: Work) -> bool:
    """Key, value, key, value, ... of a dictionary."""
    at = work.item.ctypes.data
    work.item[0] = 0
    while _next_item(attributes, at, at + 8, at + 16) != 0:
        if _append(pairs, work.item[1]) != 0 or _append(pairs, work.item[2]) != 0:
            return False
    return True


@kernel
def read_rows(
    team: Team, adjacency: int, attributes: int, name: int, one: int, directed: bool,
    nodes: int, pairs: int, values: int, work: Work, indptr: Any, indices: Any,
) -> int:  # fmt: skip
    """The graph as it is now: nodes, neighbours, attributes and, unless 0, one of every edge.

    Serial.  `adjacency` and `attributes` are dicts, `name` a str, `one` the value where there is
    none of that name; `nodes`, `pairs` and `values` are empty lists to fill, `indptr` is zero.  The
    caller holds references to all of them.
    """
    done = _append_items(attributes, pairs, work) and _walk(adjacency, nodes, work, indptr)
    said = _find(work, indices) if done else OTHER
    if said != OTHER and name != 0:
        done = _append_values(name, one, directed, values, work, indptr, indices)
        said = said if done else OTHER
    if said == OTHER:
        _clear_error()  # of a list without memory, say; __init__.py will raise it again
    return said
