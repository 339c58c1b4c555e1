"""The serial method: one thread follows the queue; and the walk over all components, by one thread.

The queue is the order itself.  Read its next vertex, append the free neighbours of that vertex,
and sort them by (degree, vertex).  All other methods must give the same order as this one.
`mark[v]` is FREE until v is placed.  A component is one call of `follow`, which also finds the
levels, their width and the bandwidth for the search of a start.

The bandwidth costs nothing: a parent's last child is its farthest neighbour.  If a parent has no
child, all vertices placed behind it are children of earlier parents, which are farther from them.

E. Cuthill, J. McKee. Reducing the bandwidth of sparse symmetric matrices. ACM National Conference,
1969. doi:10.1145/800195.805928
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import advance, device, expanded, fail, kernel, stopping
from matchwood.ordering.rcm.cpu.children import (
    BROKEN,
    CUT,
    EVERYTHING,
    FACT,
    FREE,
    ONE,
    PLACED,
    WHOLE,
    WIDE,
    ZERO,
    Csr,
    Limits,
    Sorter,
    fetch_rows,
    key_of,
    note,
    sort_children,
)

Array = np.ndarray[Any, Any]

TWO = np.uint64(2)
SAMPLED_ROWS = np.uint64(64)
CHECK_MASK = np.uint64(4095)  # Ctrl-C is checked for at every 4096th place: where these bits are 0


class ComponentOrder(NamedTuple):
    """What `component` returns about the order of a component."""

    end: Any  # the place behind it
    levels: Any  # how many
    width: Any  # most vertices in two neighbouring levels
    last: Any  # the place where the last level begins
    band: Any  # the bandwidth
    whole: bool  # not given up


@device
def rows_alike(indptr: Array, indices: Array) -> bool:
    """Whether most of some 64 rows have the entries of the next one, counted from the diagonal."""
    n = np.uint64(indptr.size - 1)
    sampled = alike = 0
    for v in range(ZERO, max(n, ONE) - ONE, n // SAMPLED_ROWS + ONE):
        a, b, c = indptr[v], indptr[v + ONE], indptr[v + ONE + ONE]
        same = b - a == c - b
        if same:
            for k in range(np.uint64(b - a)):
                same = same and indices[a + k] + ONE == indices[b + k]
        sampled += 1
        alike += same
    return 2 * alike > sampled


@device
def arcs_of(indptr: Array, queue: Array, a: Any, b: Any) -> Any:
    arcs = ZERO
    for x in range(a, b):
        v = queue[x]
        arcs += np.uint64(indptr[v + queue.dtype.type(1)] - indptr[v])
    return arcs


@expanded
def place_free(
    indices: Array, first: Any, last: Any, mark: Array, queue: Array, tail: Any, guessable: bool
) -> Any:
    """Place the free neighbours among these entries; returns the end of the queue."""
    if guessable:
        for k in range(first, last):
            v = indices[k]
            if mark[v] != PLACED:
                mark[v] = PLACED
                queue[tail] = v
                tail += ONE
    else:  # without a branch; so one place behind the last may be written
        for k in range(first, last):
            v = indices[k]
            queue[tail] = v
            tail += np.uint64(mark[v] != PLACED)
            mark[v] = PLACED
    return tail


@device
def follow(
    team: Any, csr: Csr, mark: Array, queue: Array, begin: Any, end: Any, levels: Any, width: Any,
    limits: Limits, sorter: Sorter,
) -> tuple[Any, Any, Any, Any, Any, Any, int]:  # fmt: skip
    """Go on from a level, which is at places begin to end.

    Ends when the component is complete or all places up to the limit are filled (WHOLE); at the
    limit of the width, of the bandwidth or of the arcs (CUT); or before a level from which at least
    `limits.wide` arcs leave (WIDE).  Returns the last level's places, the number of levels, their
    width, the end, the bandwidth, and the code.

    The processor cannot predict which neighbours are placed already.  Without a branch, short rows
    of an irregular graph take 0.5 to 0.8 of the time, but regular grids 1.1 times as long, and long
    rows, most of whose neighbours are placed, twice as long.
    """
    indptr, indices = csr.indptr, csr.indices
    one = indices.dtype.type(1)
    i, tail, band = begin, end, ZERO
    budget, wide, row = limits.arcs, limits.wide, limits.row
    while i < tail and tail < limits.places:
        if i == end:
            if tail - begin > width:
                width = tail - begin
                if width >= limits.width:
                    return begin, end, levels, width, tail, band, CUT
            levels += ONE
            begin, end = end, tail
            if (end - begin) * row >= wide and arcs_of(indptr, queue, begin, end) >= wide:
                return begin, end, levels, width, tail, band, WIDE
        if i & CHECK_MASK == ZERO and stopping(team):
            return begin, end, levels, width, tail, band, CUT
        u = queue[i]
        i += ONE
        fetch_rows(indptr, indices, queue, i, tail)
        first, last = np.uint64(indptr[u]), np.uint64(indptr[u + one])
        if last - first > budget:
            return begin, end, levels, width, tail, band, CUT
        budget -= last - first
        head = tail
        tail = place_free(indices, first, last, mark, queue, tail, csr.guessable)
        if tail - i > band:
            band = tail - i
            if band >= limits.band:
                return begin, end, levels, width, tail, band, CUT
        sort_children(indptr, queue, head, tail - head, sorter)
    # the last level may be that of the parents or that of their children
    if tail - begin > width:
        width = tail - begin
    if tail > end:
        levels += ONE
        begin, end = end, tail
    return begin, end, levels, width, tail, band, CUT if width >= limits.width else WHOLE


@device
def component(
    team: Any, csr: Csr, mark: Array, queue: Array, start: Any, at: Any, limits: Limits,
    sorter: Sorter,
) -> ComponentOrder:  # fmt: skip
    """Place the component of `start` from place `at` on, by `follow`."""
    queue[at] = start
    mark[start] = PLACED
    begin, _, levels, width, tail, band, code = follow(
        team, csr, mark, queue, at, at + ONE, ONE, ONE, limits, sorter
    )
    return ComponentOrder(tail, levels, width, begin, band, code == WHOLE)


@device
def up_to(places: Any) -> Limits:
    """Limits for a whole component, which ends at this place at the latest."""
    return Limits(places, EVERYTHING, EVERYTHING, EVERYTHING, EVERYTHING, ONE)


@device
def release(mark: Array, queue: Array, a: Any, b: Any) -> None:
    for x in range(a, b):
        mark[queue[x]] = FREE


@kernel
def go_on(
    team: Any, csr: Csr, mark: Array, queue: Array, limits: Limits, sorter: Sorter, facts: Array
) -> None:
    """`follow` from the level in `facts`, for the host, by one thread."""
    if team.me > 0:
        return
    begin, end = np.uint64(facts[FACT.last]), np.uint64(facts[FACT.end])
    levels, width = np.uint64(facts[FACT.levels]), np.uint64(facts[FACT.width])
    begin, _, levels, width, tail, _, code = follow(
        team, csr, mark, queue, begin, end, levels, width, limits, sorter
    )
    note(facts, tail, levels, width, begin, code)
    advance(team, np.int64(tail - end))


def place_start(run: Any, start: int, queue: Array, at: int) -> None:
    """The first level, which is the start, at place `at`; `run` is rcm.cpu.Run."""
    queue[at] = start
    run.mark[start] = PLACED
    run.facts[[FACT.end, FACT.levels, FACT.width, FACT.last]] = at + 1, 1, 1, at


def order(run: Any, start: int, queue: Array, at: int, limit: int, most: Any = EVERYTHING) -> None:
    """Place the component of `start` from place `at` on.

    Gives up when two neighbouring levels have `most` vertices.
    """
    place_start(run, start, queue, at)
    limits = Limits(np.uint64(limit), np.uint64(most), EVERYTHING, EVERYTHING, EVERYTHING, ONE)
    run.alone.run(go_on, run.csr, run.mark, queue, limits, run.sorter(), run.facts)


# The walk over all components


@device
def least(indptr: Array, queue: Array, a: Any, b: Any, shift: Any) -> Any:
    """The vertex of least (degree, vertex) at places a to b."""
    best = key_of(indptr, queue[a], shift)
    for x in range(a + ONE, b):
        best = min(best, key_of(indptr, queue[x], shift))
    return queue.dtype.type(best & ((ONE << shift) - ONE))


@device
def keep(mark: Array, queue: Array, best: Array, at: Any, end: Any) -> None:
    """Copy the best order into the queue, and mark its vertices, of which some may be free."""
    for k in range(at, end):
        queue[k] = best[k]
        mark[best[k]] = PLACED


@device
def search_start(
    team: Any, csr: Csr, mark: Array, queue: Array, spare: Array, at: Any, first: ComponentOrder,
    sorter: Sorter,
) -> tuple[Any, int]:  # fmt: skip
    """Go on from start to start while levels get narrower and more.

    The rule is `_searched_start` in reference.py.  The queue holds the order `first`, from the
    first start; it gets that from the last one.  Returns the number of levels and of searches; no
    levels: the pattern is BROKEN.
    """
    end, levels, width, last = first.end, first.levels, first.width, first.last
    best, other = queue, spare
    searches = 1
    while True:
        x = least(csr.indptr, best, last, end, sorter.shift)
        release(mark, best, at, end)
        limits = Limits(end, width, EVERYTHING, EVERYTHING, EVERYTHING, ONE)
        new = component(team, csr, mark, other, x, at, limits, sorter)
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
    keep(mark, queue, best, at, end)
    return levels, searches


class WalkWords(NamedTuple):
    """Words of `state`: how far the walk is, and its counters."""

    vertex: int = 0  # to visit next
    place: int = 1  # to fill next
    given: int = 2  # which of the given starts to use next
    code: int = 3  # how the walk ended: WHOLE, or CUT in front of a big component
    components: int = 4
    levels: int = 5
    searches: int = 6


STEP = WalkWords()


@kernel
def walk(
    team: Any, csr: Csr, mark: Array, queue: Array, spare: Array, firsts: Array, starts: Array,
    state: Array, stop: Any, arcs: Any, sorter: Sorter,
) -> None:  # fmt: skip
    """Place components in the order of their smallest vertices, until one has too many arcs.

    In one kernel, however many small ones there are.  `firsts` are the smallest vertices of
    components whose start is given, ascending, and `starts` those starts.  Other components search
    for theirs.
    """
    if team.me > 0:
        return
    indptr, indices = csr.indptr, csr.indices
    one = indices.dtype.type(1)
    at, given = np.uint64(state[STEP.place]), np.uint64(state[STEP.given])
    limits = Limits(np.uint64(mark.size), EVERYTHING, EVERYTHING, arcs, EVERYTHING, ONE)
    state[STEP.code] = WHOLE
    for v in range(np.uint64(state[STEP.vertex]), stop):
        if v & CHECK_MASK == ZERO and stopping(team):
            break
        if mark[v] == PLACED:
            continue
        u = indices.dtype.type(v)
        begin = u
        known = given < np.uint64(firsts.size) and np.uint64(firsts[given]) == v
        if known:
            begin = indices.dtype.type(starts[given])
            if mark[begin] == PLACED:
                fail(team, BROKEN, np.int64(begin))
                return
        if np.uint64(indptr[u + one] - indptr[u]) == csr.loops:
            mark[v] = PLACED
            queue[at] = u
            end, levels, searches = at + ONE, ONE, 0
        else:
            found = component(team, csr, mark, queue, begin, at, limits, sorter)
            end, levels, searches = found.end, found.levels, 0
            if not found.whole:
                release(mark, queue, at, end)
                state[STEP.vertex], state[STEP.place], state[STEP.given] = v, at, given
                state[STEP.code] = CUT
                return
            # of two vertices the smaller is the start, which is this one
            if not known and end - at > TWO:
                begin = least(indptr, queue, at, end, sorter.shift)
                release(mark, queue, at, end)
                found = component(team, csr, mark, queue, begin, at, up_to(end), sorter)
                levels = ZERO
                if found.end == end:
                    levels, searches = search_start(
                        team, csr, mark, queue, spare, at, found, sorter
                    )
            if stopping(team):  # the order may be incomplete: going on would place vertices twice
                return
            if levels == ZERO:
                fail(team, BROKEN, np.int64(v))
                return
            advance(team, np.int64(end - at))
        at = end
        given += np.uint64(known)
        state[STEP.components] += 1
        state[STEP.levels] += levels
        state[STEP.searches] += searches
    state[STEP.vertex], state[STEP.place], state[STEP.given] = stop, at, given
