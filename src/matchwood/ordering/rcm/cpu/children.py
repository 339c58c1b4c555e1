"""Steps that all methods share: records, sorting children, fetching rows ahead; delays for tests.

Numba passes records as it passes their parts, at no cost.

A key of a child is one word, the degree in the high bits and the vertex in the low ones.  Children
of one parent are found in ascending order, since rows are sorted; so a stable sort by degree alone
is enough, and long lists take a radix sort by the digits in which degrees differ.
"""

from __future__ import annotations

import mmap
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import device, inlined, load_relaxed, share
from matchwood.engines.cpu.hints import prefetch

Array = np.ndarray[Any, Any]

FREE = np.uint8(255)
PLACED = np.uint8(0)  # values of `mark[v]`; the leveled method uses the numbers between for claims

WHOLE, CUT, WIDE = 0, 1, 2
"""How an order of a component ended: complete, given up, or before a wide level."""

EVERYTHING = np.uint64(0xFFFFFFFFFFFFFFFF)  # a limit that is never reached

BROKEN = 1
"""The error code of kernels when a search from another vertex of a component does not reach all of
it: the pattern is not symmetric, and going on would place vertices twice, past the end."""


class Csr(NamedTuple):
    """The symmetric pattern; `indices` are unsigned."""

    indptr: Array
    indices: Array
    guessable: bool  # the processor guesses well which neighbours are placed: see `follow`
    loops: Any  # 1 where every vertex is its own neighbour, 0 where none is: see `_pattern`


class Sorter(NamedTuple):
    """Scratch buffers to sort children in; for a team, with a row for each member."""

    shift: Any  # bits of a vertex, below its degree, in a key
    keys: Array
    other: Array
    bins: Array


@device
def own_sorter(sorters: Sorter, me: int) -> Sorter:
    return Sorter(sorters.shift, sorters.keys[me], sorters.other[me], sorters.bins[me])


class Limits(NamedTuple):
    """When an order of a component ends early; see `serial.follow`."""

    places: Any  # all places up to this one are filled
    width: Any  # vertices of two neighbouring levels
    band: Any  # the bandwidth has reached this
    arcs: Any  # more arcs than this were followed
    wide: Any  # arcs that leave the next level, at least ...
    row: Any  # ... which is checked only if rows of this length would have them


class FactWords(NamedTuple):
    """Words of `facts`, which the methods leave about the component that was ordered last."""

    end: int = 0  # the place behind it
    levels: int = 1  # how many
    width: int = 2  # most vertices in two neighbouring levels
    last: int = 3  # the place where the last level begins
    code: int = 4  # WHOLE or CUT


FACT = FactWords()


@device
def note(facts: Array, end: Any, levels: Any, width: Any, last: Any, code: int) -> None:
    facts[FACT.end], facts[FACT.levels], facts[FACT.width] = end, levels, width
    facts[FACT.last], facts[FACT.code] = last, code


INSERTION_CHILDREN = np.uint64(32)  # insertion sort up to here is quicker than 256 counters
DIGIT = np.uint64(8)  # bits of a digit of the radix sort
BINS = 256  # values of a digit
ONE = np.uint64(1)
ZERO = np.uint64(0)

PLACES_AHEAD = np.uint64(4)  # places ahead at which rows are prefetched. bench/ordering/rcm.py
LINE_ENTRIES = np.uint64(16)  # entries of 32 bits in a cache line


@inlined
def fetch_rows(indptr: Array, indices: Array, queue: Array, i: Any, end: Any) -> None:
    """Prefetch a row that is needed soon, and the pointer of a row needed a little later.

    Rows are read in the order of the queue, which the hardware cannot predict: on a mesh larger
    than the caches this halves the time.  Three cache lines hold a row of a mesh of 27 points.  On
    a grid they also hold the rows of the next vertices, which halves the time again.
    """
    ahead = i + PLACES_AHEAD
    if ahead < end:
        row = np.uint64(indptr[queue[ahead]])
        prefetch(indices, row)
        prefetch(indices, row + LINE_ENTRIES)
        prefetch(indices, row + LINE_ENTRIES + LINE_ENTRIES)
        prefetch(indptr, queue[min(ahead + PLACES_AHEAD, end - ONE)])


@device
def degree_of(indptr: Array, v: Any) -> Any:
    return np.uint64(indptr[v + indptr.dtype.type(1)] - indptr[v])


@device
def key_of(indptr: Array, v: Any, shift: Any) -> Any:
    return (degree_of(indptr, v) << shift) | np.uint64(v)


@device
def sort_long(keys: Array, count: Any, sorter: Sorter) -> None:
    """Sort keys[:count]; equal degrees must be sorted by vertex already."""
    shift, other, bins = sorter.shift, sorter.other, sorter.bins
    differ = ZERO
    for x in range(count):
        differ |= keys[x] ^ keys[ZERO]
    digit = shift
    there = False  # whether the keys are in `other`
    while digit < np.uint64(64) and (differ >> digit) > ZERO:
        if (differ >> digit) & np.uint64(BINS - 1) > ZERO:
            if there:
                _one_digit(other, keys, count, digit, bins)
            else:
                _one_digit(keys, other, count, digit, bins)
            there = not there
        digit += DIGIT
    if there:
        for x in range(count):
            keys[x] = other[x]


@device
def _one_digit(source: Array, target: Array, count: Any, digit: Any, bins: Array) -> None:
    mask = np.uint64(BINS - 1)
    for k in range(bins.size):
        bins[k] = ZERO
    for x in range(count):
        bins[(source[x] >> digit) & mask] += ONE
    total = ZERO
    for k in range(bins.size):
        here = bins[k]
        bins[k] = total
        total += here
    for x in range(count):
        key = source[x]
        k = (key >> digit) & mask
        target[bins[k]] = key
        bins[k] += ONE


@inlined
def sort_children(indptr: Array, list_: Array, a: Any, count: Any, sorter: Sorter) -> None:
    """Sort the vertices list_[a:a+count] of one parent, ascending so far, by (degree, vertex).

    Always inlined.  It is called for every parent, and most have few children: on a grid, passing
    the arrays took twice as long as the rest.
    """
    if count == np.uint64(2):
        u, v = list_[a], list_[a + ONE]
        if degree_of(indptr, v) < degree_of(indptr, u):
            list_[a], list_[a + ONE] = v, u
    elif count > np.uint64(2):
        keys, shift = sorter.keys, sorter.shift
        if count <= INSERTION_CHILDREN:
            for x in range(count):
                key = key_of(indptr, list_[a + x], shift)
                j: Any = x
                while j > ZERO and keys[j - ONE] > key:
                    keys[j] = keys[j - ONE]
                    j -= ONE
                keys[j] = key
        else:
            for x in range(count):
                keys[x] = key_of(indptr, list_[a + x], shift)
            sort_long(keys, count, sorter)
        mask = (ONE << shift) - ONE
        for x in range(count):
            list_[a + x] = list_.dtype.type(keys[x] & mask)


@device
def reverse_places(team: Any, queue: Array) -> None:
    """Reverse the whole queue where it is; every member does a part."""
    n = queue.size
    lo, hi = share(team, n // 2)
    for i in range(lo, hi):
        queue[i], queue[n - 1 - i] = queue[n - 1 - i], queue[i]


@device
def delay(team: Any, delays: Array) -> None:
    """Wait for a random time when a test asks for it; `delays` holds a random state per member."""
    if delays.size == 0:
        return
    at = team.me * 16
    x = delays[at]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    delays[at] = x
    # mostly short, sometimes long enough for others to be several phases ahead
    spins: Any = (x >> np.uint64(20)) & np.uint64(0x3F if x & np.uint64(7) else 0x3FFF)
    for _ in range(spins):
        load_relaxed(delays, at)


def scattered(shape: tuple[int, ...], kind: Any) -> Array:
    """An array of zeros of which only a few scattered parts will be used.

    NumPy asks for pages of 2 MiB.  Clearing them for a few words in each of 32 lists took 6 ms.
    """
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    return np.frombuffer(mmap.mmap(-1, max(1, size)), kind, int(np.prod(shape))).reshape(shape)
