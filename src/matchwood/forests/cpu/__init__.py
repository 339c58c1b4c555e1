"""Linear forests on a team, and the values of a matrix along their paths.

    "splitters"   many walks at once (splitters.py), then the place of each vertex in one pass
    "walk"        one path after the other by one thread, permuting on the way
    "auto"        the better of the two

Two threads that walk within a range of vertices each would save 5 % of `linear_forest` on a grid of
250,000 vertices (27.0 against 28.5 ms on two cores), and nothing with more threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    Crew,
    Team,
    barrier,
    crew,
    interrupted,
    kernel,
    share,
    share_rows,
    workspace,
)
from matchwood.engines.cpu.hints import natural, select
from matchwood.forests.cpu.splitters import (
    COUNTER_WORDS,
    EDGES_CUT,
    LENGTH,
    PATH,
    RECORD_WORDS,
    SIGN,
    START,
    STEP_BITS,
    STEPS,
    WALK_WORDS,
    WALKS,
    Cuts,
    Nodes,
    Pairs,
    Stretches,
    Surveys,
    Trails,
    follow,
    resolve,
    weaker,
)
from matchwood.stopwatch import Stopwatch

Array = np.ndarray[Any, Any]

VERTICES_ASKED = 1024  # vertices sampled to estimate how far their neighbours are
NEAR = 64  # difference of two vertex numbers; such a neighbour is usually in the cache
NEAR_SHARE = 0.4  # share of the neighbours; if more are near, paths run along the numbering
FEW_THREADS = 2  # up to this number a plain walk is faster where most neighbours are near


def forest(
    neighbours: Array, weights: Array, *, method: str = "auto", threads: int | None = None
) -> tuple[Any, ...]:
    """See matchwood.forests.linear_forest; the fields of `PathOrder` (result.py)."""
    team = crew(threads, work=2 * neighbours.shape[0])
    if method == "auto":
        walks = team.size <= FEW_THREADS and _runs_along_numbers(neighbours)
        method = "walk" if walks else "splitters"
    if method == "walk":
        return _by_walk(neighbours, weights)
    return _by_splitters(neighbours, weights, team)


def _runs_along_numbers(table: Array) -> bool:
    """Whether paths run along the numbering: then splitters take 2.2 to 4 times a walk's time."""
    asked = np.arange(0, table.shape[0], max(1, table.shape[0] // VERTICES_ASKED))
    distance = np.abs(table[asked].astype(np.int64) - asked[:, None])[table[asked] >= 0]
    return bool(distance.size) and float((distance <= NEAR).mean()) > NEAR_SHARE


# Many walks at once.

SPACING = 8192  # vertices per sampled one: walks are long compared with their records


@kernel
def _number(
    team: Team, trails: Trails, tally: Array, perm: Array, path: Array, position: Array,
    place: Array,
) -> None:  # fmt: skip
    """Compute where paths start, then the place of each vertex."""
    marks, records, lengths = trails
    n = marks.size
    lo, hi = share(team, n)
    start = np.int64(0)
    for me in range(team.me):
        start += tally[me]
    for v in range(natural(lo), hi):
        length = lengths[v]
        if length > 0:
            lengths[v] = start  # from now on lengths[v] is where the path begins
            start += length
    if barrier(team):
        return
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        mark = marks[v]
        steps = mark & STEPS if mark > 0 else 0
        walk = natural((mark >> STEP_BITS) - 1 if mark > 0 else n + 2 * ~mark)
        record = records[RECORD_WORDS * walk : RECORD_WORDS * (walk + 1)]
        low, length = natural(np.int64(record[PATH])), np.int64(record[LENGTH])
        at = np.int64(record[START]) + np.int64(record[SIGN]) * steps
        while at < 1:  # round a cycle that was cut
            at += length
        while at > length:
            at -= length
        new = natural(lengths[low] + at - 1)
        path[v] = low
        position[v] = at
        place[v] = new
        perm[new] = v


def _sample(table: Array) -> Array:
    """Vertices with two neighbours from which walks start, ascending.  Any would do."""
    n = table.shape[0]
    chosen = np.unique(np.random.default_rng(0).integers(0, max(n, 1), n // SPACING))
    chosen = chosen[(table[chosen] >= 0).all(axis=1)]
    return chosen.astype(table.dtype)


def _by_splitters(neighbours: Array, weights: Array, team: Crew) -> tuple[Any, ...]:
    watch = Stopwatch()
    n, kind = neighbours.shape[0], neighbours.dtype
    factor = Pairs(*(np.ascontiguousarray(a).reshape(-1) for a in (neighbours, weights)))
    vertices = _sample(neighbours)
    slots = 2 * vertices.size
    space = workspace(
        marks=(n, np.int64), records=(RECORD_WORDS * (n + slots), kind), lengths=(n, kind),
        cuts=((n // 3 + 1, 2), kind),
    )  # fmt: skip
    trails = Trails(space.marks, space.records, space.lengths)
    nodes = Nodes(
        vertices,
        links=np.zeros(slots, np.int64),
        link_steps=np.zeros(slots, np.int64),
        state=np.zeros(vertices.size, np.uint8),
    )
    walks = np.empty((team.size, WALKS, WALK_WORDS), np.int64)
    team.run(follow, factor.table, trails, nodes, walks)
    watch.lap("paths")
    stretches = Stretches(np.empty((slots, 3), np.int64), np.empty(slots, factor.weights.dtype))
    cuts = Cuts(space.cuts, np.zeros(COUNTER_WORDS, np.int64))
    tally = np.zeros(team.size, np.int64)
    surveys = Surveys(walks, np.empty((team.size, WALKS), factor.weights.dtype))
    team.run(resolve, factor, trails, nodes, stretches, cuts, tally, surveys)
    watch.lap("cycles")
    perm, path, position, place = (np.empty(n, kind) for _ in range(4))
    team.run(_number, trails, tally, perm, path, position, place)
    watch.lap("permutation")
    removed = cuts.edges[: cuts.counters[EDGES_CUT]].copy()
    return perm, path, position, place, lambda: removed, lambda: watch.seconds


# One walk: visit the vertices path by path and permute on the way.
#
# Ends are tried in ascending order, so each path is found at its smaller end, and paths are in the
# order of their names.  The vertices left are on cycles: each is walked once to find its weakest
# edge, walked again from there, and merged into the order by its name.


@kernel
def _walk_paths(
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
def _walk_cycles(
    team: Team, table: Array, weights: Array, perm: Array, path: Array, position: Array,
    rings: Array, count: Array,
) -> None:  # fmt: skip
    """Cut the cycles that are left, and append them to perm.

    rings[k]: the ends of cut k, smaller first, and its start in perm.  count: vertices, rings."""
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
    """Merge paths, in the order of their ids, and rings, by `order`."""
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


def _by_walk(neighbours: Array, weights: Array) -> tuple[Any, ...]:
    watch = Stopwatch()
    n, kind = neighbours.shape[0], neighbours.dtype
    table = np.ascontiguousarray(neighbours).reshape(-1)
    team = crew(1, work=4 * n)
    perm, path, position, place = (np.empty(n, kind) for _ in range(4))
    count = np.zeros(2, np.int64)
    team.run(_walk_paths, table, perm, path, position, count)
    watch.lap("paths")
    cuts = np.empty((0, 2), kind)
    on_paths = int(count[0])
    if on_paths < n:
        rings = np.empty(((n - on_paths) // 3, 3), np.int64)
        weight = np.ascontiguousarray(weights).reshape(-1)
        team.run(_walk_cycles, table, weight, perm, path, position, rings, count)
        rings = rings[: count[1]]
        old, perm = perm, np.empty(n, kind)
        order = np.argsort(rings[:, 0])
        team.run(_merge, old, path, on_paths, rings, order, perm)
        cuts = rings[:, :2].astype(kind)
    watch.lap("cycles")
    team.run(_places, perm, place)
    watch.lap("permutation")
    return perm, path, position, place, lambda: cuts, lambda: watch.seconds


# The values of a matrix along the paths: a range of rows for each member.


@kernel
def _collect(
    team: Team, indptr: Array, indices: Array, data: Array, table: Array, place: Array,
    position: Array, dl: Array, d: Array, du: Array,
) -> None:  # fmt: skip
    """The values along the paths; the vertices beside v are among its neighbours in the factor.

    Values are read as bits: integers are selected in one instruction.  Neighbours and places that
    are out of range are skipped, and leave zeros: a user can change the arrays of a forest."""
    n = place.size
    lo, hi = share_rows(team, indptr)
    none, no_vertex = data.dtype.type(0), np.int64(-1)
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        at = np.int64(position[v])
        before, after = no_vertex, no_vertex
        for slot in range(2 * v, 2 * v + 2):
            w = np.int64(table[slot])
            known = (w >= 0) & (w < n)
            step = np.int64(position[natural(select(known, w, np.int64(0)))]) - at
            before = select(known & (step == -1), w, before)
            after = select(known & (step == 1), w, after)
        lower, middle, upper = none, none, none
        for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
            j = np.int64(indices[k])
            middle = select(j == v, data[k], middle)
            lower = select(j == before, data[k], lower)
            upper = select(j == after, data[k], upper)
        new = np.int64(place[v])
        if new >= 0 and new < n:
            i = natural(new)
            dl[i], d[i], du[i] = lower, middle, upper


def coefficients(
    view: Any, table: Array, place: Array, position: Array, *, threads: int | None = None
) -> tuple[Array, Array, Array]:
    kind = view.data.dtype
    bits = np.dtype(f"i{kind.itemsize}")
    dl, d, du = (np.zeros(view.n, bits) for _ in range(3))
    team = crew(threads, work=view.nnz + view.n)
    flat = np.ascontiguousarray(table).reshape(-1)
    data = view.data.view(bits)
    team.run(_collect, view.indptr, view.indices, data, flat, place, position, dl, d, du)
    return dl.view(kind), d.view(kind), du.view(kind)
