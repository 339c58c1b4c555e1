"""Vertex separators by a multilevel method, one piece of the graph for each member at a time.

A piece is a range of vertices without edges to the others.  One try for one piece (`_separate`):

    coarsen     heavy edges are matched and contracted, until few vertices are left
    grow        a region grows from a vertex; the vertices around it are the separator
    refine      on every level, in sweeps after Fiduccia and Mattheyses

A sweep goes to one side: again and again the vertex of the separator whose move makes it lightest
moves there, and its neighbours on the other side enter the separator.  So the separator travels
through the graph, over hills too; the sweep ends some moves after the best place, and goes back to
it.  Moves to both sides in turns stay where they are: with them the separators of
bench/ordering/elimination.py were 8 % heavier, and L took 20 % more operations.

The first levels are made once.  From the middle on, where the graph is small, several attempts are
made with other matchings and regions, and the best of them goes on.

All that a try decides depends on the piece and on its seed, so that pieces and tries can be shared
among the members in any order.  Each member has arrays of its own; there are no races.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import crew, device, interrupted, kernel, next_chunk, stopping
from matchwood.partitioning.separator import Pieces
from matchwood.primitives.hashing.cpu import hash2

Array = np.ndarray[Any, Any]

# Measured: bench/ordering/elimination.py, by the fill of orders that the separators give.
COARSEST = 60  # vertices at which coarsening ends
KEPT = 0.95  # a level that keeps a larger part of the vertices is not made
HEAVIEST = 1.5  # times the total weight / COARSEST: what matched vertices may weigh together
UNMATCHED = 10  # pairs two hops apart are made where more than one vertex in this many is unmatched
LEVELS = 60  # at most
ROOM = 3  # times the vertices and entries of the piece: what all levels may have together
MIDDLE = 16  # the vertices fall to one in this many before the attempts part
ATTEMPTS = 3  # 5 take a sixth more time, for the same fill
GROWN = 5  # regions on the coarsest level of an attempt
SWEEPS = 16  # on a level, at most; two in a row that gain nothing are the last
PATIENCE = 3  # times the vertices of the separator: moves of a sweep after the best one
LEAST_PATIENCE, MOST_PATIENCE = 50, 300  # moves

WORD = np.int64(32)  # bits of a vertex in a key
LOW = np.int64((1 << 32) - 1)
BOTH = 2  # the side of the separator
STEPS = 20  # of a team for each entry of a piece: about how often a try looks at it

# words of a member: the weight of each side, the sizes of heap and log, the best state so far of
# the attempts and of the regions
SIDE_0, SIDE_1, IN_BOTH, HEAPED, LOGGED, BEST, BEST_GROWN, WORDS = 0, 1, 2, 3, 4, 5, 8, 11


class Space(NamedTuple):
    """The arrays of a member: all levels behind each other, then scratch for one level."""

    first: Array  # the first vertex of each level
    indptr: Array
    indices: Array
    edge: Array  # weights of the entries
    weight: Array  # of the vertices
    coarse: Array  # the vertex of the next level
    side: Array
    mate: Array  # scratch from here on; -1 for a vertex without one
    slot: Array
    grown: Array  # the best sides of the regions
    kept: Array  # and of the attempts
    near: Array  # of separator vertices: the weight of the neighbours ahead, less their own
    keys: Array  # a heap of (near, vertex)
    where: Array  # of each vertex in the heap, -1 outside
    log: Array  # 2 v of what moved, 2 v + 1 of what then entered the separator
    words: Array


class Piece(NamedTuple):
    """One level of a piece."""

    indptr: Array
    indices: Array
    edge: Array
    weight: Array
    side: Array


# Coarsening


@device
def _match(team: Any, g: Any, s: Any, heaviest: Any, seed: Any) -> Any:
    """Match along heavy edges, vertices in random order; returns the number of coarse vertices."""
    n = g.weight.size
    order, mate = s.slot, s.mate
    for v in range(n):
        if interrupted(team, v):
            return n
        j = np.int64(hash2(v, n, seed) % np.uint64(v + 1))
        order[v] = order[j]
        order[j] = v
        mate[v] = -1
    left = n
    for k in range(n):
        if interrupted(team, k):
            return n
        v = order[k]
        if mate[v] >= 0:
            continue
        chosen, most = np.int64(-1), np.int64(0)
        for e in range(g.indptr[v], g.indptr[v + 1]):
            u = np.int64(g.indices[e])
            if mate[u] < 0 and g.edge[e] > most and g.weight[v] + g.weight[u] <= heaviest:
                chosen, most = u, np.int64(g.edge[e])
        if chosen >= 0:
            mate[v], mate[chosen] = chosen, v
            left -= 1
    if UNMATCHED * (2 * left - n) > n:
        left -= _match_two_hops(team, g, s, heaviest)
    return left


@device
def _match_two_hops(team: Any, g: Any, s: Any, heaviest: Any) -> Any:
    """Free vertices whose heaviest edge leads to the same vertex are matched, two by two."""
    n = g.weight.size
    waiting, mate = s.slot, s.mate
    for v in range(n + 1):
        waiting[v] = -1
    found = 0
    for v in range(n):
        if interrupted(team, v):
            return found
        if mate[v] >= 0:
            continue
        hub, most = np.int64(n), np.int64(0)  # n: those without edges
        for e in range(g.indptr[v], g.indptr[v + 1]):
            if g.edge[e] > most:
                hub, most = np.int64(g.indices[e]), np.int64(g.edge[e])
        u = waiting[hub]
        if u >= 0 and g.weight[u] + g.weight[v] <= heaviest:
            mate[u], mate[v] = v, u
            waiting[hub] = -1
            found += 1
        else:
            waiting[hub] = v
    return found


@device
def _contract(team: Any, g: Any, s: Any, at: Any, level: Any) -> bool:
    """Write the next level behind this one; False where there is no room."""
    n = g.weight.size
    coarse = s.coarse[at : at + n]
    count = 0
    for v in range(n):
        if s.mate[v] < 0 or s.mate[v] > v:
            coarse[v] = count
            s.weight[at + n + count] = g.weight[v]
            count += 1
        else:
            coarse[v] = coarse[s.mate[v]]
            s.weight[at + n + coarse[v]] += g.weight[v]
    for c in range(count):
        s.slot[c] = -1
    begin = at + n + level + 1
    entry = g.indptr[n]
    s.indptr[begin] = entry
    room = s.indices.size
    c = 0
    for v in range(n):
        if interrupted(team, v):
            return False
        if s.mate[v] >= 0 and s.mate[v] < v:
            continue
        first = entry
        u = np.int64(v)
        while True:
            for e in range(g.indptr[u], g.indptr[u + 1]):
                to = coarse[g.indices[e]]
                if to == c:
                    continue
                if s.slot[to] < first:
                    if entry == room:
                        return False
                    s.slot[to] = entry
                    s.indices[entry] = to
                    s.edge[entry] = g.edge[e]
                    entry += 1
                else:
                    s.edge[s.slot[to]] += g.edge[e]
            if u != v or s.mate[v] < 0:
                break
            u = np.int64(s.mate[v])
        c += 1
        s.indptr[begin + c] = entry
    return True


# Moves


@device
def _up(s: Any, at: Any, key: Any) -> None:
    while at > 0:
        above = (at - 1) >> 1
        if s.keys[above] <= key:
            break
        s.keys[at] = s.keys[above]
        s.where[s.keys[at] & LOW] = at
        at = above
    s.keys[at] = key
    s.where[key & LOW] = at


@device
def _pop(s: Any) -> Any:
    """The vertex of the least key, which leaves the heap."""
    v = s.keys[0] & LOW
    s.where[v] = -1
    s.words[HEAPED] -= 1
    count = s.words[HEAPED]
    if count == 0:
        return v
    key, at = s.keys[count], np.int64(0)
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and s.keys[below + 1] < s.keys[below]:
            below += 1
        if s.keys[below] >= key:
            break
        s.keys[at] = s.keys[below]
        s.where[s.keys[at] & LOW] = at
        at = below
    s.keys[at] = key
    s.where[key & LOW] = at
    return v


@device
def _enter(g: Any, s: Any, u: Any, other: Any) -> None:
    """Put a vertex of the separator into the heap: its key is what its move adds to the weight."""
    near = -np.int64(g.weight[u])
    for e in range(g.indptr[u], g.indptr[u + 1]):
        if g.side[g.indices[e]] == other:
            near += g.weight[g.indices[e]]
    s.near[u] = near
    s.words[HEAPED] += 1
    _up(s, s.words[HEAPED] - 1, (near << WORD) | np.int64(u))


@device
def _move(g: Any, s: Any, v: Any, to: Any) -> None:
    """Move v from the separator to a side; its neighbours on the other side enter."""
    other = 1 - to
    words = s.words
    g.side[v] = to
    words[to] += g.weight[v]
    words[IN_BOTH] -= g.weight[v]
    s.log[words[LOGGED]] = 2 * np.int64(v)
    words[LOGGED] += 1
    for e in range(g.indptr[v], g.indptr[v + 1]):
        u = g.indices[e]
        if g.side[u] != other:
            continue
        g.side[u] = BOTH
        words[other] -= g.weight[u]
        words[IN_BOTH] += g.weight[u]
        s.log[words[LOGGED]] = 2 * np.int64(u) + 1
        words[LOGGED] += 1
        for f in range(g.indptr[u], g.indptr[u + 1]):
            x = g.indices[f]
            if g.side[x] == BOTH and s.where[x] >= 0:
                s.near[x] -= g.weight[u]
                _up(s, np.int64(s.where[x]), (np.int64(s.near[x]) << WORD) | np.int64(x))
        _enter(g, s, u, other)


@device
def _forget(g: Any, s: Any, to: Any, first: Any) -> None:
    """Take back all moves of the log from there on, the last one first."""
    words = s.words
    while words[LOGGED] > first:
        words[LOGGED] -= 1
        v = s.log[words[LOGGED]] >> 1
        if s.log[words[LOGGED]] & 1:
            g.side[v] = 1 - to
            words[1 - to] += g.weight[v]
            words[IN_BOTH] -= g.weight[v]
        else:
            g.side[v] = BOTH
            words[to] -= g.weight[v]
            words[IN_BOTH] += g.weight[v]


@device
def _empty(s: Any, n: Any) -> None:
    s.words[HEAPED] = s.words[LOGGED] = 0
    for v in range(n):
        s.where[v] = -1


@device
def _excess(words: Array, limit: Any) -> Any:
    return max(np.int64(0), max(words[SIDE_0], words[SIDE_1]) - limit)


@device
def _grow(team: Any, g: Any, s: Any, seed: Any) -> None:
    """Side 0 grows from random vertices, by least growth of the separator, to half of the rest."""
    n = g.weight.size
    words = s.words
    _empty(s, n)
    words[SIDE_0] = words[SIDE_1] = words[IN_BOTH] = 0
    for v in range(n):
        g.side[v] = 1
        words[SIDE_1] += g.weight[v]
    start = np.int64(hash2(n, 0, seed) % np.uint64(n))
    passed = 0
    while words[SIDE_0] < words[SIDE_1] and not interrupted(team, words[LOGGED]):
        if words[HEAPED] == 0:
            while passed < n and g.side[start] != 1:
                start = start + 1 if start + 1 < n else 0
                passed += 1
            if passed == n:
                return
            g.side[start] = BOTH
            words[SIDE_1] -= g.weight[start]
            words[IN_BOTH] += g.weight[start]
            _enter(g, s, start, 1)
            continue
        _move(g, s, _pop(s), 0)


@device
def _sweep(team: Any, g: Any, s: Any, limit: Any, to: Any) -> bool:
    """Move the separator towards the other side, by the best move each time, and back to where it
    was best; True if that is somewhere else."""
    n = g.weight.size
    words = s.words
    _empty(s, n)
    for v in range(n):
        if g.side[v] == BOTH:
            _enter(g, s, v, 1 - to)
    patience = min(max(PATIENCE * words[HEAPED], LEAST_PATIENCE), MOST_PATIENCE)
    best_excess, best = _excess(words, limit), words[IN_BOTH]
    difference = abs(words[SIDE_0] - words[SIDE_1])
    kept, moves, last = np.int64(0), 0, 0
    while moves - last < patience and words[HEAPED] > 0:
        if interrupted(team, moves):
            break
        moves += 1
        v = s.keys[0] & LOW
        if words[to] + g.weight[v] > limit:
            break
        _move(g, s, _pop(s), to)
        excess, apart = _excess(words, limit), abs(words[SIDE_0] - words[SIDE_1])
        better = excess < best_excess
        if excess == best_excess:
            better = words[IN_BOTH] < best or (words[IN_BOTH] == best and apart < difference)
        if better:
            best_excess, best, difference = excess, words[IN_BOTH], apart
            kept, last = words[LOGGED], moves
    _forget(g, s, to, kept)
    return kept > 0


@device
def _refine(team: Any, g: Any, s: Any, limit: Any) -> None:
    """Sweep to the lighter side, then in turns, until neither gains."""
    to = 0 if s.words[SIDE_0] <= s.words[SIDE_1] else 1
    failed = 0
    for _ in range(SWEEPS):
        if stopping(team) or failed == 2:
            return
        failed = 0 if _sweep(team, g, s, limit, to) else failed + 1
        to = 1 - to


@device
def _piece(s: Any, level: Any) -> Any:
    at, end = s.first[level], s.first[level + 1]
    return Piece(
        s.indptr[at + level : end + level + 1], s.indices, s.edge, s.weight[at:end],
        s.side[at:end],
    )  # fmt: skip


@device
def _coarsen(team: Any, s: Any, level: Any, until: Any, heaviest: Any, seed: Any) -> Any:
    """Make further levels behind this one; returns the last."""
    first = s.first
    while level + 1 < LEVELS and not stopping(team):
        at, n = first[level], first[level + 1] - first[level]
        if n <= until:
            break
        g = _piece(s, level)
        count = _match(team, g, s, heaviest, seed + np.uint64(level))
        if count > KEPT * n or at + n + count > s.weight.size:
            break
        if not _contract(team, g, s, at, level):
            break
        level += 1
        first[level + 1] = at + n + count
    return level


@device
def _climb(team: Any, s: Any, level: Any, to: Any, limit: Any) -> None:
    """Refine the sides of a level, then those of the finer ones up to `to`."""
    while not stopping(team):
        g = _piece(s, level)
        _weigh(g, s)
        _refine(team, g, s, limit)
        if level == to:
            return
        below, at = s.first[level], s.first[level - 1]
        for v in range(at, below):
            s.side[v] = s.side[below + s.coarse[v]]
        level -= 1


@device
def _weigh(g: Any, s: Any) -> None:
    """The weight of each side."""
    s.words[SIDE_0] = s.words[SIDE_1] = s.words[IN_BOTH] = 0
    for v in range(g.weight.size):
        s.words[g.side[v]] += g.weight[v]


@device
def _copy(values: Array, to: Array, count: Any) -> None:
    for k in range(count):  # an assignment of slices would allocate
        to[k] = values[k]


@device
def _keep_better(s: Any, limit: Any, sides: Array, kept: Array, at: Any) -> None:
    """Keep these sides if they are better than what is kept, whose costs are words[at], ..."""
    words = s.words
    excess, apart = _excess(words, limit), abs(words[SIDE_0] - words[SIDE_1])
    better = words[at] < 0 or excess < words[at]
    if excess == words[at]:
        better = words[IN_BOTH] < words[at + 1] or (
            words[IN_BOTH] == words[at + 1] and apart < words[at + 2]
        )
    if better:
        words[at], words[at + 1], words[at + 2] = excess, words[IN_BOTH], apart
        _copy(sides, kept, sides.size)


@device
def _separate(team: Any, s: Any, limit: Any, total: Any, seed: Any) -> None:
    """All of a try: the piece is level 0 of the space, its sides are the answer."""
    heaviest = max(np.int64(1), np.int64(HEAVIEST * total / COARSEST))
    middle = _coarsen(team, s, 0, max(COARSEST, s.first[1] // MIDDLE), heaviest, seed)
    g = _piece(s, middle)
    s.words[BEST] = -1
    for attempt in range(ATTEMPTS):
        key = hash2(attempt, middle, seed)
        last = _coarsen(team, s, middle, COARSEST, heaviest, key)
        if stopping(team):
            return
        small = _piece(s, last)
        s.words[BEST_GROWN] = -1
        for start in range(GROWN):
            if stopping(team):
                return
            _grow(team, small, s, hash2(start, last, key))
            _refine(team, small, s, limit)
            _keep_better(s, limit, small.side, s.grown, BEST_GROWN)
        _copy(s.grown, small.side, small.side.size)
        _climb(team, s, last, middle, limit)
        _keep_better(s, limit, g.side, s.kept, BEST)
    _copy(s.kept, g.side, g.side.size)
    _climb(team, s, middle, 0, limit)


@kernel
def _separate_all(
    team: Any, pieces: Pieces, start: Array, tries: int, space: Space, side: Array, costs: Array
) -> None:
    """side[try], costs[try]: the answer of each try for each piece, and what it costs.

    Where sides are given to start from, they are refined.
    """
    begins, me = pieces.begins, team.me
    count = begins.size - 1
    while True:
        task = next_chunk(team, count * tries, 1)
        if task < 0:
            return
        piece, attempt = task // tries, task % tries
        low, n = begins[piece], begins[piece + 1] - begins[piece]
        base = pieces.indptr[low]
        m = pieces.indptr[low + n] - base
        s = Space(
            space.first[me], space.indptr[me], space.indices[me, : ROOM * m + ROOM],
            space.edge[me], space.weight[me, : ROOM * n + ROOM], space.coarse[me],
            space.side[me], space.mate[me], space.slot[me], space.grown[me], space.kept[me],
            space.near[me], space.keys[me], space.where[me], space.log[me], space.words[me],
        )  # fmt: skip
        total = np.int64(0)
        for v in range(n):
            if interrupted(team, v):
                return
            s.weight[v] = pieces.weight[low + v]
            total += s.weight[v]
            s.indptr[v] = pieces.indptr[low + v] - base
        s.indptr[n] = m
        for e in range(m):
            if interrupted(team, e):
                return
            s.indices[e] = pieces.indices[base + e] - low
            s.edge[e] = 1
        s.first[0], s.first[1] = 0, n
        limit = pieces.limits[piece]
        if start.size > 0:
            _copy(start[low : low + n], s.side, n)
            _climb(team, s, 0, 0, limit)
        else:
            _separate(team, s, limit, total, hash2(attempt, n, pieces.seeds[piece]))
        if stopping(team):
            return
        _copy(s.side, side[attempt, low : low + n], n)
        costs[attempt, piece, 0] = _excess(s.words, limit)
        costs[attempt, piece, 1] = s.words[IN_BOTH]
        costs[attempt, piece, 2] = abs(s.words[SIDE_0] - s.words[SIDE_1])


def separate(
    pieces: Pieces, start: Array, tries: int, threads: int | None = None
) -> tuple[Array, Array]:
    """side[try] of each vertex; (excess, weight, difference of the sides) of each try and piece."""
    begins, n = pieces.begins, pieces.weight.size
    count = begins.size - 1
    largest = int(np.diff(begins).max(initial=0))
    most = int((pieces.indptr[begins[1:]] - pieces.indptr[begins[:-1]]).max(initial=0))
    work = STEPS * (pieces.indices.size + n) * tries
    team = crew(min(crew(threads, work=work).size, count * tries), work=work)
    side, costs = np.zeros((tries, n), np.int8), np.zeros((tries, count, 3), np.int64)
    space = _space(team.size, largest, most)
    team.run(_separate_all, pieces, start, tries, space, side, costs)
    return side, costs


def _space(size: int, n: int, m: int) -> Space:
    room, entries = ROOM * n + ROOM, ROOM * m + ROOM
    lengths = {
        "first": (LEVELS + 2, np.int64), "indptr": (room + LEVELS + 1, np.int64),
        "indices": (entries, np.int32), "edge": (entries, np.int32), "weight": (room, np.int64),
        "coarse": (room, np.int32), "side": (room, np.int8), "mate": (n, np.int32),
        "slot": (n + 1, np.int64), "grown": (n, np.int8), "kept": (n, np.int8),
        "near": (n, np.int64), "keys": (n, np.int64), "where": (n, np.int32),
        "log": (2 * n, np.int64), "words": (WORDS, np.int64),
    }  # fmt: skip
    return Space(**{name: np.empty((size, k), kind) for name, (k, kind) in lengths.items()})
