"""Two methods that go by breadth-first levels.

Leveled: all threads work on one level, then wait at a barrier.

The frontier, places begin to end of the queue, is cut into segments.  A segment's parents are read
in order by one member, which claims free neighbours for the segment and lists them, so the list
is almost in the right order.  Two things are left: children that an earlier segment claims as well
must be removed, and the children of one parent must be sorted.  Three phases, a barrier after each:

    claim     mark[v] = min(mark[v], number of the segment); the member that lowers it lists v
    settle    keep what still has the segment's number; sort each parent's children; count
    place     the segment's part of the queue starts behind those before it; mark[v] = PLACED

The claim does what the paper's atomic minimum of the parent does, with one byte a vertex; and
since a member sees its parents in ascending order, the first that reaches v is v's earliest.

Where levels are narrow, member 0 goes on alone, as the serial method does, until one is wide.

Races.  While claiming, `mark` only goes down, by atomic minimum; at the barrier it holds the
least segment that reached v, whatever the order of arrival.  While settling it is only read.
While placing, each v is written by the one member that lists it.

Unordered: a breadth-first search finds the levels, then each has its own thread; the second half of
the file.

K. I. Karantasis, A. Lenharth, D. Nguyen, M. J. Garzarán, K. Pingali. Parallelization of reordering
algorithms for bandwidth and wavefront reduction. SC 2014. doi:10.1109/SC.2014.80
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    advance,
    atomic_add,
    atomic_min,
    back_off,
    barrier,
    device,
    fail,
    kernel,
    load_acquire,
    load_relaxed,
    next_chunk,
    stopping,
    store_relaxed,
    store_release,
)
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
    delay,
    fetch_rows,
    note,
    own_sorter,
    scattered,
    sort_children,
)
from matchwood.ordering.rcm.cpu.serial import follow, go_on, place_start
from matchwood.primitives.patterns import not_symmetric
from matchwood.traversal import bfs

Array = np.ndarray[Any, Any]

MOST_SEGMENTS = 250  # they must fit a byte, between PLACED and FREE
SEGMENTS_EACH = 8  # segments per member where rows are uneven, to balance the work
EVEN_ROWS = 64  # entries; where no row is longer, equal numbers of parents are equal work
WIDE_ARCS = 1 << 14  # arcs from a level; with fewer one member is as quick. bench/ordering/rcm.py

_LINE = 16  # words of two cache lines; what different members write or read is so far apart
_ARCS = 0  # in `shared`: arcs that leave the next level, three counters in turn
_SOLO = 3 * _LINE  # in `shared`: what member 0 did alone, two records in turn
SHARED = 5 * _LINE


class Solo(NamedTuple):
    """Words of a record at _SOLO: what `follow` returned to member 0."""

    begin: int = 0
    levels: int = 1
    width: int = 2
    end: int = 3
    code: int = 4


SOLO = Solo()


class Segments(NamedTuple):
    """The segments of a level, and the lists of their children."""

    lists: Array  # of each member: children of its segments
    ends: Array  # where the children of the parent at place i end, at i - begin of the level
    children: Array  # the number of children of each segment
    member: Array  # the member that has it
    first: Array  # where its children begin in the list of that member
    shared: Array


@device
def _claim(
    csr: Csr, mark: Array, queue: Array, begin: Any, lo: Any, hi: Any, segment: int, found: Array,
    at: Any, ends: Array,
) -> Any:  # fmt: skip
    """List the free neighbours of places lo to hi; returns where the list ends.

    ends[i - begin] is where the children of the parent at place i end; the level is at `begin`.
    """
    indptr, indices = csr.indptr, csr.indices
    one = indices.dtype.type(1)
    claim = np.uint8(segment + 1)
    for i in range(lo, hi):
        fetch_rows(indptr, indices, queue, i, hi)
        u = queue[i]
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + one])):
            v = indices[k]
            if load_relaxed(mark, v) > claim and atomic_min(mark, v, claim) > claim:
                found[at] = v
                at += ONE
        ends[i - begin] = at
    return at


@device
def _settle(
    indptr: Array, mark: Array, begin: Any, lo: Any, hi: Any, segment: int, found: Array, at: Any,
    ends: Array, sorter: Sorter,
) -> Any:  # fmt: skip
    """Keep and sort the children of places lo to hi; returns where they end in the list."""
    claim = np.uint8(segment + 1)
    kept = at
    for i in range(lo, hi):
        first = kept
        end = np.uint64(ends[i - begin])
        while at < end:
            v = found[at]
            at += ONE
            if mark[v] == claim:
                found[kept] = v
                kept += ONE
        sort_children(indptr, found, first, kept - first, sorter)
    return kept


@kernel
def order_leveled(
    team: Any, csr: Csr, mark: Array, queue: Array, limits: Limits, even: bool, segments: Segments,
    sorters: Sorter, facts: Array, delays: Array,
) -> None:  # fmt: skip
    """Place a component from the wide level in `facts` on; sets `facts` as `go_on` does.

    Where rows are `even`, the arcs of a level are estimated as its rows times the average.
    """
    me = team.me
    indptr, indices = csr.indptr, csr.indices
    found, ends, shared = segments.lists[me], segments.ends, segments.shared
    counts, members, firsts = segments.children, segments.member, segments.first
    sorter = own_sorter(sorters, me)
    limit, most, wide = limits.places, limits.width, limits.wide
    begin, end = np.uint64(facts[FACT.last]), np.uint64(facts[FACT.end])
    levels, width = np.uint64(facts[FACT.levels]), np.uint64(facts[FACT.width])
    average = np.uint64(indices.size) // np.uint64(mark.size) + ONE
    arcs = wide
    step = 0
    if barrier(team):
        return
    while begin < end and end < limit and width < most:
        size = end - begin
        if me == 0:
            store_relaxed(shared, _ARCS + (step + 1) % 3, ZERO)
        if arcs < wide:
            solo = shared[_SOLO + step % 2 * _LINE : _SOLO + (step % 2 + 1) * _LINE]
            if me == 0:
                solo[SOLO.begin], _, solo[SOLO.levels], solo[SOLO.width], tail, _, code = follow(
                    team, csr, mark, queue, begin, end, levels, width, limits, sorter
                )
                solo[SOLO.end], solo[SOLO.code] = tail, np.uint64(code)
                advance(team, np.int64(tail - end))
            if barrier(team):
                return
            begin, levels = solo[SOLO.begin], solo[SOLO.levels]
            width, end = solo[SOLO.width], solo[SOLO.end]
            if solo[SOLO.code] == np.uint64(WHOLE) or solo[SOLO.code] == np.uint64(CUT):
                break
            arcs = wide
            step += 1
            continue

        parts = np.uint64(team.size if even else SEGMENTS_EACH * team.size)
        parts = min(parts, size, np.uint64(MOST_SEGMENTS))
        each = (size + parts - ONE) // parts
        count = np.int64((size + each - ONE) // each)
        tail = ZERO
        # a member takes the part it had before, whose neighbourhood is still in its cache
        segment = me if even else next_chunk(team, count, 1)
        while 0 <= segment < count:
            lo = begin + np.uint64(segment) * each
            members[segment], firsts[segment] = me, tail
            tail = _claim(
                csr, mark, queue, begin, lo, min(lo + each, end), segment, found, tail, ends
            )
            delay(team, delays)
            segment = count if even else next_chunk(team, count, 1)
        if barrier(team):
            return
        for segment in range(count):
            if members[segment] == me:
                lo = begin + np.uint64(segment) * each
                first = np.uint64(firsts[segment])
                last = _settle(
                    indptr, mark, begin, lo, min(lo + each, end), segment, found, first, ends,
                    sorter,
                )  # fmt: skip
                counts[segment] = last - first
                delay(team, delays)
        if barrier(team):
            return
        tail = end
        mine = ZERO
        for segment in range(count):
            children = np.uint64(counts[segment])
            if members[segment] == me:
                first = np.uint64(firsts[segment])
                for x in range(children):
                    v = found[first + x]
                    queue[tail + x] = v
                    mark[v] = PLACED
                    if not even:
                        mine += np.uint64(indptr[v + indices.dtype.type(1)] - indptr[v])
                delay(team, delays)
            tail += children
        atomic_add(shared, _ARCS + step % 3, mine)
        if barrier(team):
            return
        arcs = (tail - end) * average if even else load_relaxed(shared, _ARCS + step % 3)
        if me == 0:
            advance(team, np.int64(tail - end))
        if tail - begin > width:
            width = tail - begin
        if tail > end:
            levels += ONE
            begin = end
        else:
            break
        end = tail
        step += 1
    if me == 0:
        note(facts, end, levels, width, begin, CUT if width >= most else WHOLE)


def order(run: Any, start: int, queue: Array, at: int, limit: int, most: Any = EVERYTHING) -> None:
    """As `serial.order`.  Narrow levels are left to one member, unless "leveled" was asked for."""
    wide = 0 if run.method == "leveled" else WIDE_ARCS
    team, facts = run.team, run.facts
    even = run.longest <= EVEN_ROWS
    row = run.csr.indices.size // run.n + 1 if even else run.longest
    limits = Limits(
        np.uint64(limit), np.uint64(most), EVERYTHING, EVERYTHING, np.uint64(wide), np.uint64(row)
    )
    place_start(run, start, queue, at)
    if wide:  # a graph without a wide level needs no team, whose waiting members slow down others
        run.alone.run(go_on, run.csr, run.mark, queue, limits, run.sorter(), facts)
        if facts[FACT.code] != WIDE:
            return
    if run.lists is None:
        run.lists = scattered((team.size, run.n), run.unsigned)
        run.ends = np.empty(run.n, run.unsigned)
    children, members, firsts = np.zeros((3, MOST_SEGMENTS), np.int64)
    shared = np.zeros(SHARED, np.uint64)
    segments = Segments(run.lists, run.ends, children, members, firsts, shared)
    team.run(
        order_leveled, run.csr, run.mark, queue, limits, even, segments, run.sorters(team.size),
        facts, run.delays,
    )  # fmt: skip


# The unordered method.  The sizes of the levels say where each begins in the order.  Member k takes
# levels k, k + size, k + 2 size, ...: it reads the vertices of its level as soon as they are placed
# and places their children, which are the next level, read by the next member in turn.
#
# `placed[l]` says how far level l is filled.  Its one writer publishes it with release after the
# children of a parent, its one reader reads it with acquire, so what is read was written before.  A
# vertex of level l + 1 is marked only by the member of level l.  No deadlock: the member of the
# first level that is not finished has finished all its earlier ones, and its input is complete.


@kernel
def order_unordered(
    team: Any, csr: Csr, level: Array, mark: Array, queue: Array, bounds: Array, placed: Array,
    sorters: Sorter, delays: Array,
) -> None:  # fmt: skip
    """Place all levels; bounds[l] to bounds[l + 1] are the places of level l."""
    me = team.me
    indptr, indices = csr.indptr, csr.indices
    sorter = own_sorter(sorters, me)
    one = indices.dtype.type(1)
    for mine in range(me, bounds.size - 2, team.size):
        below = level.dtype.type(mine + 1)
        known = np.uint64(bounds[mine])
        tail = np.uint64(bounds[mine + 1])
        for i in range(np.uint64(bounds[mine]), np.uint64(bounds[mine + 1])):
            checks = 0
            while i >= known:
                known = np.uint64(load_acquire(placed, mine * _LINE))
                if i >= known:
                    if stopping(team):
                        return
                    checks = back_off(checks)
            if i & np.uint64(4095) == np.uint64(0) and stopping(team):
                return
            u = queue[i]
            head = tail
            for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + one])):
                v = indices[k]
                if level[v] == below and mark[v] == FREE:
                    mark[v] = PLACED
                    queue[tail] = v
                    tail += ONE
            sort_children(indptr, queue, head, tail - head, sorter)
            delay(team, delays)
            if tail > head:
                store_release(placed, (mine + 1) * _LINE, np.int64(tail))
        if tail != np.uint64(bounds[mine + 2]):  # the others would wait for the missing ones
            fail(team, BROKEN, np.int64(mine))
            return
        advance(team, bounds[mine + 1] - bounds[mine])


def order_by_threads(run: Any, start: int, queue: Array, at: int, limit: int) -> None:
    level = bfs(run.graph, start, directed=False, engine="cpu", threads=run.team.size).level
    sizes = np.bincount(level[level >= 0])
    bounds = np.concatenate(([at], at + np.cumsum(sizes), [0]))[: sizes.size + 1]
    bounds = np.append(bounds, bounds[-1])  # an empty level behind the last
    if bounds[-1] > run.n:
        raise not_symmetric(run.caller)
    queue[at] = start
    run.mark[start] = PLACED
    placed = np.repeat(bounds[:-1], _LINE)
    placed[0] = at + 1
    run.team.run(
        order_unordered, run.csr, level, run.mark, queue, bounds, placed,
        run.sorters(run.team.size), run.delays, errors=run.errors,
    )  # fmt: skip
    pairs = np.append(sizes, 0) + np.append(sizes[1:], (0, 0))
    run.facts[FACT.end], run.facts[FACT.levels] = bounds[-1], sizes.size
    run.facts[FACT.width], run.facts[FACT.last] = pairs.max(), bounds[-3]
    run.facts[FACT.code] = WHOLE
