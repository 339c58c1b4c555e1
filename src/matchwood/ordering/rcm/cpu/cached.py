"""A graph that fits the caches: all of it by one thread, in one kernel.

Vertices are tried by (degree, vertex): the first one of a component is where its search begins.  At
the end components are written in the order of their smallest vertices.  Compared with the method
for larger graphs, on a CPU of two cores, a shuffled grid of 30^2 takes 0.7 of the time, of 100^2
0.85, a mesh of 30^3 vertices 0.8, a graph of 100,000 vertices and edges and many components 0.6.

The starts of a small graph are found here, whatever the method: each component tries four.

`order_raw` takes a small SciPy matrix as it was given, without the gate: one kernel checks the
arrays and orders it.  The gate's calls take longer than that: with them a matrix of 900 rows takes
2.2 times as long, one of 1728 rows and 39,304 entries 1.5 times (bench/ordering/raw.py compares
with SciPy).  A pattern that is not symmetric is joined with its mirror.  Any other unusual input is
left to the gate, which repairs it or says what is wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import advance, crew, device, fail, kernel, stopping
from matchwood.gate.inputs import plain_rows
from matchwood.gate.views import View
from matchwood.ordering.rcm import reference
from matchwood.ordering.rcm.cpu.children import (
    BINS,
    BROKEN,
    EVERYTHING,
    FREE,
    ONE,
    PLACED,
    ZERO,
    Csr,
    Limits,
    Sorter,
    degree_of,
)
from matchwood.ordering.rcm.cpu.serial import (
    TWO,
    ComponentOrder,
    component,
    keep,
    least,
    release,
    rows_alike,
    search_start,
    up_to,
)
from matchwood.primitives.inspect.cpu import WIDTH, loops_if_symmetric
from matchwood.primitives.patterns import not_symmetric

Array = np.ndarray[Any, Any]

CACHED_ENTRIES = 1 << 20
"""The most vertices and arcs, together, of a graph that is ordered here: it fits the caches."""

RAW_ENTRIES = 1 << 17
"""Vertices and entries of a matrix that `order_raw` takes: two milliseconds at most, so that Ctrl-C
need not take effect."""

ARCS_PER_STEP = 8
"""Arcs that count as one step of work.  A team of one thread runs in a thread of its own, so that
Ctrl-C takes effect, unless the graph has fewer than 160,000 vertices and arcs: two milliseconds."""

LONG_ROW_ENTRIES = 24
"""Average entries of a row from which rows are read with a branch.  Without it, in the caches, rows
of 6 to 15 entries took 0.6 to 0.9 of the time, and rows of 67 1.3 times as long."""

NO_STARTS = np.empty(0, np.int64)


class CountWords(NamedTuple):
    components: int = 0
    levels: int = 1
    searches: int = 2
    clash: int = 3  # 1 if two given starts are in one component; then there is no order


COUNT = CountWords()


class Scratch(NamedTuple):
    """Arrays with an entry for each vertex; the queues have room for one more."""

    by_degree: Array  # the vertices by (degree, vertex)
    component: Array  # of each vertex
    begins: Array  # where each component begins in the queue
    queue: Array
    spare: Array


class Ordered(NamedTuple):
    """An order; the places where its components begin, if it is not reversed; and `counts`."""

    perm: Array
    begins: Array
    counts: Array


@device
def _scratch(space: Array, n: Any) -> Scratch:
    a, b, c = n, n + n, n + n + n
    d = c + n + ONE
    return Scratch(space[:a], space[a:b], space[b:c], space[c:d], space[d : d + n + ONE])


def scratch_words(n: int) -> int:
    return 5 * n + 2


@device
def _sorter(keys: Array, n: Any) -> Sorter:
    """Buffers to sort children in, for lists of up to (keys.size - BINS) / 2."""
    longest = keys.size - BINS >> 1
    shift = ONE
    while ONE << shift < n:
        shift += ONE
    return Sorter(shift, keys[:longest], keys[longest : 2 * longest], keys[2 * longest :])


@device
def _sort_by_degree(indptr: Array, by_degree: Array, count: Array) -> None:
    """The vertices by (degree, vertex); `count` has room for a number for each degree."""
    n = np.uint64(by_degree.size)
    one = count.dtype.type(1)
    most = ZERO
    for v in range(n):
        most = max(most, degree_of(indptr, v))
    for d in range(most + ONE):
        count[d] = 0
    for v in range(n):
        count[degree_of(indptr, v)] += one
    total = count.dtype.type(0)
    for d in range(most + ONE):
        here = count[d]
        count[d] = total
        total += here
    for v in range(n):
        d = degree_of(indptr, v)
        by_degree[count[d]] = v
        count[d] += one


@device
def _first_of_least(indptr: Array) -> Any:
    n = np.uint64(indptr.size - 1)
    lowest = EVERYTHING
    first: Any = ZERO
    for v in range(n):
        degree = degree_of(indptr, v)
        if degree < lowest:
            lowest, first = degree, v
    return first


@device
def _last_of_least(indptr: Array, queue: Array, a: Any, b: Any, v: Any) -> Any:
    """The greatest vertex at places a to b of the degree of v, which is the least."""
    lowest, last = degree_of(indptr, v), v
    for x in range(a, b):
        u = queue[x]
        if u > last and degree_of(indptr, u) == lowest:
            last = u
    return last


@device
def try_starts(
    team: Any, csr: Csr, mark: Array, queue: Array, spare: Array, at: Any, first: ComponentOrder,
    sorter: Sorter,
) -> tuple[Any, int]:  # fmt: skip
    """Of four starts the first with the least bandwidth: `_tried_start` in reference.py.

    The queue holds the order from the first of them; it gets the best one.  Returns the number of
    levels and of starts that were tried; no levels: the pattern is BROKEN.
    """
    indptr, shift = csr.indptr, sorter.shift
    end, levels, band = first.end, first.levels, first.band
    v = queue[at]
    z = _last_of_least(indptr, queue, at, end, v)
    x = least(indptr, queue, first.last, end, shift)
    y = x  # until the search from x is done
    best, other = queue, spare  # the best order so far, and room for another
    reached = end
    fresh = False  # whether the vertices at places at..reached of `other` are those marked
    tried = 1
    for turn in range(3):
        start = x if turn == 0 else (y if turn == 1 else z)
        if start == v or (turn > 0 and start == x) or (turn == 2 and start == y):
            continue
        release(mark, other if fresh else best, at, reached if fresh else end)
        # the order from x is needed as a whole, for its last level
        bound = EVERYTHING if turn == 0 else band
        limits = Limits(end, EVERYTHING, bound, EVERYTHING, EVERYTHING, ONE)
        new = component(team, csr, mark, other, start, at, limits, sorter)
        reached = new.end
        if stopping(team):  # the order may be a part
            break
        if new.whole and reached != end:
            return ZERO, tried
        tried += 1
        fresh = True
        if turn == 0:
            y = least(indptr, other, new.last, end, shift)
        if new.band < band:
            band, levels = new.band, new.levels
            best, other = other, best
            fresh = False
    keep(mark, queue, best, at, end)
    return levels, tried


@device
def _write_order(
    scratch: Scratch, written: Array, components: Any, reverse: bool, perm: Array
) -> None:
    """Write components by smallest vertex; `spare` gets where they begin, `written` marks them."""
    queue, begins = scratch.queue, scratch.begins
    n = np.uint64(perm.size)
    place = count = ZERO
    for v in range(n):
        if place == n:
            break
        c = np.uint64(scratch.component[v]) if components > ONE else ZERO
        if written[c] == FREE:
            continue
        written[c] = FREE
        scratch.spare[count] = place
        count += ONE
        end = np.uint64(begins[c + ONE]) if c + ONE < components else n
        for k in range(np.uint64(begins[c]), end):
            perm[n - ONE - place if reverse else place] = queue[k]
            place += ONE


@device
def _leave_out_loops(indptr: Array, indices: Array, starts: Array, others: Array) -> None:
    """Copy the rows without loops; one entry behind the last may be written."""
    n = np.uint64(starts.size - 1)
    size = ZERO
    for i in range(n):
        starts[i] = size
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + ONE])):
            others[size] = indices[k]
            size += np.uint64(np.uint64(indices[k]) != i)
    starts[n] = size


@kernel
def order_cached(
    team: Any, indptr: Array, indices: Array, pattern: Csr, given: Array, small: bool,
    reverse: bool, keys: Array, space: Array, mark: Array, perm: Array, counts: Array,
) -> None:  # fmt: skip
    """Order all components, those of the `given` starts first.

    Others try starts if the graph is `small`, else they search.  `pattern` has the arrays given, or
    room for them without loops; it is guessable where its rows are long, and perhaps elsewhere.
    """
    if team.me > 0:
        return
    if indices.size > pattern.indices.size:
        _leave_out_loops(indptr, indices, pattern.indptr, pattern.indices)
    guessable = pattern.guessable or rows_alike(pattern.indptr, pattern.indices)
    csr = Csr(pattern.indptr, pattern.indices, guessable, pattern.loops)
    n = np.uint64(perm.size)
    sorter = _sorter(keys, n)
    scratch = _scratch(space, n)
    queue, spare, by_degree = scratch.queue, scratch.spare, scratch.by_degree
    for v in range(n):
        mark[v] = FREE
    at = components = ZERO
    r, used = ZERO, 0
    made = False  # whether by_degree is filled: connected graphs, which most are, do without
    while at < n:
        known = used < given.size
        if known:
            start = queue.dtype.type(given[used])
            used += 1
            if mark[start] == PLACED:
                counts[COUNT.clash] = 1
                return
        elif at == ZERO:
            start = queue.dtype.type(_first_of_least(csr.indptr))
        else:
            if not made:
                _sort_by_degree(csr.indptr, by_degree, spare)
                made = True
            while mark[by_degree[r]] == PLACED:
                r += ONE
            start = by_degree[r]
        queue[at], mark[start] = start, PLACED
        end, levels = at + ONE, ONE
        if degree_of(csr.indptr, start) > csr.loops:  # it has neighbours
            found = component(team, csr, mark, queue, start, at, up_to(n), sorter)
            end, levels = found.end, found.levels
        if not known and end - at > TWO:  # of two vertices this one is the start
            if small:
                levels, tried = try_starts(team, csr, mark, queue, spare, at, found, sorter)
            else:
                levels, tried = search_start(team, csr, mark, queue, spare, at, found, sorter)
            if levels == ZERO and not stopping(team):
                fail(team, BROKEN, np.int64(start))
                return
            counts[COUNT.searches] += tried
        if stopping(team):
            return
        if end - at < n:
            for k in range(at, end):
                scratch.component[queue[k]] = components
        scratch.begins[components] = at
        components += ONE
        counts[COUNT.levels] += np.int64(levels)
        advance(team, np.int64(end - at))
        at = end
    if used < given.size:
        counts[COUNT.clash] = 1
        return
    counts[COUNT.components] = components
    _write_order(scratch, mark, components, reverse, perm)


def order(
    view: Any, loops: int, longest: int, small: bool, given: Array, reverse: bool, caller: str
) -> Ordered | None:
    """The order; None if two of the given starts are in one component.

    `view` is symmetric and has `loops` loops; no row is longer than `longest`.  Loops do not
    matter where every vertex has one; else they are left out, so that degrees compare rightly.
    """
    n, m = view.n, view.nnz
    kind: Any = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    indptr, indices = view.indptr.view(kind), view.indices.view(kind)
    perm, counts = np.empty(n, view.indptr.dtype), np.zeros(len(COUNT), np.int64)
    space = np.empty(scratch_words(n), kind)
    rows = (indptr, indices)
    if 0 < loops < n:
        rows = (np.empty(n + 1, kind), np.empty(m - loops + 1, kind)[: m - loops])
    csr = Csr(*rows, m > LONG_ROW_ENTRIES * n, np.uint64(loops == n))
    crew(1, work=(n + m) // ARCS_PER_STEP).run(
        order_cached, indptr, indices, csr, given, small, reverse,
        np.empty(2 * longest + BINS, np.uint64), space, np.empty(n, np.uint8), perm.view(kind),
        counts,
        errors={BROKEN: lambda detail: not_symmetric(caller)},
    )  # fmt: skip
    if counts[COUNT.clash]:
        return None
    begins = space[4 * n + 1 :][: counts[COUNT.components]].view(perm.dtype)
    return Ordered(perm, begins, counts)


# Small matrices as they were given


@device
def _join(indptr: Array, indices: Array, space: Array, starts: Array, joined: Array) -> None:
    """The pattern and its mirror in one, without loops; `space` has room for both indptr again."""
    n, m = starts.size - 1, indices.size
    begin, place, mirror = space[: n + 1], space[n + 1 :][: n + 1], space[2 * n + 2 :][:m]
    for i in range(n + 1):
        begin[i] = 0
    for k in range(m):
        begin[np.uint64(indices[k]) + ONE] += np.uint32(1)
    for i in range(n):
        begin[i + 1] += begin[i]
        place[i] = begin[i]
    for i in range(n):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[k])
            mirror[np.uint64(place[j])] = i
            place[j] += np.uint32(1)
    size = ZERO
    for i in range(n):
        starts[i] = size
        a, a_end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        b, b_end = np.uint64(begin[i]), np.uint64(begin[i + 1])
        while a < a_end or b < b_end:
            if b == b_end or (a < a_end and indices[a] <= mirror[b]):
                v = indices[a]
                if b < b_end and mirror[b] == v:
                    b += ONE
                a += ONE
            else:
                v = mirror[b]
                b += ONE
            if v != np.uint32(i):
                joined[size] = v
                size += ONE
    starts[n] = size


@kernel
def order_raw_arrays(
    team: Any, indptr: Array, indices: Array, given: Array, most: int, reverse: bool, space: Array,
    keys: Array, mark: Array, perm: Array, table: Array,
) -> None:  # fmt: skip
    """The order of a small graph, or table[1, 0] stays 0: the gate has to look at the arrays.

    `most`: entries of a small graph.  `given` is empty.
    """
    n, m = perm.size, indices.size
    starts, joined, rest = space[: n + 1], space[n + 1 : n + 1 + 2 * m], space[n + 1 + 2 * m :]
    loops = loops_if_symmetric(team, indptr, indices, rest[: n + 1], table)
    if loops < -1:
        return
    if loops < 0:
        _join(indptr, indices, rest, starts, joined)
        m = int(starts[n])
        if m > most:
            return
        loops = 0
    elif 0 < loops < n:
        _leave_out_loops(indptr, indices, starts, joined)
        m -= loops
    else:
        for i in range(n + 1):
            starts[i] = indptr[i]
        for k in range(m):
            joined[k] = indices[k]
    table[1, 0] = 1
    rows = joined[:m]
    csr = Csr(starts, rows, m > LONG_ROW_ENTRIES * n, np.uint64(loops == n))
    order_cached(team, starts, rows, csr, given, True, reverse, keys, rest, mark, perm, table[2])


def order_raw(A: Any, reverse: bool, caller: str) -> Array | None:
    """The order of a small matrix, or None where it has to pass the gate."""
    rows = plain_rows(A, RAW_ENTRIES)
    if rows is None or not reference.is_small(View(*rows)):
        return None
    indptr, indices = rows
    n, m = indptr.size - 1, indices.size
    perm, table = np.empty(n, np.int32), np.zeros((3, WIDTH), np.int64)
    words = n + 1 + 2 * m + max(2 * n + 2 + m, scratch_words(n))
    crew(1, work=0).run(
        order_raw_arrays, indptr, indices.view(np.uint32), NO_STARTS,
        2 * reference.SMALL_GRAPH_EDGES, reverse, np.empty(words, np.uint32),
        np.empty(2 * min(n, 2 * m) + BINS, np.uint64), np.empty(n, np.uint8),
        perm.view(np.uint32), table, errors={BROKEN: lambda detail: not_symmetric(caller)},
    )  # fmt: skip
    return perm if table[1, 0] else None
