"""Cuthill-McKee by levels on a team: algorithm 2, with the children of each parent kept together.

The front, places begin to end of the queue, is cut into segments.  A segment's parents are read
in order by one member, which claims free neighbours for the segment and lists them, so the list
has the right order already but for two things: children that an earlier segment claims, too, must
go, and the children of one parent must be sorted.  Three phases, a barrier after each:

    claim     mark[v] = min(mark[v], number of the segment); who lowered it lists v
    settle    keep what still bears the segment's number; sort each parent's children; count
    place     the segment's part of the queue starts behind those before it; mark[v] = PLACED

The claim does what the paper's atomic minimum of the parent does, with one byte a vertex; and
since a member sees its parents in ascending order, the first that reaches v is v's earliest.

Where the front is narrow, member 0 goes on alone, as in cpu_serial.py, until it is wide again.

Races.  While claiming, `mark` only goes down, by atomic minimum; at the barrier it holds the
least segment that reached v, whatever the order of arrival.  While settling it is only read.
While placing, each v is written by the one member that lists it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.ordering.rcm.cpu_sort import ONE, ZERO, delay, fetch_rows, scattered, sort_children
from matchwood.ordering.rcm.serial.cpu import (
    CODE,
    CUT,
    END,
    EVERYTHING,
    LAST,
    LEVELS,
    PLACED,
    WHOLE,
    WIDTH,
    follow,
)
from matchwood.teams import (
    advance,
    atomic_add,
    atomic_min,
    barrier,
    device,
    kernel,
    load_relaxed,
    next_chunk,
    store_relaxed,
)

Array = np.ndarray[Any, Any]

MOST_SEGMENTS = 250  # they must fit a byte, between PLACED and FREE
SEGMENTS_EACH = 8  # per member where rows are uneven, so that who is ready takes another
EVEN_ROWS = 64  # entries; where no row is longer, equal numbers of parents are equal work
WIDE_ARCS = 1 << 14  # arcs from a level; with fewer one member is as quick. bench/ordering/rcm.py

_LINE = 16
_ARCS = 0  # three counters, in turn
_SOLO = 3 * _LINE  # what member 0 did alone; two, in turn
SHARED = 5 * _LINE


@device
def _claim(
    indptr: Array,
    indices: Array,
    mark: Array,
    queue: Array,
    begin: Any,
    lo: Any,
    hi: Any,
    segment: int,
    found: Array,
    at: Any,
    ends: Array,
) -> Any:
    """List the free neighbours of places lo to hi; returns where the list ends.

    ends[i - begin] is where the children of the parent at place i end; the level is at `begin`.
    """
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
    indptr: Array,
    mark: Array,
    begin: Any,
    lo: Any,
    hi: Any,
    segment: int,
    found: Array,
    at: Any,
    ends: Array,
    shift: Any,
    keys: Array,
    other: Array,
    bins: Array,
) -> Any:
    """Keep and sort the children of places lo to hi; returns how many there are."""
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
        sort_children(indptr, found, first, kept - first, shift, keys, other, bins)
    return kept


@kernel
def order_leveled(
    team: Any,
    indptr: Array,
    indices: Array,
    start: Any,
    mark: Array,
    queue: Array,
    at: Any,
    limit: Any,
    most: Any,
    wide: Any,
    longest: Any,
    shift: Any,
    lists: Array,
    ends: Array,
    segments: Array,
    all_keys: Array,
    all_other: Array,
    all_bins: Array,
    shared: Array,
    facts: Array,
    delays: Array,
) -> None:
    """Place the component of `start` from place `at` on; `facts` as from `order_serial`.

    segments[0] counts, segments[1] says who has each segment, segments[2] where its list begins.
    """
    rank = team.rank
    found, keys, other, bins = lists[rank], all_keys[rank], all_other[rank], all_bins[rank]
    if rank == 0:
        queue[at] = start
        mark[start] = PLACED
    begin, end, levels, width = at, at + ONE, ONE, ONE
    even = longest <= np.uint64(EVEN_ROWS)
    average = np.uint64(indices.size) // np.uint64(mark.size) + ONE
    row = average if even else longest  # from which a level's arcs are guessed
    arcs = ZERO
    step = 0
    if barrier(team):
        return
    while begin < end and end < limit and width < most:
        size = end - begin
        if rank == 0:
            store_relaxed(shared, _ARCS + (step + 1) % 3, ZERO)
        if arcs < wide:
            solo = shared[_SOLO + step % 2 * _LINE : _SOLO + (step % 2 + 1) * _LINE]
            if rank == 0:
                solo[0], solo[1], solo[2], solo[3], tail, _, code = follow(
                    team, indptr, indices, mark, queue, begin, end, levels, width, limit, most,
                    EVERYTHING, EVERYTHING, wide, row, shift, keys, other, bins,
                )  # fmt: skip
                solo[4], solo[5] = tail, np.uint64(code)
                advance(team, np.int64(tail - end))
            if barrier(team):
                return
            begin, levels, width, end = solo[0], solo[2], solo[3], solo[4]
            if solo[5] == np.uint64(WHOLE) or solo[5] == np.uint64(CUT):
                break
            arcs = wide
            step += 1
            continue

        parts = np.uint64(team.size if even else SEGMENTS_EACH * team.size)
        parts = min(parts, size, np.uint64(MOST_SEGMENTS))
        each = (size + parts - ONE) // parts
        count = np.int64((size + each - ONE) // each)
        tail = ZERO
        # where a member goes on where it has been, its neighbourhood is still in its cache
        segment = rank if even else next_chunk(team, count, 1)
        while 0 <= segment < count:
            lo = begin + np.uint64(segment) * each
            segments[1, segment], segments[2, segment] = rank, tail
            tail = _claim(
                indptr,
                indices,
                mark,
                queue,
                begin,
                lo,
                min(lo + each, end),
                segment,
                found,
                tail,
                ends,
            )
            delay(team, delays)
            segment = count if even else next_chunk(team, count, 1)
        if barrier(team):
            return
        for segment in range(count):
            if segments[1, segment] == rank:
                lo = begin + np.uint64(segment) * each
                first = np.uint64(segments[2, segment])
                last = _settle(
                    indptr, mark, begin, lo, min(lo + each, end), segment, found, first, ends,
                    shift, keys, other, bins,
                )  # fmt: skip
                segments[0, segment] = last - first
                delay(team, delays)
        if barrier(team):
            return
        tail = end
        mine = ZERO
        for segment in range(count):
            children = np.uint64(segments[0, segment])
            if segments[1, segment] == rank:
                first = np.uint64(segments[2, segment])
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
        # where rows are even, their number times the average is near enough
        arcs = (tail - end) * average if even else load_relaxed(shared, _ARCS + step % 3)
        if rank == 0:
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
    if rank == 0:
        facts[END], facts[LEVELS], facts[WIDTH], facts[LAST] = end, levels, width, begin
        facts[CODE] = CUT if width >= most else WHOLE


def order(run: Any, start: int, queue: Array, at: int, limit: int, most: Any, wide: int) -> None:
    """Host side; `run` is cpu.Run."""
    team = run.team
    keys, other, bins = run.sorting(team.size)
    if run.lists is None:
        run.lists = scattered((team.size, run.n), run.unsigned)
        run.ends = np.empty(run.n, run.unsigned)
    team.run(
        order_leveled, run.indptr, run.indices, run.unsigned(start), run.mark, queue,
        np.uint64(at), np.uint64(limit), np.uint64(most), np.uint64(wide),
        np.uint64(run.longest), np.uint64(run.shift), run.lists, run.ends,
        np.zeros((3, MOST_SEGMENTS), np.int64), keys, other, bins,
        np.zeros(SHARED, np.uint64), run.facts, run.delays,
    )  # fmt: skip
