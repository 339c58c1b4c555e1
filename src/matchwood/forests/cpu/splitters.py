"""Walks along paths from their ends and from sampled vertices, many at once; cycles are cut.

Walks start at the ends of paths and at sampled vertices ("nodes"), so that one long path is the
work of many.  A walk marks each vertex with its own number and the steps it has taken.  It ends at
a node, at an end, or where another walk has been: the mark there says how far it is from the other
walk's start, so the distance from start to start is known.  This leaves a short list of nodes,
whose positions are then found.  When the records of all walks are known (path, position of the
start, direction), every vertex computes its position from them (__init__.py).  A thread has several
walks at a time, so that it waits for memory once for all of them.

    paths     `follow`: walks from ends and nodes
    cycles    `resolve`: positions of nodes; cycles that no walk has reached are cut

Two threads whose walks meet may each miss the other's last mark and overwrite it.  This does no
harm: a mark gives the distance from the start of its walk, so each vertex may keep either mark, and
a walk may end at any mark of the other.  So no compare-and-swap is needed, only words that are
written whole (relaxed).

The vertices that no walk has reached are on cycles without a node.  One thread walks such a cycle,
or several that all find the same.  In cycles with nodes the stretches between nodes are walked
again to find the weakest edge.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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

Array = np.ndarray[Any, Any]


# Marks.
#
# A mark of a vertex: 0, or (walk + 1) * 2^24 + steps, or ~node.  Walks that start at vertex v have
# the number v, the two of node r have n + 2 r + side.  The chance of 2^24 steps without a node is
# e^-2048.  A record of a walk: path, position at its start, +1 or -1 for each step, length of the
# path.  A walk that looks for the weakest edge of a cycle is called a survey.

WALKS = 8  # walks that a thread has at a time
VERTICES_PER_CHUNK = 4096  # vertices that a thread takes at a time

STEP_BITS = 24  # bits of a mark for the steps
STEPS = (1 << STEP_BITS) - 1  # the bits of a mark that hold the steps

# Words of a record.
PATH = 0
START = 1  # position where the walk starts
SIGN = 2  # +1 or -1 for each step
LENGTH = 3
RECORD_WORDS = 4

# Words of a walk that has not ended.
FROM = 0  # the vertex before
AT = 1  # where it is
COUNT = 2  # steps to there
WALK = 3  # its number
CUT = 4  # of a survey: steps before the weakest edge so far
U = 5  # ... and its first
V = 6  # ... and second vertex
SLOT = 7  # ... and the slot that it is stored at
WALK_WORDS = 8

# Words of `Cuts.counters`, apart so that they are in different cache lines.
EDGES_CUT = 0
CYCLES_WITH_NODES = 16  # 1 where there is one
COUNTER_WORDS = 32

# States of a node.
ON_PATH = 1
ON_CYCLE = 2


class Pairs(NamedTuple):
    """The factor: both neighbours of v, or -1, at 2 v and 2 v + 1, and the weights of the edges."""

    table: Any
    weights: Any


class Trails(NamedTuple):
    """Arrays that walks write and all threads read."""

    marks: Any  # (n,)
    records: Any  # RECORD_WORDS for each walk
    lengths: Any  # (n,) of a path, at its name; 0 at all other vertices


class Nodes(NamedTuple):
    """The sampled vertices, and what is known of the stretches between them.

    links[2 r + side] is ~end of the path, or the slot 2 r' + side' at which the walk arrives: it
    goes on from there through slot 2 r' + (1 - side')."""

    vertices: Any
    links: Any  # for each slot
    link_steps: Any  # for each slot: the distance to that
    state: Any  # for each node


class Stretches(NamedTuple):
    """The weakest edge between two nodes of a cycle, for each slot."""

    edges: Any  # (slots, 3): steps before it, its first and second vertex
    weights: Any


class Cuts(NamedTuple):
    edges: Any  # (room, 2)
    counters: Any


class Surveys(NamedTuple):
    """The walks of a member that look for weakest edges."""

    walks: Any  # (WALKS, WALK_WORDS)
    bests: Any  # (WALKS,) the least weight so far


@device
def mark_of(walk: int, steps: int) -> int:
    return ((walk + 1) << STEP_BITS) | steps


@device
def begin(walks: Array, k: int, before: int, at: int, walk: int) -> int:
    walks[k, FROM], walks[k, AT], walks[k, COUNT], walks[k, WALK] = before, at, 1, walk
    return k + 1


@device
def replace(walks: Array, k: int, last: int, words: int) -> None:
    """Walk k has ended: copy the `words` words of the last walk to its place."""
    for field in range(words):
        walks[k, field] = walks[last, field]


@device
def write_record(records: Array, walk: int, path: int, start: int, sign: int, length: int) -> None:
    at = natural(RECORD_WORDS * walk)
    records[at + PATH] = path
    records[at + START] = start
    records[at + SIGN] = sign
    records[at + LENGTH] = length


@device
def write_node(
    records: Array, n: int, slot: int, path: int, position: int, sign: int, length: int
) -> None:
    """The records of both walks of a node at that position; the one of `slot` changes by `sign`."""
    write_record(records, n + slot, path, position, sign, length)
    write_record(records, n + (slot ^ 1), path, position, -sign, length)


@device
def write_path(trails: Trails, one: int, other: int, length: int) -> None:
    records, lengths = trails.records, trails.lengths
    low, high = min(one, other), max(one, other)
    write_record(records, high, low, length, -1, length)
    write_record(records, low, low, 1, 1, length)
    store_relaxed(lengths, low, length)


# Paths.


@device
def _join(n: int, one: int, other: int, distance: int, trails: Trails, nodes: Nodes) -> None:
    """Two walks have met; `distance` is from start to start.  A walk >= n is a slot of a node."""
    links, link_steps = nodes.links, nodes.link_steps
    if one < n and other < n:
        write_path(trails, one, other, distance + 1)
        return
    if one >= n:
        store_relaxed(links, one - n, ~other if other < n else other - n)
        store_relaxed(link_steps, one - n, distance)
    if other >= n:
        store_relaxed(links, other - n, ~one if one < n else one - n)
        store_relaxed(link_steps, other - n, distance)


@device
def _go_on(
    team: Team, table: Array, trails: Trails, nodes: Nodes, walks: Array, active: int, wanted: int
) -> int:
    """Step all walks in turn, until fewer than `wanted` are left; returns the number left."""
    marks = trails.marks
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
                _join(n, walk, at, steps, trails, nodes)
            elif mark > 0:  # another walk's: it started from the other side
                other = (mark >> STEP_BITS) - 1
                distance = steps + (mark & STEPS)
                _join(n, walk, other, distance, trails, nodes)
            else:
                slot = 2 * ~mark + (0 if table[2 * at] == before else 1)
                _join(n, walk, n + slot, steps, trails, nodes)
            active -= 1
            replace(walks, k, active, WALK + 1)
    return active


@kernel
def follow(team: Team, table: Array, trails: Trails, nodes: Nodes, all_walks: Array) -> None:
    """All walks from nodes and ends.  Afterwards marks are 0 on cycles without a node only."""
    marks, lengths, vertices = trails.marks, trails.lengths, nodes.vertices
    n = marks.size
    slots = 2 * vertices.size
    walks = all_walks[team.me]
    lo, hi = share(team, n)
    for i in range(natural(lo), hi):
        if interrupted(team, i):
            return
        marks[i] = 0
        lengths[i] = 0
    if barrier(team):
        return
    if team.me == 0:
        for node in range(vertices.size):
            marks[natural(np.int64(vertices[node]))] = ~node
    if barrier(team):
        return
    # first this thread's slots, then chunks of vertices, last an empty turn that ends all walks
    active: Any = 0
    v: Any = np.int64(team.me)
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
                    write_path(trails, at, at, 1)
                elif (one < 0 or other < 0) and load_relaxed(marks, at) == 0:
                    store_relaxed(marks, at, mark_of(at, 0))
                    active = begin(walks, active, at, max(one, other), at)
            v += step
        if active == WALKS or last:
            active = _go_on(team, table, trails, nodes, walks, active, 1 if last else WALKS)
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
def _rank_nodes(trails: Trails, nodes: Nodes) -> int:
    """Write the records of nodes on paths, and the state of all; 1 if a node is on a cycle."""
    n, records = trails.marks.size, trails.records
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
        write_path(trails, first, last, length)
    return cyclic


# Cycles.


@device
def weaker(weight: Any, a: int, b: int, best: Any, low: int, high: int) -> bool:
    """Whether {a, b} comes before {low, high} of weight `best`, a < b; low < 0: no edge yet."""
    return low < 0 or weight < best or (weight == best and (a < low or (a == low and b < high)))


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
    trails: Trails, cuts: Cuts, stretches: Stretches,
) -> int:  # fmt: skip
    """Step all surveys in turn, until fewer than `wanted` are left; returns the number left.

    With `rings` a survey goes round to its start, leaves marks on its way, and cuts the cycle.
    Without, it goes to the next node, and records the weakest edge of the stretch."""
    table, weights = factor
    marks, records, lengths = trails
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
def _rank_cycle_nodes(trails: Trails, nodes: Nodes, stretches: Stretches, cuts: Cuts) -> None:
    """Write the records of nodes on cycles; the weakest edge of each stretch is known."""
    n, records, lengths = trails.marks.size, trails.records, trails.lengths
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
def _survey_stretches(
    team: Team, factor: Pairs, trails: Trails, nodes: Nodes, surveys: Surveys, cuts: Cuts,
    stretches: Stretches,
) -> bool:  # fmt: skip
    """The weakest edge of each stretch of cycles with nodes.  True: the team stops."""
    slots = 2 * nodes.vertices.size
    active = 0
    for slot in range(team.me, slots + team.size):
        last = slot >= slots  # finish the surveys that have begun
        if not last:
            if slot % team.size != team.me:
                continue
            if nodes.state[slot // 2] != ON_CYCLE or slot > nodes.links[slot]:
                continue
            surveys.walks[active, SLOT] = slot
            start = nodes.vertices[slot // 2]
            active = _survey(surveys, active, factor.table, start, slot % 2)
        if active == WALKS or last:
            active = _survey_on(
                team, factor, surveys, active, 1 if last else WALKS, False, trails, cuts, stretches
            )
            if active < 0:
                return True
    return barrier(team)


@device
def _survey_rings(
    team: Team, factor: Pairs, trails: Trails, surveys: Surveys, cuts: Cuts, stretches: Stretches
) -> bool:
    """Cut the cycles that no walk has reached.  True: the team stops."""
    table, marks, n = factor.table, trails.marks, trails.marks.size
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
                # first to the nearer neighbour, marked now: usually the loop reaches it next
                one, other = np.int64(table[2 * v]), np.int64(table[2 * v + 1])
                side = 0 if abs(one - v) <= abs(other - v) else 1
                store_relaxed(marks, one if side == 0 else other, mark_of(v, 1))
                active = _survey(surveys, active, table, v, side)
            if active == WALKS or last:
                active = _survey_on(
                    team, factor, surveys, active, 1 if last else WALKS, True, trails, cuts,
                    stretches,
                )  # fmt: skip
                if active < 0:
                    return True
        if last:
            return barrier(team)
        chunk = next_chunk(team, n, VERTICES_PER_CHUNK)


@device
def _count(team: Team, lengths: Array, tally: Array) -> bool:
    """tally[member] = vertices of the paths whose ids are in this member's share."""
    lo, hi = share(team, lengths.size)
    total = np.int64(0)
    for v in range(natural(lo), hi):
        total += lengths[v]
    tally[team.me] = total
    return barrier(team)


@kernel
def resolve(
    team: Team, factor: Pairs, trails: Trails, nodes: Nodes, stretches: Stretches, cuts: Cuts,
    tally: Array, all_surveys: Surveys,
) -> None:  # fmt: skip
    """Find the positions of nodes and cut the cycles; completes all records and `tally`."""
    n = trails.marks.size
    surveys = Surveys(all_surveys.walks[team.me], all_surveys.bests[team.me])
    if team.me == 0:
        cuts.counters[CYCLES_WITH_NODES] = _rank_nodes(trails, nodes)
    if barrier(team):
        return
    if cuts.counters[CYCLES_WITH_NODES] != 0:
        if _survey_stretches(team, factor, trails, nodes, surveys, cuts, stretches):
            return
        if team.me == 0:
            _rank_cycle_nodes(trails, nodes, stretches, cuts)
        if barrier(team):
            return
    if _count(team, trails.lengths, tally):
        return
    total = 0
    for me in range(team.size):
        total += tally[me]
    if total == n:
        return
    if _survey_rings(team, factor, trails, surveys, cuts, stretches):
        return
    _count(team, trails.lengths, tally)
