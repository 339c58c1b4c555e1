"""Walks from the ends of paths and from sampled vertices ("nodes").  The idea: cpu.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    Team,
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
from matchwood.forests.splitters.cpu_marks import (
    AT,
    COUNT,
    FROM,
    ON_CYCLE,
    ON_PATH,
    STEP_BITS,
    STEPS,
    VERTICES_PER_CHUNK,
    WALK,
    WALKS,
    Board,
    Nodes,
    begin,
    mark_of,
    replace,
    write_node,
    write_path,
)

Array = np.ndarray[Any, Any]


@device
def _join(n: int, one: int, other: int, distance: int, board: Board, nodes: Nodes) -> None:
    """Two walks have met; `distance` is from start to start.  A walk >= n is a slot of a node."""
    links, link_steps = nodes.links, nodes.link_steps
    if one < n and other < n:
        write_path(board, one, other, distance + 1)
        return
    if one >= n:
        store_relaxed(links, one - n, ~other if other < n else other - n)
        store_relaxed(link_steps, one - n, distance)
    if other >= n:
        store_relaxed(links, other - n, ~one if one < n else one - n)
        store_relaxed(link_steps, other - n, distance)


@device
def _go_on(
    team: Team, table: Array, board: Board, nodes: Nodes, walks: Array, active: int, wanted: int
) -> int:
    """Take a step of every walk in turn, until fewer than `wanted` are left; returns how many."""
    marks = board.marks
    n = marks.size
    turn = 0
    while active >= wanted:
        turn += 1
        if interrupted(team, turn):
            return -1
        k = 0
        while k < active:
            at, steps, walk = natural(walks[k, AT]), walks[k, COUNT], walks[k, WALK]
            mark = load_relaxed(marks, at)
            before = walks[k, FROM]
            if mark == 0:
                store_relaxed(marks, at, mark_of(walk, steps))
                after = np.int64(table[2 * at]) + np.int64(table[2 * at + 1]) - before
                if after >= 0:
                    walks[k, FROM], walks[k, AT], walks[k, COUNT] = at, after, steps + 1
                    prefetch(table, 2 * after)
                    prefetch_write(marks, after)
                    k += 1
                    continue
                _join(n, walk, at, steps, board, nodes)
            elif mark > 0:  # another walk's: it started from the other side
                other = (mark >> STEP_BITS) - 1
                distance = steps + (mark & STEPS)
                _join(n, walk, other, distance, board, nodes)
            else:
                slot = 2 * ~mark + (0 if table[2 * at] == before else 1)
                _join(n, walk, n + slot, steps, board, nodes)
            active -= 1
            replace(walks, k, active, WALK + 1)
    return active


@kernel
def follow(team: Team, table: Array, board: Board, nodes: Nodes, all_walks: Array) -> None:
    """All walks from nodes and ends.  Afterwards marks are 0 on cycles without a node only."""
    marks, lengths, vertices = board.marks, board.lengths, nodes.vertices
    n = marks.size
    slots = 2 * vertices.size
    walks = all_walks[team.rank]
    lo, hi = share(team, n)
    for i in range(natural(lo), hi):
        if interrupted(team, i):
            return
        marks[i] = 0
        lengths[i] = 0
    if barrier(team):
        return
    if team.rank == 0:
        for node in range(vertices.size):
            marks[natural(np.int64(vertices[node]))] = ~node
    if barrier(team):
        return
    # first this thread's slots, then chunks of vertices, last an empty turn that ends all walks
    active: Any = 0
    v: Any = np.int64(team.rank)
    end: Any = np.int64(slots)
    step, of_nodes, last = np.int64(team.size), True, False
    while True:
        while v < end and active < WALKS:
            if of_nodes:
                slot = natural(v)
                node = natural(np.int64(vertices[slot // 2]))
                first = natural(np.int64(table[2 * node + slot % 2]))
                if load_relaxed(marks, first) <= 0:  # else walked from the other side
                    active = begin(walks, active, node, first, n + slot)
            else:
                at = natural(v)
                one, other = np.int64(table[2 * at]), np.int64(table[2 * at + 1])
                if one < 0 and other < 0:
                    store_relaxed(marks, at, mark_of(at, 0))
                    write_path(board, at, at, 1)
                elif (one < 0 or other < 0) and load_relaxed(marks, at) == 0:
                    store_relaxed(marks, at, mark_of(at, 0))
                    active = begin(walks, active, at, max(one, other), at)
            v += step
        if active == WALKS or last:
            active = _go_on(team, table, board, nodes, walks, active, 1 if last else WALKS)
            if active < 0:
                return
        if v >= end:
            if last:
                return
            chunk = next_chunk(team, n, VERTICES_PER_CHUNK)
            of_nodes, step = False, np.int64(1)
            v, end, last = chunk, min(chunk + VERTICES_PER_CHUNK, n), chunk < 0
            if last:
                v, end = np.int64(0), np.int64(0)


@device
def rank_nodes(board: Board, nodes: Nodes) -> int:
    """Records of the walks of nodes on paths, and the state of all nodes; returns whether one is
    on a cycle."""
    n, records = board.marks.size, board.records
    vertices, links, link_steps, state = nodes
    cyclic = 0
    for start in range(vertices.size):
        if state[start] != 0:
            continue
        slot: Any = 2 * start
        while links[natural(slot)] >= 0:
            slot = np.int64(links[natural(slot)]) ^ 1
            if slot == 2 * start:
                break
        if links[natural(slot)] >= 0:
            cyclic = 1
            while state[slot // 2] == 0:
                state[slot // 2] = ON_CYCLE
                slot = np.int64(links[natural(slot)]) ^ 1
            continue
        first, toward, length = ~np.int64(links[slot]), slot, 1
        last: Any = first
        while True:  # once for the length, once for the records
            done = length > 1
            low = min(first, last)
            distance, slot = 0, toward
            while True:  # `slot` points back to `first`
                distance += link_steps[natural(slot)]
                if done:
                    state[slot // 2] = ON_PATH
                    forward = 1 if low == first else -1
                    at = distance + 1 if low == first else length - distance
                    write_node(records, n, slot, low, at, -forward, length)
                ahead = np.int64(links[natural(slot ^ 1)])
                if ahead < 0:
                    last = ~ahead
                    distance += link_steps[natural(slot ^ 1)]
                    break
                slot = ahead
            if done:
                break
            length = distance + 1
        write_path(board, first, last, length)
    return cyclic
