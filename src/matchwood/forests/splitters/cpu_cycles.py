"""Cycles: found, cut at their weakest edge, and recorded.  The idea: cpu.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
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
from matchwood.engines.cpu.hints import natural, prefetch, prefetch_write
from matchwood.forests.cpu_weakest import weaker
from matchwood.forests.splitters.cpu_marks import (
    AT,
    COUNT,
    CUT,
    CYCLES_WITH_NODES,
    EDGES_CUT,
    FROM,
    ON_CYCLE,
    ON_PATH,
    SLOT,
    VERTICES_PER_CHUNK,
    WALK,
    WALK_WORDS,
    WALKS,
    Board,
    Cuts,
    Nodes,
    Pairs,
    Stretches,
    Surveys,
    U,
    V,
    begin,
    mark_of,
    replace,
    write_node,
    write_record,
)
from matchwood.forests.splitters.cpu_paths import rank_nodes

Array = np.ndarray[Any, Any]


@device
def _cut(cuts: Cuts, lengths: Array, u: int, v: int, length: int) -> int:
    """Record, once, that edge (u, v) of a cycle is removed; returns the smaller end."""
    low = min(u, v)
    if atomic_exchange(lengths, low, length) == 0:
        k = atomic_add(cuts.counters, EDGES_CUT, 1)
        cuts.edges[k, 0], cuts.edges[k, 1] = low, max(u, v)
    return low


@device
def _survey(surveys: Surveys, k: int, table: Array, start: int, side: int) -> int:
    """Begin a walk that looks for the weakest edge; returns k + 1."""
    walks, bests = surveys
    begin(walks, k, start, np.int64(table[natural(2 * start + side)]), start)
    walks[k, U] = -1
    bests[k] = 0
    return k + 1


@device
def _survey_on(
    team: Team, factor: Pairs, surveys: Surveys, active: int, wanted: int, rings: bool,
    board: Board, cuts: Cuts, stretches: Stretches,
) -> int:  # fmt: skip
    """Take a step of every survey in turn, until fewer than `wanted` are left; returns how many.

    With `rings` a survey goes round to its start, leaves marks on its way, and cuts the cycle.
    Without, it goes to the next node, and records the weakest edge of the stretch."""
    table, weights = factor
    marks, records, lengths = board
    walks, bests = surveys
    edges, edge_weights = stretches
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
                a, b = min(before, np.int64(at)), max(before, np.int64(at))
                if weaker(weight, a, b, bests[k], min(u, v), max(u, v)):
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
                low = _cut(cuts, lengths, u, v, steps)
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
            replace(walks, k, active, WALK_WORDS)
    return active


@device
def _rank_cycle_nodes(board: Board, nodes: Nodes, stretches: Stretches, cuts: Cuts) -> None:
    """Records of the walks of nodes on cycles, once the weakest edge of each stretch is known."""
    n, records, lengths = board.marks.size, board.records, board.lengths
    vertices, links, link_steps, state = nodes
    edges, edge_weights = stretches
    for start in range(vertices.size):
        if state[start] != ON_CYCLE:
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
            if weaker(edge_weights[row], min(a, b), max(a, b), best, min(u, v), max(u, v)):
                best, cut, u, v = edge_weights[row], length + edges[row, 0], a, b
                if row != slot:  # seen from the other side
                    cut, u, v = length + steps - 1 - edges[row, 0], b, a
            length += steps
            slot = back ^ 1
            if slot == 2 * start:
                break
        low = _cut(cuts, lengths, u, v, length)
        distance = 0
        while state[slot // 2] == ON_CYCLE:
            state[slot // 2] = ON_PATH
            at, forward = (cut + 1 - distance, -1) if low == u else (distance - cut, 1)
            write_node(records, n, slot, low, at, forward, length)
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


@device
def _survey_stretches(
    team: Team, factor: Pairs, board: Board, nodes: Nodes, surveys: Surveys, cuts: Cuts,
    stretches: Stretches,
) -> bool:  # fmt: skip
    """The weakest edge of each stretch of cycles with nodes.  True: the team stops."""
    slots = 2 * nodes.vertices.size
    active = 0
    for slot in range(team.rank, slots + team.size):
        last = slot >= slots  # finish the surveys that have begun
        if not last:
            if slot % team.size != team.rank:
                continue
            if nodes.state[slot // 2] != ON_CYCLE or slot > nodes.links[slot]:
                continue
            surveys.walks[active, SLOT] = slot
            start = nodes.vertices[slot // 2]
            active = _survey(surveys, active, factor.table, start, slot % 2)
        if active == WALKS or last:
            active = _survey_on(
                team, factor, surveys, active, 1 if last else WALKS, False, board, cuts, stretches
            )
            if active < 0:
                return True
    return barrier(team)


@device
def _survey_rings(
    team: Team, factor: Pairs, board: Board, surveys: Surveys, cuts: Cuts, stretches: Stretches
) -> bool:
    """Cut the cycles that no walk has reached.  True: the team stops."""
    table, marks, n = factor.table, board.marks, board.marks.size
    active = 0
    chunk = next_chunk(team, n, VERTICES_PER_CHUNK)
    while True:
        last = chunk < 0
        end = min(chunk + VERTICES_PER_CHUNK, n) if not last else 1
        for v in range(natural(max(chunk, 0)), end):
            if not last:
                if load_relaxed(marks, v) != 0:
                    continue
                store_relaxed(marks, v, mark_of(v, 0))
                # first to the nearer neighbour, marked now: usually the loop comes to it next
                one, other = np.int64(table[2 * v]), np.int64(table[2 * v + 1])
                side = 0 if abs(one - v) <= abs(other - v) else 1
                store_relaxed(marks, one if side == 0 else other, mark_of(v, 1))
                active = _survey(surveys, active, table, v, side)
            if active == WALKS or last:
                active = _survey_on(
                    team, factor, surveys, active, 1 if last else WALKS, True, board, cuts,
                    stretches,
                )  # fmt: skip
                if active < 0:
                    return True
        if last:
            return barrier(team)
        chunk = next_chunk(team, n, VERTICES_PER_CHUNK)


@kernel
def resolve(
    team: Team, factor: Pairs, board: Board, nodes: Nodes, stretches: Stretches, cuts: Cuts,
    tally: Array, all_surveys: Surveys,
) -> None:  # fmt: skip
    """Rank the nodes and cut the cycles.  Afterwards all records and `tally` are complete."""
    n = board.marks.size
    surveys = Surveys(all_surveys.walks[team.rank], all_surveys.bests[team.rank])
    if team.rank == 0:
        cuts.counters[CYCLES_WITH_NODES] = rank_nodes(board, nodes)
    if barrier(team):
        return
    if cuts.counters[CYCLES_WITH_NODES] != 0:
        if _survey_stretches(team, factor, board, nodes, surveys, cuts, stretches):
            return
        if team.rank == 0:
            _rank_cycle_nodes(board, nodes, stretches, cuts)
        if barrier(team):
            return
    if _count(team, board.lengths, tally):
        return
    total = 0
    for rank in range(team.size):
        total += tally[rank]
    if total == n:
        return
    if _survey_rings(team, factor, board, surveys, cuts, stretches):
        return
    _count(team, board.lengths, tally)
