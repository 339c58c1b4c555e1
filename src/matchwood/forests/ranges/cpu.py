"""The linear forest by walks within ranges of vertices, one range per thread.

Where paths run along the numbering, nearly all of them lie within one range.  Each thread walks
those of its own range, as walk/cpu.py does.  A walk that leaves the range is given up; one thread
walks these few paths and cycles afterwards.  Vertices are first written path by path as they come,
and copied to their places when the lengths of all paths are known.

Until a barrier threads write only what belongs to their own ranges; so no atomics are needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, barrier, crew, device, interrupted, kernel, share, workspace
from matchwood.engines.cpu.hints import natural
from matchwood.forests.cpu_weakest import weaker
from matchwood.forests.found import Found
from matchwood.stopwatch import Stopwatch

Array = np.ndarray[Any, Any]

# Words of a member's counts, which fill a cache line.
BEGIN = 0  # first vertex of its range
PATHS = 1  # vertices of paths within the range
RINGS = 2  # cycles within the range
CROSSING = 3  # ends or cycles that leave the range
EXTRA = 4  # of the first member: cycles across ranges
COUNT_WORDS = 8


class Walked(NamedTuple):
    """What walks write: path and position of each vertex, and for each path, by its name, its
    length and where its vertices are (in `order`, or by the complement in `Across.order`)."""

    path: Any
    position: Any
    lengths: Any
    source: Any
    order: Any  # the vertices of paths and cycles within ranges, as they come


class Across(NamedTuple):
    """Paths and cycles that leave their range."""

    starts: Any  # an end, or a vertex of a cycle
    order: Any  # their vertices, as they come
    cuts: Any  # the edges that are removed from such cycles


@device
def _walk(
    team: Team, table: Array, lo: int, hi: int, end: int, path: Array, position: Array,
    order: Array, new: int,
) -> Any:  # fmt: skip
    """Walk from an end, writing to order[new] and so on.  Returns the vertices, or -1 where the
    path leaves lo..hi-1."""
    before, at, steps = np.int64(-1), np.int64(end), np.int64(0)
    while at >= 0:
        if at < lo or at >= hi:
            return -1
        at = natural(at)
        order[natural(new + steps)] = at
        steps += 1
        path[at], position[at] = end, steps
        if interrupted(team, steps):
            return -1
        if steps == 1:
            after = max(np.int64(table[2 * at]), np.int64(table[2 * at + 1]))
        else:
            after = np.int64(table[2 * at]) + np.int64(table[2 * at + 1]) - before
        before, at = np.int64(at), after
    return steps


@kernel
def _paths(team: Team, table: Array, walked: Walked, crossing: Array, counts: Array) -> None:
    """The paths within each range; the ends of others are noted in `crossing`."""
    path, position, lengths, source, order = walked
    lo, hi = share(team, position.size)
    for v in range(natural(lo), hi):
        position[v] = 0
        lengths[v] = 0
    new, noted = np.int64(lo), np.int64(lo)
    for end in range(natural(lo), hi):
        if interrupted(team, end):
            return
        one, other = np.int64(table[2 * end]), np.int64(table[2 * end + 1])
        if (one >= 0 and other >= 0) or position[end] > 0:
            continue
        steps = _walk(team, table, lo, hi, end, path, position, order, new)
        if steps < 0:
            crossing[natural(noted)] = end
            noted += 1
        else:
            lengths[end], source[end] = steps, new
            new += steps
    counts[team.rank, BEGIN] = lo
    counts[team.rank, PATHS], counts[team.rank, CROSSING] = new - lo, noted - lo


@device
def _ring(
    team: Team, table: Array, weights: Array, lo: int, hi: int, start: int, path: Array,
    position: Array, order: Array, new: int, cut: Array,
) -> Any:  # fmt: skip
    """Cut the cycle of `start` and write it as a path from the smaller end of the cut.

    Returns its vertices; -1, and -1 as the position of those seen, where it leaves lo..hi-1."""
    before, place = np.int64(start), np.int64(2 * start)
    low, high, best, steps = np.int64(-1), np.int64(-1), weights[2 * start], np.int64(0)
    position[start] = -1
    while True:
        steps += 1
        if interrupted(team, steps):
            return -1
        at, weight = np.int64(table[natural(place)]), weights[natural(place)]
        if at < lo or at >= hi or (at != start and position[natural(at)] < 0):
            return -1
        at = natural(at)
        a, b = min(before, np.int64(at)), max(before, np.int64(at))
        if weaker(weight, a, b, best, low, high):
            best, low, high = weight, a, b
        if at == start:
            break
        position[at] = -1
        place = np.int64(2 * at + (1 if table[2 * at] == before else 0))
        before = np.int64(at)
    cut[0], cut[1] = low, high
    before, at, steps = high, natural(low), np.int64(0)
    while True:
        order[natural(new + steps)] = at
        steps += 1
        if interrupted(team, steps):
            return -1
        path[at], position[at] = low, steps
        if at == high:
            return steps
        after = np.int64(table[2 * at]) + np.int64(table[2 * at + 1]) - before
        before, at = np.int64(at), natural(after)


@kernel
def _rest(
    team: Team, table: Array, weights: Array, walked: Walked, across: Across, counts: Array,
    cuts: Array,
) -> None:  # fmt: skip
    """Paths across ranges, by one member; cycles within ranges; cycles across them."""
    path, position, lengths, source, order = walked
    crossing, extra, extra_cuts = across
    n = position.size
    lo, hi = share(team, n)
    new = np.int64(0)
    if team.rank == 0:
        for rank in range(team.size):
            begin = natural(counts[rank, BEGIN])
            for k in range(begin, begin + natural(counts[rank, CROSSING])):
                end = natural(np.int64(crossing[k]))
                if path[end] != end:  # reached from the smaller end
                    continue
                steps = _walk(team, table, 0, n, end, path, position, extra, new)
                if steps < 0:
                    return
                lengths[end], source[end] = steps, ~new
                new += steps
    if barrier(team):
        return
    at, noted, rings = np.int64(lo) + counts[team.rank, PATHS], np.int64(lo), np.int64(0)
    mine = cuts[natural(lo // 3 + team.rank) :]
    for start in range(natural(lo), hi):
        if position[start] != 0:
            continue
        steps = _ring(
            team, table, weights, lo, hi, start, path, position, order, at, mine[natural(rings)]
        )
        if steps < 0:
            if interrupted(team, 0):
                return
            crossing[natural(noted)] = start
            noted += 1
        else:
            low = natural(np.int64(mine[natural(rings), 0]))
            lengths[low], source[low] = steps, at
            rings += 1
            at += steps
    counts[team.rank, RINGS], counts[team.rank, CROSSING] = rings, noted - lo
    if barrier(team) or team.rank > 0:
        return
    rings = np.int64(0)
    for rank in range(team.size):
        begin = natural(counts[rank, BEGIN])
        for k in range(begin, begin + natural(counts[rank, CROSSING])):
            start = natural(np.int64(crossing[k]))
            if position[start] >= 0:  # done
                continue
            back = np.int64(start)
            # round once to clear the marks of those who gave up
            step = np.int64(table[2 * start])
            position[start] = 0
            while step != start:
                position[natural(step)] = 0
                following = np.int64(table[natural(2 * step)])
                if following == back:
                    following = np.int64(table[natural(2 * step + 1)])
                back, step = step, following
                if interrupted(team, step):
                    return
            steps = _ring(
                team, table, weights, 0, n, start, path, position, extra, new,
                extra_cuts[natural(rings)],
            )  # fmt: skip
            if steps < 0:
                return
            low = natural(np.int64(extra_cuts[natural(rings), 0]))
            lengths[low], source[low] = steps, ~new
            rings += 1
            new += steps
    counts[0, EXTRA] = rings


@kernel
def _place(
    team: Team, walked: Walked, extra: Array, tally: Array, perm: Array, place: Array
) -> None:
    """All paths, by their ids, to their places; `extra` has those across ranges."""
    lengths, source, order = walked.lengths, walked.source, walked.order
    n = perm.size
    lo, hi = share(team, n)
    total = np.int64(0)
    for v in range(natural(lo), hi):
        total += lengths[v]
    tally[team.rank] = total
    if barrier(team):
        return
    new = np.int64(0)
    for rank in range(team.rank):
        new += tally[rank]
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        length = np.int64(lengths[v])
        if length == 0:
            continue
        begin = np.int64(source[v])
        if begin >= 0:
            for k in range(length):
                u = order[natural(begin + k)]
                perm[natural(new + k)] = u
                place[natural(np.int64(u))] = new + k
        else:
            for k in range(length):
                u = extra[natural(~begin + k)]
                perm[natural(new + k)] = u
                place[natural(np.int64(u))] = new + k
        new += length


def forest(neighbours: Array, weights: Array, *, threads: int | None = None) -> Found:
    """See matchwood.forests.linear_forest, method="ranges"."""
    watch = Stopwatch()
    n, kind = neighbours.shape[0], neighbours.dtype
    team = crew(threads, work=2 * n)
    table = np.ascontiguousarray(neighbours).reshape(-1)
    one = (n, kind)
    space = workspace(
        lengths=one, source=one, order=one, crossing=one, cuts=((n // 3 + team.size, 2), kind)
    )
    path, position, perm, place = (np.empty(n, kind) for _ in range(4))
    walked = Walked(path, position, space.lengths, space.source, space.order)
    counts = np.zeros((team.size, COUNT_WORDS), np.int64)
    team.run(_paths, table, walked, space.crossing, counts)
    watch.lap("paths")
    left = n - int(counts[:, PATHS].sum())
    across = Across(space.crossing, np.empty(left, kind), np.empty((left // 3 + 1, 2), kind))
    if left:
        weight = np.ascontiguousarray(weights).reshape(-1)
        team.run(_rest, table, weight, walked, across, counts, space.cuts)
    watch.lap("cycles")
    tally = np.zeros(team.size, np.int64)
    team.run(_place, walked, across.order, tally, perm, place)
    watch.lap("permutation")
    found = [across.cuts[: counts[0, EXTRA]]]
    for rank in range(team.size):
        begin = counts[rank, BEGIN] // 3 + rank
        found.append(space.cuts[begin : begin + counts[rank, RINGS]])
    removed = np.concatenate(found)
    return Found(perm, path, position, place, lambda: removed, lambda: watch.seconds)
