"""Linear forests on a team.  The rule and the paper: __init__.py; one after the other: cpu_walk.py.

    cpu_marks.py     what a walk along a path leaves behind
    cpu_paths.py     walks from ends and from sampled vertices, and the ranking of the latter
    cpu_cycles.py    what these have not reached: cycles, cut at their weakest edge
    cpu_ranges.py    instead: walks within ranges of vertices, where paths run along the numbering
    here             the place of each vertex, and the coefficients

Walks start at the ends of paths and, so that one long path is the work of many, at sampled vertices
("nodes").  A walk leaves at each vertex its own number and how many steps it has taken.  It ends at
a node, at an end, or where another walk has been: that one's mark says how far it is from its
start, so the distance from start to start is known.  When the records of all walks are known
(path, position of the start, direction), every vertex works out its position from those, in one
pass in the order of vertices.  A member has several walks under way at a time, so that it waits for
memory once for all of them.

Two members whose walks cross may each miss the other's last mark and overwrite it.  No harm: a mark
tells the distance from where its walk started, so each vertex may keep either, and a walk may end
at any mark of the other.  Hence no compare-and-swap, only words that are written whole (relaxed).

What no walk has reached are cycles without a node; these are walked round, each by whoever comes
first, or by several that all find the same.  Of cycles with nodes the stretches are walked again
to find the weakest edge.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from matchwood.forests.cpu_cycles import resolve
from matchwood.forests.cpu_marks import (
    FIELDS,
    LENGTH,
    PATH,
    RECORD,
    SIGN,
    START,
    STEP_BITS,
    STEPS,
    WALKS,
)
from matchwood.forests.cpu_paths import follow
from matchwood.forests.cpu_ranges import walk_ranges
from matchwood.forests.cpu_walk import walk
from matchwood.forests.found import Found
from matchwood.primitives.cpu_hints import natural, select
from matchwood.teams import Team, barrier, crew, interrupted, kernel, share, share_rows

Array = np.ndarray[Any, Any]

SPACING = 8192  # vertices for each sampled one; a walk is long against its record
ASKED = 1024  # vertices asked how far their neighbours are
NEAR = 64  # numbers apart; such a neighbour is in the cache as a rule
FEW_THREADS = 2  # with so many, plain walks are quicker where most neighbours are near


@kernel
def _number(
    team: Team, marks: Array, records: Array, lengths: Array, tally: Array, perm: Array,
    path: Array, position: Array, place: Array,
) -> None:  # fmt: skip
    """Where paths start, then the place of each vertex."""
    n = marks.size
    lo, hi = share(team, n)
    start = np.int64(0)
    for rank in range(team.rank):
        start += tally[rank]
    for v in range(natural(lo), hi):
        length = lengths[v]
        if length > 0:
            lengths[v] = start  # from now on: where the path begins
            start += length
    if barrier(team):
        return
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        mark = marks[v]
        steps = mark & STEPS if mark > 0 else 0
        walk = natural((mark >> STEP_BITS) - 1 if mark > 0 else n + 2 * ~mark)
        record = records[RECORD * walk : RECORD * walk + RECORD]
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


def _in_order(table: Array) -> bool:
    """Do paths run along the numbering, so that a walk never waits for memory?

    Then leaving marks and coming back costs twice as much as walking."""
    asked = np.arange(0, table.shape[0], max(1, table.shape[0] // ASKED))
    distance = np.abs(table[asked].astype(np.int64) - asked[:, None])[table[asked] >= 0]
    return bool(distance.size) and float((distance <= NEAR).mean()) > 0.4


def forest(
    neighbours: Array, weights: Array, *, method: str = "auto", threads: int | None = None
) -> Found:
    """See matchwood.forests.linear_forest."""
    team = crew(threads, work=2 * neighbours.shape[0])
    along = method == "auto" and team.size <= FEW_THREADS and _in_order(neighbours)
    if method == "walk" or (along and team.size == 1):
        return walk(neighbours, weights)
    if method == "ranges" or along:
        return walk_ranges(neighbours, weights, team)
    if method == "doubling":
        from matchwood.forests.scans import forest_by_scans

        return forest_by_scans(neighbours, weights, threads=threads)
    clock = [time.perf_counter()]
    n, kind = neighbours.shape[0], neighbours.dtype
    table, weight = np.ascontiguousarray(neighbours), np.ascontiguousarray(weights)
    table, weight = table.reshape(-1), weight.reshape(-1)
    nodes = _sample(neighbours)
    slots = 2 * nodes.size
    marks, lengths = np.empty(n, np.int64), np.empty(n, kind)
    records = np.empty(RECORD * (n + slots), kind)
    links, link_steps = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    walks = np.empty((team.size, WALKS, FIELDS), np.int64)
    team.run(follow, table, nodes, marks, records, lengths, links, link_steps, walks)
    clock.append(time.perf_counter())
    edges, edge_weights = np.empty((slots, 3), np.int64), np.empty(slots, weight.dtype)
    bests = np.empty((team.size, WALKS), weight.dtype)
    cuts = np.empty((n // 3 + 1, 2), kind)
    counters, tally = np.zeros(32, np.int64), np.zeros(team.size, np.int64)
    team.run(
        resolve, table, weight, nodes, marks, records, lengths, links, link_steps,
        np.zeros(nodes.size, np.uint8), edges, edge_weights, cuts, counters, tally, walks, bests,
    )  # fmt: skip
    clock.append(time.perf_counter())
    perm, path, position, place = (np.empty(n, kind) for _ in range(4))
    team.run(_number, marks, records, lengths, tally, perm, path, position, place)
    clock.append(time.perf_counter())
    removed = cuts[: counters[0]].copy()
    phases = ("paths", "cycles", "permutation")
    seconds = dict(zip(phases, np.diff(clock).tolist(), strict=True))
    return Found(perm, path, position, place, lambda: removed, lambda: seconds)


# The coefficients.


@kernel
def _collect(
    team: Team, indptr: Array, indices: Array, data: Array, table: Array, place: Array,
    position: Array, dl: Array, d: Array, du: Array,
) -> None:  # fmt: skip
    """Who comes before and after v in its path is asked of its neighbours in the factor.

    Values go by their bits: integers are selected in one instruction.  Neighbours and places that
    are none are passed over: whoever changed them gets zeros, and nothing that is not his."""
    n = place.size
    lo, hi = share_rows(team, indptr)
    none, nobody = data.dtype.type(0), np.int64(-1)
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        at = np.int64(position[v])
        before, after = nobody, nobody
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
    """See matchwood.forests.tridiagonal_of."""
    kind = view.data.dtype
    bits = np.dtype(f"i{kind.itemsize}")
    dl, d, du = (np.zeros(view.n, bits) for _ in range(3))
    team = crew(threads, work=view.nnz + view.n)
    flat = np.ascontiguousarray(table).reshape(-1)
    data = view.data.view(bits)
    team.run(_collect, view.indptr, view.indices, data, flat, place, position, dl, d, du)
    return dl.view(kind), d.view(kind), du.view(kind)
