"""Linear forests on a team.  The rule and the paper: __init__.py; one after the other: cpu_walk.py.

Walks start at the ends of paths and, so that one long path is the work of many, at sampled vertices
("nodes").  A walk goes on to the next node or end.  It leaves at each vertex its own number and
how many steps it has taken; when the records of all walks are known (path, position of its start,
direction), every vertex works out its position from those, in one pass in the order of vertices.
A member has several walks under way at a time, so that it waits for memory once for all of them.

A walk that would start where another has passed does not start.  Two that start at the same time
from both sides of a stretch both go all the way: each vertex then keeps the mark of either, and
both records lead to the same position.  Hence no compare-and-swap, only single words that are
written whole (relaxed), whatever the order.

What no walk has reached are cycles without a node; these are walked round, each by whoever comes
first, as before.  Of cycles with nodes the stretches are walked again to find the weakest edge.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from matchwood.forests.cpu_walk import walk
from matchwood.forests.found import Found
from matchwood.primitives.cpu_hints import natural, prefetch, prefetch_write
from matchwood.teams import (
    Team,
    atomic_add,
    atomic_exchange,
    barrier,
    crew,
    device,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    share_rows,
    stopping,
    store_relaxed,
)

Array = np.ndarray[Any, Any]

SPACING = 8192  # vertices for each sampled one; a walk is long against its record
WALKS = 8  # of a member at a time; 4 and 16 were slower: bench/forests/linear_forest.py
CHUNK = 4096  # vertices that a member takes at a time

# A mark: 0, or (walk + 1) * 2^24 + steps, or ~node.  Walks that start at vertex v have the number
# v, the two of node r have n + 2 r + side.  The chance of 2^24 steps without a node is e^-2048.
STEP_BITS = 24
STEPS = (1 << STEP_BITS) - 1

# A record of a walk: path, position at its start, +1 or -1 for each step, length of the path.
PATH, START, SIGN, LENGTH, RECORD = 0, 1, 2, 3, 4

# Fields of a walk under way.
_FROM, _AT, _STEPS, _WALK, _CUT, _U, _V, _SLOT, _FIELDS = 0, 1, 2, 3, 4, 5, 6, 7, 8


@device
def _write_record(
    records: Array, walk: int, path: int, start: int, sign: int, length: int
) -> None:
    at = natural(RECORD * walk)
    records[at + PATH] = path
    records[at + START] = start
    records[at + SIGN] = sign
    records[at + LENGTH] = length


@device
def _write_path(records: Array, lengths: Array, one: int, other: int, length: int) -> None:
    """The records of the walks from both ends of a path."""
    low, high = min(one, other), max(one, other)
    _write_record(records, high, low, length, -1, length)
    _write_record(records, low, low, 1, 1, length)
    store_relaxed(lengths, low, length)


@device
def _arrive(
    n: int, table: Array, nodes: Array, walk: int, before: int, at: int, node: int, steps: int,
    records: Array, lengths: Array, links: Array, link_steps: Array,
) -> None:  # fmt: skip
    """A walk has come to a node, or to the end `at` of a path (node = -1)."""
    if node < 0:
        if walk < n:
            _write_path(records, lengths, walk, at, steps + 1)
        else:
            store_relaxed(links, walk - n, ~at)
            store_relaxed(link_steps, walk - n, steps)
        return
    v = natural(np.int64(nodes[natural(node)]))
    slot = 2 * node + (0 if table[2 * v] == before else 1)
    store_relaxed(links, slot, ~walk if walk < n else walk - n)
    store_relaxed(link_steps, slot, steps)
    if walk >= n:
        store_relaxed(links, walk - n, slot)
        store_relaxed(link_steps, walk - n, steps)


@device
def _begin(walks: Array, k: int, before: int, at: int, walk: int) -> int:
    walks[k, _FROM], walks[k, _AT], walks[k, _STEPS], walks[k, _WALK] = before, at, 1, walk
    return k + 1


@device
def _go_on(
    team: Team, n: int, table: Array, nodes: Array, marks: Array, walks: Array, active: int,
    wanted: int, records: Array, lengths: Array, links: Array, link_steps: Array,
) -> int:  # fmt: skip
    """Take a step of every walk in turn, until fewer than `wanted` are left; returns how many."""
    turn = 0
    while active >= wanted:
        turn += 1
        if interrupted(team, turn):
            return -1
        k = 0
        while k < active:
            at, steps = natural(walks[k, _AT]), walks[k, _STEPS]
            mark = load_relaxed(marks, at)
            if mark >= 0:
                after = np.int64(table[2 * at]) + np.int64(table[2 * at + 1]) - walks[k, _FROM]
                store_relaxed(marks, at, ((walks[k, _WALK] + 1) << STEP_BITS) | steps)
                if after >= 0:
                    walks[k, _FROM], walks[k, _AT], walks[k, _STEPS] = at, after, steps + 1
                    prefetch(table, 2 * after)
                    prefetch_write(marks, after)
                    k += 1
                    continue
                mark = 0
            _arrive(
                n, table, nodes, walks[k, _WALK], walks[k, _FROM], at, ~mark if mark < 0 else -1,
                steps, records, lengths, links, link_steps,
            )  # fmt: skip
            active -= 1
            for field in range(_FIELDS):
                walks[k, field] = walks[active, field]
    return active


@kernel
def _follow(
    team: Team, table: Array, nodes: Array, marks: Array, records: Array, lengths: Array,
    links: Array, link_steps: Array, all_walks: Array,
) -> None:  # fmt: skip
    """All walks from ends and nodes."""
    n = marks.size
    walks = all_walks[team.rank]
    lo, hi = share(team, n)
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        marks[v] = 0
        lengths[v] = 0
    if barrier(team):
        return
    if team.rank == 0:
        for node in range(nodes.size):
            marks[natural(np.int64(nodes[node]))] = ~node
    if barrier(team):
        return
    active = 0
    for slot in range(team.rank, 2 * nodes.size, team.size):
        v = natural(np.int64(nodes[slot // 2]))
        first = natural(np.int64(table[2 * v + slot % 2]))
        if load_relaxed(marks, first) > 0:  # walked from the other side
            continue
        active = _begin(walks, active, v, first, n + slot)
        if active == WALKS:
            active = _go_on(
                team, n, table, nodes, marks, walks, active, WALKS, records, lengths, links,
                link_steps,
            )  # fmt: skip
            if active < 0:
                return
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for v in range(natural(chunk), min(chunk + CHUNK, n)):
            one, other = np.int64(table[2 * v]), np.int64(table[2 * v + 1])
            if one >= 0 and other >= 0:
                continue
            if one < 0 and other < 0:
                store_relaxed(marks, v, (v + 1) << STEP_BITS)
                _write_path(records, lengths, v, v, 1)
                continue
            if load_relaxed(marks, v) != 0:
                continue
            store_relaxed(marks, v, (v + 1) << STEP_BITS)
            active = _begin(walks, active, v, max(one, other), v)
            if active == WALKS:
                active = _go_on(
                    team, n, table, nodes, marks, walks, active, WALKS, records, lengths, links,
                    link_steps,
                )  # fmt: skip
                if active < 0:
                    return
        chunk = next_chunk(team, n, CHUNK)
    _go_on(
        team, n, table, nodes, marks, walks, active, 1, records, lengths, links, link_steps
    )  # fmt: skip


# Nodes.  links[2 r + side] is ~end of the path, or the slot 2 r' + side' at which the walk arrives:
# it goes on from there through slot 2 r' + (1 - side').


@device
def _rank_nodes(
    n: int, nodes: Array, links: Array, link_steps: Array, state: Array, records: Array,
    lengths: Array,
) -> int:  # fmt: skip
    """Records of the walks of nodes on paths.  state: 1 on a path, 2 on a cycle; returns whether
    there is one."""
    cyclic = 0
    for start in range(nodes.size):
        if state[start] != 0:
            continue
        slot = 2 * start
        while links[natural(slot)] >= 0:
            slot = np.int64(links[natural(slot)]) ^ 1
            if slot == 2 * start:
                break
        if links[natural(slot)] >= 0:
            cyclic = 1
            while state[slot // 2] == 0:
                state[slot // 2] = 2
                slot = np.int64(links[natural(slot)]) ^ 1
            continue
        first, toward, length = ~np.int64(links[slot]), slot, 1
        last = first
        while True:  # once for the length, once for the records
            done = length > 1
            low = min(first, last)
            distance, slot = 0, toward
            while True:  # `slot` points back to `first`
                distance += link_steps[natural(slot)]
                if done:
                    state[slot // 2] = 1
                    forward = 1 if low == first else -1
                    at = distance + 1 if low == first else length - distance
                    _write_record(records, n + slot, low, at, -forward, length)
                    _write_record(records, n + (slot ^ 1), low, at, forward, length)
                ahead = np.int64(links[natural(slot ^ 1)])
                if ahead < 0:
                    last = ~ahead
                    distance += link_steps[natural(slot ^ 1)]
                    break
                slot = ahead
            if done:
                break
            length = distance + 1
        _write_path(records, lengths, first, last, length)
    return cyclic


@device
def _weaker(weight: Any, u: int, v: int, best: Any, low: int, high: int) -> bool:
    """Whether an edge comes before the weakest so far; low < 0 means there is none."""
    if low < 0 or weight < best:
        return True
    if weight > best:
        return False
    a, b = min(u, v), max(u, v)
    return a < low or (a == low and b < high)


@device
def _cut(cuts: Array, counters: Array, lengths: Array, u: int, v: int, length: int) -> int:
    """Note that edge (u, v) of a cycle is removed, once; returns the smaller end."""
    low = min(u, v)
    if atomic_exchange(lengths, low, length) == 0:
        k = atomic_add(counters, 0, 1)
        cuts[k, 0], cuts[k, 1] = low, max(u, v)
    return low


@device
def _survey(walks: Array, bests: Array, k: int, table: Array, start: int, side: int) -> int:
    """Begin a walk that looks for the weakest edge; returns k + 1."""
    _begin(walks, k, start, np.int64(table[natural(2 * start + side)]), start)
    walks[k, _U] = -1
    bests[k] = 0
    return k + 1


@device
def _survey_on(
    team: Team, table: Array, weights: Array, marks: Array, walks: Array, bests: Array,
    active: int, wanted: int, rings: bool, records: Array, lengths: Array, cuts: Array,
    counters: Array, edges: Array, edge_weights: Array,
) -> int:  # fmt: skip
    """Take a step of every survey in turn, until fewer than `wanted` are left; returns how many.

    A survey goes round to its start and cuts the cycle there and then, leaving marks on its way
    (`rings`), or goes on to the next node and notes the weakest edge of the stretch in `edges`:
    (steps before it, its first and second vertex)."""
    turn = 0
    while active >= wanted:
        turn += 1
        if interrupted(team, turn):
            return -1
        k = 0
        while k < active:
            before, at = walks[k, _FROM], natural(walks[k, _AT])
            steps, start = walks[k, _STEPS], walks[k, _WALK]
            one, other = np.int64(table[2 * at]), np.int64(table[2 * at + 1])
            weight, after = weights[2 * at], other
            if one != before:
                weight, after = weights[2 * at + 1], one
            if weight <= bests[k] or walks[k, _U] < 0:
                u, v = walks[k, _U], walks[k, _V]
                if _weaker(weight, before, at, bests[k], min(u, v), max(u, v)):
                    bests[k] = weight
                    walks[k, _CUT], walks[k, _U], walks[k, _V] = steps - 1, before, at
            if at != start and load_relaxed(marks, at) >= 0:
                if rings:
                    store_relaxed(marks, at, ((start + 1) << STEP_BITS) | steps)
                prefetch(table, 2 * after)
                prefetch(weights, 2 * after)
                prefetch_write(marks, after)
                walks[k, _FROM], walks[k, _AT], walks[k, _STEPS] = at, after, steps + 1
                k += 1
                continue
            cut, u, v = walks[k, _CUT], walks[k, _U], walks[k, _V]
            if rings:
                low = _cut(cuts, counters, lengths, u, v, steps)
                if low == u:
                    _write_record(records, start, low, cut + 1, -1, steps)
                else:
                    _write_record(records, start, low, -cut, 1, steps)
            else:
                slot = natural(walks[k, _SLOT])
                edges[slot, 0], edges[slot, 1], edges[slot, 2] = cut, u, v
                edge_weights[slot] = bests[k]
            active -= 1
            bests[k] = bests[active]
            for field in range(_FIELDS):
                walks[k, field] = walks[active, field]
    return active


@device
def _rank_cycle_nodes(
    n: int, nodes: Array, links: Array, link_steps: Array, state: Array, records: Array,
    lengths: Array, edges: Array, edge_weights: Array, cuts: Array, counters: Array,
) -> None:  # fmt: skip
    """Records of the walks of nodes on cycles, once the weakest edge of each stretch is known."""
    for start in range(nodes.size):
        if state[start] != 2:
            continue
        length, slot = 0, 2 * start
        cut, u, v = 0, np.int64(-1), np.int64(-1)
        best = edge_weights[0]
        while True:  # `slot` points ahead
            back = np.int64(links[natural(slot)])
            steps = np.int64(link_steps[natural(slot)])
            row = min(slot, back)
            a, b = edges[row, 1], edges[row, 2]
            if _weaker(edge_weights[row], a, b, best, min(u, v), max(u, v)):
                best, cut, u, v = edge_weights[row], length + edges[row, 0], a, b
                if row != slot:  # seen from the other side
                    cut, u, v = length + steps - 1 - edges[row, 0], b, a
            length += steps
            slot = back ^ 1
            if slot == 2 * start:
                break
        low = _cut(cuts, counters, lengths, u, v, length)
        distance = 0
        while state[slot // 2] == 2:
            state[slot // 2] = 1
            at, forward = (cut + 1 - distance, -1) if low == u else (distance - cut, 1)
            _write_record(records, n + slot, low, at, forward, length)
            _write_record(records, n + (slot ^ 1), low, at, -forward, length)
            distance += link_steps[natural(slot)]
            slot = np.int64(links[natural(slot)]) ^ 1


@device
def _count(team: Team, lengths: Array, tally: Array) -> bool:
    """tally[rank] = vertices of the paths whose ids are in this member's share."""
    lo, hi = share(team, lengths.size)
    total = np.int64(0)
    for v in range(natural(lo), hi):
        total += lengths[v]
    tally[team.rank] = total
    return barrier(team)


@kernel
def _resolve(
    team: Team, table: Array, weights: Array, nodes: Array, marks: Array, records: Array,
    lengths: Array, links: Array, link_steps: Array, state: Array, edges: Array,
    edge_weights: Array, cuts: Array, counters: Array, tally: Array, all_walks: Array,
    all_bests: Array,
) -> None:  # fmt: skip
    """Ranks nodes, cuts cycles.  Afterwards all records are known, and `tally` is right."""
    n = marks.size
    walks, bests = all_walks[team.rank], all_bests[team.rank]
    if team.rank == 0:
        counters[16] = _rank_nodes(n, nodes, links, link_steps, state, records, lengths)
    if barrier(team):
        return
    if counters[16] != 0:
        active = 0
        for slot in range(team.rank, 2 * nodes.size + team.size):
            last = slot >= 2 * nodes.size  # finish those under way
            if not last:
                if slot % team.size != team.rank:
                    continue
                if state[slot // 2] != 2 or slot > links[slot]:
                    continue
                walks[active, _SLOT] = slot
                active = _survey(walks, bests, active, table, nodes[slot // 2], slot % 2)
            if active == WALKS or last:
                active = _survey_on(
                    team, table, weights, marks, walks, bests, active, 1 if last else WALKS, False,
                    records, lengths, cuts, counters, edges, edge_weights,
                )  # fmt: skip
                if active < 0:
                    return
        if barrier(team):
            return
        if team.rank == 0:
            _rank_cycle_nodes(
                n, nodes, links, link_steps, state, records, lengths, edges, edge_weights, cuts,
                counters,
            )  # fmt: skip
        if barrier(team):
            return
    if _count(team, lengths, tally):
        return
    total = 0
    for rank in range(team.size):
        total += tally[rank]
    if total == n:
        return
    active = 0
    chunk = next_chunk(team, n, CHUNK)
    while True:
        last = chunk < 0
        for v in range(natural(max(chunk, 0)), min(chunk + CHUNK, n) if not last else 1):
            if not last:
                if load_relaxed(marks, v) != 0:
                    continue
                store_relaxed(marks, v, np.int64(v + 1) << STEP_BITS)
                active = _survey(walks, bests, active, table, v, 0)
            if active == WALKS or last:
                active = _survey_on(
                    team, table, weights, marks, walks, bests, active, 1 if last else WALKS, True,
                    records, lengths, cuts, counters, edges, edge_weights,
                )  # fmt: skip
                if active < 0:
                    return
        if last:
            break
        chunk = next_chunk(team, n, CHUNK)
    if barrier(team):
        return
    _count(team, lengths, tally)


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


def forest(
    neighbours: Array, weights: Array, *, method: str = "auto", threads: int | None = None
) -> Found:
    """See matchwood.forests.linear_forest."""
    if method == "walk":
        return walk(neighbours, weights)
    if method == "doubling":
        from matchwood.forests.scans import forest_by_scans

        return forest_by_scans(neighbours, weights, threads=threads)
    clock = [time.perf_counter()]
    n, kind = neighbours.shape[0], neighbours.dtype
    table, weight = np.ascontiguousarray(neighbours), np.ascontiguousarray(weights)
    table, weight = table.reshape(-1), weight.reshape(-1)
    nodes = _sample(neighbours)
    slots = 2 * nodes.size
    team = crew(threads, work=4 * n)
    marks, lengths = np.empty(n, np.int64), np.empty(n, kind)
    records = np.empty(RECORD * (n + slots), kind)
    links, link_steps = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    walks = np.empty((team.size, WALKS, _FIELDS), np.int64)
    team.run(_follow, table, nodes, marks, records, lengths, links, link_steps, walks)
    clock.append(time.perf_counter())
    edges, edge_weights = np.empty((slots, 3), np.int64), np.empty(slots, weight.dtype)
    bests = np.empty((team.size, WALKS), weight.dtype)
    cuts = np.empty((n // 3 + 1, 2), kind)
    counters, tally = np.zeros(32, np.int64), np.zeros(team.size, np.int64)
    team.run(
        _resolve, table, weight, nodes, marks, records, lengths, links, link_steps,
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
    team: Team, indptr: Array, indices: Array, data: Array, perm: Array, place: Array,
    position: Array, dl: Array, d: Array, du: Array,
) -> None:  # fmt: skip
    lo, hi = share_rows(team, indptr)
    n = perm.size
    zero = data.dtype.type(0)
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        i = natural(np.int64(place[v]))
        before = np.int64(perm[i - 1]) if position[v] > 1 else np.int64(-1)
        after = np.int64(-1)
        if i + 1 < n:
            following = natural(np.int64(perm[i + 1]))
            if position[following] > 1:
                after = following
        lower, middle, upper = zero, zero, zero
        for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
            j = np.int64(indices[k])
            if j == v:
                middle = data[k]
            elif j == before:
                lower = data[k]
            elif j == after:
                upper = data[k]
        dl[i], d[i], du[i] = lower, middle, upper


def coefficients(
    view: Any, perm: Array, place: Array, position: Array, *, threads: int | None = None
) -> tuple[Array, Array, Array]:
    """See matchwood.forests.tridiagonal_of."""
    dl, d, du = (np.empty(view.n, view.data.dtype) for _ in range(3))
    team = crew(threads, work=view.nnz + view.n)
    team.run(_collect, *view, perm, place, position, dl, d, du)
    return dl, d, du
