"""A graph that fits the caches: all of it by one thread, in one kernel.

In a small graph several orders are made, to try starts.  So its rows, if they are short, are first
written anew, with neighbours by (degree, vertex).  Then the free neighbours of a vertex come in the
order of the rule, and nothing is sorted any more.  That takes as long as sorting the children in
two to four orders, so a larger graph, which searches for its starts by two or three, does without.

Components are looked for from vertices by (degree, vertex): the first one of a component is where
its search begins.  At the end they are written one after the other by their smallest vertices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import advance, crew, device, fail, kernel, stopping
from matchwood.ordering.rcm.cpu_records import BROKEN, EVERYTHING, FREE, PLACED, Sorter
from matchwood.ordering.rcm.cpu_sort import BINS, ONE, ZERO, fetch_rows, sort_children
from matchwood.ordering.rcm.serial.cpu import place_free, release, rows_alike
from matchwood.ordering.rcm.serial.cpu_rows import count_degrees, first_of_least, rank, sort_rows
from matchwood.ordering.rcm.start.cpu_tried import Tried, try_others
from matchwood.primitives.patterns import not_symmetric

Array = np.ndarray[Any, Any]

TWO = np.uint64(2)

ENTRIES = 1 << 20
"""Vertices and arcs of a graph that is ordered here: it is in the caches."""

ARCS_PER_STEP = 8
"""A team of one thread may be handed over to, so that Ctrl-C is heard, or run at once.  A graph of
less than 160,000 vertices and arcs takes two milliseconds at most, and is ordered at once."""

READY_ROWS = 10
"""Entries, on average, of rows that are written anew, at most.  Rows of 7 entries took 0.9 of the
time of sorting children, rows of 12 as long, rows of 20 and more 1.2 to 1.5 times as long."""

LONG_ROWS = 24
"""Entries, on average, of rows that are read with a branch.  In the caches, rows of 6 to 15 took
0.6 to 0.9 of that time without, and rows of 67 took 1.3 times as long."""


class Steps(NamedTuple):
    """Words of `counts`."""

    components: int = 0
    levels: int = 1
    searches: int = 2


COUNT = Steps()


class Way(NamedTuple):
    """How a graph is ordered."""

    loops: bool  # some vertices have one, but not all
    ready: bool  # rows are written anew
    long: bool  # rows are
    small: bool  # starts are tried, not searched for
    reverse: bool


class Rows(NamedTuple):
    """The pattern; `ready`: with neighbours by (degree, vertex)."""

    indptr: Array
    indices: Array
    degree: Array
    sorter: Sorter
    ready: bool
    predictable: bool  # the processor guesses well which neighbours are placed: see `follow`


class Scratch(NamedTuple):
    """For each vertex; the queues have room for one more."""

    ranked: Array  # the vertices by (degree, vertex)
    place: Array  # where rows are written on; at last, the component of each vertex
    begins: Array  # where each component begins
    queue: Array
    spare: Array


class Limits(NamedTuple):
    """When a search is given up."""

    width: Any  # two neighbouring levels have so many vertices
    band: Any  # the bandwidth comes to this


class Found(NamedTuple):
    """What a search has found."""

    end: Any
    levels: Any
    width: Any  # most vertices in two neighbouring levels
    last: Any  # the place where the last level begins
    band: Any  # the bandwidth
    whole: bool  # not given up


@device
def _search(
    team: Any, rows: Rows, mark: Array, queue: Array, start: Any, at: Any, most: Any,
    limits: Limits,
) -> Found:  # fmt: skip
    """Place the component of `start` from place `at` on; it has at most the places up to `most`.

    A parent's last child is its farthest neighbour, so the bandwidth costs nothing.
    """
    indptr, indices = rows.indptr, rows.indices
    one = queue.dtype.type(1)
    queue[at] = start
    mark[start] = PLACED
    begin, end, levels, width, band = at, at + ONE, ONE, ONE, ZERO
    while True:
        if stopping(team):
            return Found(end, levels, width, begin, band, False)
        tail = end
        for i in range(begin, end):
            fetch_rows(indptr, indices, queue, i, tail)
            u, head = queue[i], tail
            first, last = np.uint64(indptr[u]), np.uint64(indptr[u + one])
            tail = place_free(indices, first, last, mark, queue, tail, rows.predictable)
            if not rows.ready:
                sort_children(indptr, queue, head, tail - head, rows.sorter)
            if tail - i > band + ONE:
                band = tail - i - ONE
                if band >= limits.band:
                    return Found(tail, levels, width, begin, band, False)
            if tail >= most:
                break
        width = max(width, tail - begin)
        if width >= limits.width:
            return Found(tail, levels, width, begin, band, False)
        if tail == end:
            return Found(tail, levels, width, begin, band, True)
        levels += ONE
        begin, end = end, tail
        if tail >= most:
            return Found(tail, levels, width, begin, band, True)


@device
def _least(rows: Rows, queue: Array, a: Any, b: Any) -> Any:
    """The vertex of least (degree, vertex) at places a to b."""
    degree = rows.degree
    best = queue[a]
    for x in range(a + ONE, b):
        u = queue[x]
        if degree[u] < degree[best] or (degree[u] == degree[best] and u < best):
            best = u
    return best


@device
def _last_like(degree: Array, queue: Array, a: Any, b: Any, v: Any) -> Any:
    """The greatest vertex at places a to b of the degree of v, which is the least."""
    least, last = degree[v], v
    for x in range(a, b):
        u = queue[x]
        if degree[u] == least and u > last:
            last = u
    return last


@device
def _search_below(
    team: Any, rows: Rows, mark: Array, queue: Array, start: Any, at: Any, end: Any, bound: Any
) -> tuple[Any, Any, Any, Any, bool]:
    """`_search` as `try_others` calls it."""
    found = _search(team, rows, mark, queue, start, at, end, Limits(EVERYTHING, bound))
    return found.end, found.levels, found.last, found.band, found.whole


@device
def _try_starts(
    team: Any, rows: Rows, mark: Array, queue: Array, spare: Array, at: Any, v: Any, found: Found
) -> tuple[Any, int]:
    """Of four starts the first with the least bandwidth; `queue` holds the order from v.

    Returns the levels from there, and how many were tried; no levels: the pattern is BROKEN.
    """
    z = _last_like(rows.degree, queue, at, found.end, v)
    first = Tried(at, found.end, v, z, found.levels, found.last, found.band)
    return try_others(team, _search_below, _least, rows, mark, queue, spare, first)


@device
def _search_start(
    team: Any, rows: Rows, mark: Array, queue: Array, spare: Array, at: Any, first: Found
) -> tuple[Any, int]:
    """From start to start, as long as levels become narrower and more; else as `_try_starts`."""
    end, levels, width, last = first.end, first.levels, first.width, first.last
    best, other = queue, spare
    searches = 1
    while True:
        x = _least(rows, best, last, end)
        release(mark, best, at, end)
        new = _search(team, rows, mark, other, x, at, end, Limits(width, EVERYTHING))
        searches += 1
        if stopping(team) or (new.whole and new.end != end):
            return ZERO, searches
        if not new.whole:
            break
        best, other = other, best
        more = new.levels > levels
        levels, width, last = new.levels, new.width, new.last
        if not more:
            break
    for k in range(at, end):
        queue[k] = best[k]
        mark[best[k]] = PLACED
    return levels, searches


@device
def _write_order(
    scratch: Scratch, written: Array, components: Any, reverse: bool, perm: Array
) -> None:
    """The components by their smallest vertices; `written` says of each whether it is."""
    queue, begins = scratch.queue, scratch.begins
    n = np.uint64(perm.size)
    place = ZERO
    for v in range(n):
        if place == n:
            break
        c = np.uint64(scratch.place[v]) if components > ONE else ZERO
        if written[c] == FREE:
            continue
        written[c] = FREE
        end = np.uint64(begins[c + ONE]) if c + ONE < components else n
        for k in range(np.uint64(begins[c]), end):
            perm[n - ONE - place if reverse else place] = queue[k]
            place += ONE


@device
def _parts(space: Array, n: Any) -> tuple[Array, Scratch]:
    """Degrees and scratch, in one block of memory."""
    a, b, c = n, n + n, n + n + n
    d = c + n
    e = d + n + ONE
    scratch = Scratch(space[a:b], space[b:c], space[c:d], space[d:e], space[e : e + n + ONE])
    return space[:n], scratch


def words(n: int) -> int:
    """Of `_parts`."""
    return 6 * n + 2


@kernel
def order_ranked(
    team: Any,
    indptr: Array,
    indices: Array,
    neighbours: Array,
    way: Way,
    sorter: Sorter,
    space: Array,
    mark: Array,
    perm: Array,
    counts: Array,
) -> None:
    """Order all components; `neighbours` has room for new rows, or is `indices`."""
    if team.rank > 0:
        return
    n = np.uint64(perm.size)
    degree, scratch = _parts(space, n)
    predictable = way.long or rows_alike(indptr, indices)
    rows = Rows(indptr, neighbours, degree, sorter, way.ready, predictable)
    queue, spare = scratch.queue, scratch.spare
    count_degrees(indptr, indices, way.loops, degree)
    if way.ready:
        rank(degree, scratch.ranked, queue)
        if not sort_rows(indptr, indices, scratch.ranked, scratch.place, neighbours):
            fail(team, BROKEN, 0)
            return
    elif n > ZERO:  # most graphs are connected, and need no more
        scratch.ranked[0] = first_of_least(degree)
    for v in range(n):
        mark[v] = FREE
    at = components = ZERO
    unlimited = Limits(EVERYTHING, EVERYTHING)
    for r in range(n):
        start = scratch.ranked[r]
        if mark[start] == PLACED:
            continue
        found = _search(team, rows, mark, queue, start, at, n, unlimited)
        levels = found.levels
        if found.end - at > TWO:  # of two vertices this one is the start
            if way.small:
                levels, tried = _try_starts(team, rows, mark, queue, spare, at, start, found)
            else:
                levels, tried = _search_start(team, rows, mark, queue, spare, at, found)
            if stopping(team):
                return
            if levels == ZERO:
                fail(team, BROKEN, np.int64(start))
                return
            counts[COUNT.searches] += tried
        if found.end - at < n:
            for k in range(at, found.end):
                scratch.place[queue[k]] = components
        scratch.begins[components] = at
        components += ONE
        counts[COUNT.levels] += np.int64(levels)
        advance(team, np.int64(found.end - at))
        at = found.end
        if at == n:
            break
        if r == ZERO and not way.ready:
            rank(degree, scratch.ranked, spare)
    counts[COUNT.components] = components
    _write_order(scratch, mark, components, way.reverse, perm)


def order(
    view: Any, loops: int, longest: int, small: bool, reverse: bool, caller: str
) -> tuple[Array, Array]:
    """The order, and the counts of its making.

    `view` is symmetric, has so many loops, and its longest row has at most so many entries.
    """
    n, m = view.n, view.nnz
    kind: Any = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    some = 0 < loops < n  # where all have one, degrees compare as they do without
    ready = some or (small and m <= READY_ROWS * n)
    indptr, indices = view.indptr.view(kind), view.indices.view(kind)
    keys = np.empty(0 if ready else 2 * longest + BINS, np.uint64)
    shift = np.uint64(max(1, (n - 1).bit_length()))
    sorter = Sorter(shift, keys[:longest], keys[longest : 2 * longest], keys[2 * longest :])
    perm, counts = np.empty(n, view.indptr.dtype), np.zeros(len(COUNT), np.int64)
    crew(1, work=(n + m) // ARCS_PER_STEP).run(
        order_ranked, indptr, indices, np.empty(m, kind) if ready else indices,
        Way(some, ready, m > LONG_ROWS * n, small, reverse), sorter,
        np.empty(words(n), kind), np.empty(n, np.uint8), perm.view(kind), counts,
        errors={BROKEN: lambda detail: not_symmetric(caller)},
    )  # fmt: skip
    return perm, counts
