"""Cycles: found, cut at their weakest edge, and recorded.  The idea: cpu.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.forests.cpu_marks import (
    AT,
    CHUNK,
    COUNT,
    CUT,
    FIELDS,
    FROM,
    SLOT,
    WALK,
    WALKS,
    U,
    V,
    begin,
    mark_of,
    write_record,
)
from matchwood.forests.cpu_paths import rank_nodes
from matchwood.primitives.cpu_hints import natural, prefetch, prefetch_write
from matchwood.teams import (
    Team,
    atomic_add,
    atomic_exchange,
    barrier,
    device,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    store_relaxed,
)

Array = np.ndarray[Any, Any]


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
    begin(walks, k, start, np.int64(table[natural(2 * start + side)]), start)
    walks[k, U] = -1
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
            before, at = walks[k, FROM], natural(walks[k, AT])
            steps, start = walks[k, COUNT], walks[k, WALK]
            one, other = np.int64(table[2 * at]), np.int64(table[2 * at + 1])
            weight, after = weights[2 * at], other
            if one != before:
                weight, after = weights[2 * at + 1], one
            if weight <= bests[k] or walks[k, U] < 0:
                u, v = walks[k, U], walks[k, V]
                if _weaker(weight, before, at, bests[k], min(u, v), max(u, v)):
                    bests[k] = weight
                    walks[k, CUT], walks[k, U], walks[k, V] = steps - 1, before, at
            if at != start and load_relaxed(marks, at) >= 0:
                if rings:
                    store_relaxed(marks, at, mark_of(start, steps))
                prefetch(table, 2 * after)
                prefetch(weights, 2 * after)
                prefetch_write(marks, after)
                walks[k, FROM], walks[k, AT], walks[k, COUNT] = at, after, steps + 1
                k += 1
                continue
            cut, u, v = walks[k, CUT], walks[k, U], walks[k, V]
            if rings:
                low = _cut(cuts, counters, lengths, u, v, steps)
                if low == u:
                    write_record(records, start, low, cut + 1, -1, steps)
                else:
                    write_record(records, start, low, -cut, 1, steps)
            else:
                slot = natural(walks[k, SLOT])
                edges[slot, 0], edges[slot, 1], edges[slot, 2] = cut, u, v
                edge_weights[slot] = bests[k]
            active -= 1
            bests[k] = bests[active]
            for field in range(FIELDS):
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
        length: Any = 0
        slot: Any = 2 * start
        cut: Any = 0
        u: Any = np.int64(-1)
        v: Any = np.int64(-1)
        best = edge_weights[0]
        while True:  # `slot` points ahead
            back = np.int64(links[natural(slot)])
            steps = np.int64(link_steps[natural(slot)])
            row: Any = min(slot, back)
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
            write_record(records, n + slot, low, at, forward, length)
            write_record(records, n + (slot ^ 1), low, at, -forward, length)
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
def resolve(
    team: Team, table: Array, weights: Array, nodes: Array, marks: Array, records: Array,
    lengths: Array, links: Array, link_steps: Array, state: Array, edges: Array,
    edge_weights: Array, cuts: Array, counters: Array, tally: Array, all_walks: Array,
    all_bests: Array,
) -> None:  # fmt: skip
    """Ranks nodes, cuts cycles.  Afterwards all records are known, and `tally` is right."""
    n = marks.size
    walks, bests = all_walks[team.rank], all_bests[team.rank]
    if team.rank == 0:
        counters[16] = rank_nodes(n, nodes, links, link_steps, state, records, lengths)
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
                walks[active, SLOT] = slot
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
                store_relaxed(marks, v, mark_of(v, 0))
                # first to the nearer neighbour, which is marked at once: as a rule it comes next
                one, other = np.int64(table[2 * v]), np.int64(table[2 * v + 1])
                side = 0 if abs(one - v) <= abs(other - v) else 1
                store_relaxed(marks, one if side == 0 else other, mark_of(v, 1))
                active = _survey(walks, bests, active, table, v, side)
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
