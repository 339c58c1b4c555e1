"""The linear forest by one walk: visit the vertices path by path and permute on the way.

Ends are tried in ascending order, so each path is found at its smaller end, and paths come in the
order of their ids.  The vertices left are on cycles: each cycle is walked once to find its weakest
edge, walked again from there, and merged into the order by its id.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew, interrupted, kernel
from matchwood.engines.cpu.hints import natural
from matchwood.forests.cpu_weakest import weaker
from matchwood.forests.found import Found
from matchwood.stopwatch import Stopwatch

Array = np.ndarray[Any, Any]


@kernel
def _paths(
    team: Team, table: Array, perm: Array, path: Array, position: Array, count: Array
) -> None:
    """Paths from their ends.  position[v] = 0 afterwards means that v is on a cycle."""
    n = perm.size
    for v in range(n):
        position[v] = 0
    new = 0
    for end in range(n):
        if interrupted(team, end):
            return
        one, other = np.int64(table[2 * end]), np.int64(table[2 * end + 1])
        if (one >= 0 and other >= 0) or position[end] > 0:
            continue
        before, at, steps = np.int64(-1), np.int64(end), 0
        while at >= 0:
            at = natural(at)
            perm[natural(new)] = at
            new += 1
            steps += 1
            path[at], position[at] = end, steps
            if interrupted(team, steps):
                return
            if steps == 1:
                after = max(np.int64(table[2 * at]), np.int64(table[2 * at + 1]))
            else:
                after = np.int64(table[2 * at]) + np.int64(table[2 * at + 1]) - before
            before, at = at, after
    count[0] = new


@kernel
def _cycles(
    team: Team, table: Array, weights: Array, perm: Array, path: Array, position: Array,
    rings: Array, count: Array,
) -> None:  # fmt: skip
    """The cycles that are left, cut and appended to perm.  rings[k]: the ends of cut k, the smaller
    one first, and where it starts in perm.  count: vertices in perm, rings."""
    new, number = count[0], 0
    for start in range(perm.size):
        if interrupted(team, start):
            return
        if position[start] > 0:
            continue
        # round once, in the direction of the first neighbour
        before, place = np.int64(start), np.int64(2 * start)
        low, high, best, steps = np.int64(-1), np.int64(-1), weights[2 * start], 0
        while True:
            steps += 1
            if interrupted(team, steps):
                return
            at, weight = natural(np.int64(table[natural(place)])), weights[natural(place)]
            a, b = min(before, at), max(before, at)
            if weaker(weight, a, b, best, low, high):
                best, low, high = weight, a, b
            if at == start:
                break
            place = 2 * at + (1 if table[2 * at] == before else 0)
            before = at
        # and from the smaller end of the cut, away from the other
        rings[number, 0], rings[number, 1], rings[number, 2] = low, high, new
        number += 1
        before, at, steps = high, low, 0
        while True:
            steps += 1
            if interrupted(team, steps):
                return
            at = natural(at)
            perm[natural(new)] = at
            new += 1
            path[at], position[at] = low, steps
            if at == high:
                break
            after = np.int64(table[2 * at]) + np.int64(table[2 * at + 1]) - before
            before, at = at, after
    count[0], count[1] = new, number


@kernel
def _merge(
    team: Team, old: Array, path: Array, first_ring: int, rings: Array, order: Array, perm: Array
) -> None:
    """Paths, in the order of their ids, and rings by `order`, into one."""
    at, new, k = 0, 0, 0
    n = perm.size
    while new < n:
        if interrupted(team, new):
            return
        ring = rings[natural(order[natural(k)]), 0] if k < order.size else np.int64(n)
        while at < first_ring and path[natural(np.int64(old[natural(at)]))] < ring:
            perm[natural(new)] = old[natural(at)]
            at += 1
            new += 1
        if k < order.size:
            source = natural(rings[natural(order[k]), 2])
            k += 1
            while source < n and path[natural(np.int64(old[source]))] == ring:
                perm[natural(new)] = old[source]
                new += 1
                source += 1


@kernel
def _places(team: Team, perm: Array, place: Array) -> None:
    for new in range(perm.size):
        place[natural(np.int64(perm[new]))] = new


def forest(neighbours: Array, weights: Array, *, threads: int | None = None) -> Found:
    """See matchwood.forests.linear_forest, method "walk"."""
    watch = Stopwatch()
    n, kind = neighbours.shape[0], neighbours.dtype
    table = np.ascontiguousarray(neighbours).reshape(-1)
    team = crew(1, work=4 * n)
    perm, path, position, place = (np.empty(n, kind) for _ in range(4))
    count = np.zeros(2, np.int64)
    team.run(_paths, table, perm, path, position, count)
    watch.lap("paths")
    cuts = np.empty((0, 2), kind)
    on_paths = int(count[0])
    if on_paths < n:
        rings = np.empty(((n - on_paths) // 3, 3), np.int64)
        weight = np.ascontiguousarray(weights).reshape(-1)
        team.run(_cycles, table, weight, perm, path, position, rings, count)
        rings = rings[: count[1]]
        old, perm = perm, np.empty(n, kind)
        order = np.argsort(rings[:, 0])
        team.run(_merge, old, path, on_paths, rings, order, perm)
        cuts = rings[:, :2].astype(kind)
    watch.lap("cycles")
    team.run(_places, perm, place)
    watch.lap("permutation")
    return Found(perm, path, position, place, lambda: cuts, lambda: watch.seconds)
