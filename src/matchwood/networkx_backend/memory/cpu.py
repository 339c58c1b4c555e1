"""What is compiled here: reading adjacency dictionaries where they lie.

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
    list            16 length   24 address of the items
    any object       8 type

An entry without a value was deleted.  layout.py decides whether this may be used, and tests it
once against plain Python.  Keys are known by their hash: a neighbour equals one of the nodes, and
what is equal has the same hash, so where the nodes' hashes differ the hash says which node it is.

Another thread may change the graph whenever it gets the interpreter lock.  So

- a kernel holds the lock from its first line to its last, and calls nothing that gives it away
  (`join` does, and works on lists that nobody else has);
- addresses of what belongs to the graph live inside one call: every kernel starts at the outermost
  dictionary, which its caller keeps alive, and comes from there to all that it reads;
- what an earlier call has found is compared, not believed: the nodes by identity (the list keeps
  them alive, so no address is used twice), the rows by their lengths.  A difference is CHANGED.

Ctrl-C is noticed without giving the lock away: the kernel looks whether a signal waits, returns
INTERRUPTED, and Python's own loop then calls the handler.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from matchwood.networkx_backend.memory.cpu_memory import (
    clear_error,
    copy_dict,
    decrement_references,
    holding_the_lock,
    increment_references,
    list_item,
    load_byte,
    load_float,
    load_word,
    prefetch,
    set_dict_item,
    set_list_item,
    signal_waits,
)
from matchwood.teams import device

AHEAD = 8  # rows; each stage of reading prefetches what the next stage needs so many rows later
OTHER_LAYOUT = -1  # not a plain dictionary, or of a kind that is not read here
CHANGED = -2  # the graph is not what an earlier call has seen
INTERRUPTED = -3  # a signal waits to be handled
STEPS_PER_LOOK = 1 << 14  # rows or edges between two looks whether Ctrl-C was pressed
SAMPLE = 1000  # rows whose lengths tell how many entries there may be
STRINGS = 1  # kind of a table in which every key is a string
STRING_ENTRY = 16  # bytes of an entry there: its hash is left out

DICT, FLOAT, INT, TAGGED = 0, 1, 2, 3  # places in `kinds`: three types, and how integers are stored


class Source(NamedTuple):
    """Where a graph lies."""

    outer: int  # address of the outermost dictionary
    nodes: int  # address of the list of its keys
    kinds: Any  # addresses of the types `dict`, `float`, `int`; then 1 where integers are tagged
    rows: Any  # (n,) workspace


class Known(NamedTuple):
    """What an earlier call has found in a graph, and which of its entries are wanted now."""

    indptr: Any
    indices: Any
    numbered: bool  # the nodes are 0, 1, 2, ...: neighbours are compared with `indices`
    half: bool  # only entries at or right of the diagonal
    cells: Any  # workspace, a word for each entry that is wanted


@device
def _first_entry(keys: int) -> int:
    return keys + 32 + (1 << load_byte(keys + 9))


@device
def _entries(keys: int) -> Any:
    """(address of the first entry, number of entries, bytes of an entry) of a table of keys.

    Deleted entries count.  The number of bytes is 0 where the table is of a kind not read here.
    """
    kind = load_byte(keys + 10)
    size = STRING_ENTRY if kind == STRINGS else 24
    return _first_entry(keys), load_word(keys + 24), size if kind <= STRINGS else 0


@device
def _hash(entry: int, size: int) -> int:
    """The hash of an entry's key: stored in the entry, or in the string that is the key."""
    return load_word(load_word(entry) + 24) if size == STRING_ENTRY else load_word(entry)


@device
def _items(nodes: int, n: int) -> int:
    """Where the items of a list lie; 0 where there are not so many."""
    return load_word(nodes + 24) if load_word(nodes + 16) == n else 0


@device
def _open(source: Source) -> int:
    """Addresses of the values of the outermost dictionary, whose keys are those of the list."""
    outer, rows = source.outer, source.rows
    items = _items(source.nodes, rows.size)
    entry, count, size = _entries(load_word(outer + 32))
    if size == 0:
        return OTHER_LAYOUT
    if load_word(outer + 16) != rows.size or items == 0:
        return CHANGED if rows.size > 0 or load_word(outer + 16) > 0 else 0
    k = 0
    for _ in range(count):
        value = load_word(entry + size - 8)
        if value != 0:
            if k == rows.size or load_word(entry + size - 16) != load_word(items + 8 * k):
                return CHANGED
            rows[k] = value
            k += 1
        entry += size
    return 0 if k == rows.size else CHANGED


@device
def _is_short(number: int, tagged: int) -> bool:
    """An integer of at most two digits, below 2**60: its hash is itself."""
    size = load_word(number + 16)
    return abs(size) <= 2 if tagged == 0 else (size >> 3) <= 2


@holding_the_lock
def survey(source: Source, hashes: Any) -> int:
    """Hash of every node.  Returns 1 where the nodes are 0, 1, 2, ..., else 0.

    In hashes[n] is a guess at the number of entries, from a few rows.
    """
    code = _open(source)
    if code < 0:
        return code
    kinds, rows = source.kinds, source.rows
    n, numbered, items = rows.size, 1, load_word(source.nodes + 24)
    entry, _, size = _entries(load_word(source.outer + 32))
    for i in range(n):
        if i % STEPS_PER_LOOK == 0 and signal_waits():
            return INTERRUPTED
        if i + 2 * AHEAD < n:
            prefetch(load_word(items + 8 * (i + 2 * AHEAD)) + 16)
        while load_word(entry + size - 8) == 0:
            entry += size
        key = load_word(items + 8 * i)
        hashes[i] = _hash(entry, size)
        entry += size
        if numbered != 0 and (
            hashes[i] != i or load_word(key + 8) != kinds[INT] or not _is_short(key, kinds[TAGGED])
        ):
            numbered = 0
    step = n // SAMPLE + 1
    looked = total = 0
    for i in range(0, n, step):
        if load_word(rows[i] + 8) != kinds[DICT]:
            return OTHER_LAYOUT
        total += load_word(rows[i] + 16)
        looked += 1
    hashes[n] = total * n // max(looked, 1)
    return numbered


@device
def _prefetch_table(rows: Any, i: int, dict_type: int) -> int:
    """Replace the address of a dictionary by that of its keys, and prefetch them: its length."""
    row = rows[i]
    if load_word(row + 8) != dict_type:
        return OTHER_LAYOUT
    length, keys = load_word(row + 16), load_word(row + 32)
    rows[i] = keys
    for line in range(0, 24 * length + 96, 64):
        prefetch(keys + line)
    return length


@device
def _prefetch_strings(keys: int) -> None:
    """Prefetch the strings among the keys, whose hashes are with them."""
    entry, count, size = _entries(keys)
    if size == STRING_ENTRY:
        for _ in range(count):
            prefetch(load_word(entry) + 24)
            entry += size


@device
def _prefetch_row(rows: Any, i: int) -> None:
    """Prefetch the dictionary of row i, where there is such a row."""
    if i < rows.size:
        prefetch(rows[i])
        prefetch(rows[i] + 40)


@holding_the_lock
def read_rows(source: Source, bound: int, indptr: Any, hashes: Any) -> int:
    """Hash of every neighbour, row by row, and `indptr`.

    Returns the number of entries; where `hashes` is too short for them it is not filled.  With a
    `bound` above 0 the hashes must lie within 0 .. bound - 1.  There
    are four stages, AHEAD rows apart: prefetch the row, its table, its strings; read the row.
    """
    code = _open(source)
    if code < 0:
        return code
    rows = source.rows
    n, looked = rows.size, 0
    indptr[0] = 0
    for i in range(n + 3 * AHEAD):
        _prefetch_row(rows, i)
        j = i - AHEAD
        if 0 <= j < n:
            length = _prefetch_table(rows, j, source.kinds[DICT])
            if length < 0:
                return length
            indptr[j + 1] = indptr[j] + length
        if 2 * AHEAD <= i < n + 2 * AHEAD:
            _prefetch_strings(rows[i - 2 * AHEAD])
        j = i - 3 * AHEAD
        if j >= 0 and indptr[j + 1] <= hashes.size:
            keys, k, end = rows[j], indptr[j], indptr[j + 1]
            if end >= looked:
                if signal_waits():
                    return INTERRUPTED
                looked = end + STEPS_PER_LOOK
            entry, count, size = _entries(keys)
            if size == 0:
                return OTHER_LAYOUT
            for _ in range(count):
                if load_word(entry + size - 8) != 0:
                    if k == end:
                        return OTHER_LAYOUT
                    value = _hash(entry, size)
                    if bound > 0 and not 0 <= value < bound:
                        return OTHER_LAYOUT
                    hashes[k] = value
                    k += 1
                entry += size
            if k != end:
                return OTHER_LAYOUT
    return indptr[n]


@device
def _read_cells(source: Source, known: Known) -> int:
    """Write to `cells` the address of the value of every entry that is wanted."""
    code = _open(source)
    if code < 0:
        return code
    rows = source.rows
    indptr, indices, numbered, half, cells = known
    n, place, looked = rows.size, 0, 0
    for i in range(n + 2 * AHEAD):
        _prefetch_row(rows, i)
        j = i - AHEAD
        if 0 <= j < n:
            length = _prefetch_table(rows, j, source.kinds[DICT])
            if length < 0:
                return length
            if length != indptr[j + 1] - indptr[j]:
                return CHANGED
        j = i - 2 * AHEAD
        if j >= 0:
            keys, k, end = rows[j], indptr[j], indptr[j + 1]
            if end >= looked:
                if signal_waits():
                    return INTERRUPTED
                looked = end + STEPS_PER_LOOK
            entry, count, size = _entries(keys)
            if size == 0:
                return OTHER_LAYOUT
            for _ in range(count):
                value = load_word(entry + size - 8)
                if value != 0:
                    if k == end or (numbered and load_word(entry) != indices[k]):
                        return CHANGED
                    if not half or indices[k] >= j:
                        if place == cells.size:
                            return CHANGED
                        cells[place] = value
                        place += 1
                    k += 1
                entry += size
            if k != end:
                return CHANGED
    return 0 if place == cells.size else CHANGED


@device
def _attribute(cell: int, name: int, name_hash: int) -> int:
    """Address of a dictionary's value under a name; 0 where it is missing, -1 where in doubt."""
    entry, count, size = _entries(load_word(cell + 32))
    if size == 0:
        return OTHER_LAYOUT
    for _ in range(count):
        value = load_word(entry + size - 8)
        if value != 0:
            key = load_word(entry + size - 16)
            if key == name:
                return value
            if _hash(entry, size) == name_hash:
                return OTHER_LAYOUT  # perhaps an equal name
        entry += size
    return 0


@holding_the_lock
def read_values(
    source: Source, known: Known, name: int, name_hash: int, missing: float, found: Any
) -> int:
    """A number out of the dictionary of each edge: a float, or an integer of one digit.

    There are four stages, AHEAD dictionaries apart: prefetch the dictionary, its table, its value;
    read the value.
    """
    code = _read_cells(source, known)
    if code < 0:
        return code
    kinds, cells = source.kinds, known.cells
    m = cells.size
    for i in range(m + 3 * AHEAD):
        if i % STEPS_PER_LOOK == 0 and signal_waits():
            return INTERRUPTED
        if i < m:
            prefetch(cells[i] + 32)
        k = i - AHEAD
        if 0 <= k < m:
            if load_word(cells[k] + 8) != kinds[DICT]:
                return OTHER_LAYOUT
            prefetch(load_word(cells[k] + 32))
        k = i - 2 * AHEAD
        if 0 <= k < m:
            cells[k] = _attribute(cells[k], name, name_hash)
            if cells[k] < 0:
                return OTHER_LAYOUT
            prefetch(cells[k] + 16)
        k = i - 3 * AHEAD
        if k >= 0:
            value = cells[k]
            if value == 0:
                found[k] = missing
            elif load_word(value + 8) == kinds[FLOAT]:
                found[k] = load_float(value + 16)
            elif load_word(value + 8) == kinds[INT]:
                size, digit = load_word(value + 16), load_word(value + 24) & 0x3FFFFFFF
                if kinds[TAGGED] != 0:
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


@holding_the_lock
def gather(source: Source, known: Known, chosen: Any, found: int) -> int:
    """Put the values of chosen entries into a list, which has room for them and holds None.

    `chosen` are places in `known.cells`.
    """
    code = _read_cells(source, known)
    if code < 0:
        return code
    cells = known.cells
    for i in range(chosen.size):
        if i + 2 * AHEAD < chosen.size:
            prefetch(cells[chosen[i + 2 * AHEAD]])
        increment_references(cells[chosen[i]])
        set_list_item(found, i, cells[chosen[i]])
    return 0


@holding_the_lock
def join(rows: int, nodes: int, data: int, dict_type: int, u: Any, v: Any) -> int:
    """rows[u][nodes[v]] = rows[v][nodes[u]] = data.copy() for every edge; all three are lists.

    Returns how many were done: fewer than all when Python raised something.
    """
    for i in range(u.size):
        if i % STEPS_PER_LOOK == 0 and signal_waits():
            return i
        if i + 4 * AHEAD < u.size:
            prefetch(list_item(data, i + 4 * AHEAD) + 32)
            prefetch(list_item(rows, u[i + 4 * AHEAD]) + 16)
            prefetch(list_item(rows, v[i + 4 * AHEAD]) + 16)
            prefetch(list_item(nodes, u[i + 4 * AHEAD]))
            prefetch(list_item(nodes, v[i + 4 * AHEAD]))
            coming = list_item(data, i + 2 * AHEAD)
            if load_word(coming + 8) == dict_type:
                prefetch(load_word(coming + 32))
            coming = list_item(data, i + AHEAD)
            if load_word(coming + 8) == dict_type and load_word(coming + 16) > 0:
                first = _first_entry(load_word(coming + 32))
                prefetch(load_word(first))
                prefetch(load_word(first + 8))
        copy = copy_dict(list_item(data, i))
        if copy == 0:
            clear_error()
            return i
        a = set_dict_item(list_item(rows, u[i]), list_item(nodes, v[i]), copy)
        b = set_dict_item(list_item(rows, v[i]), list_item(nodes, u[i]), copy)
        decrement_references(copy)
        if a != 0 or b != 0:
            clear_error()
            return i
    return u.size
