"""Multilevel bisection, one try by one member of a team.  The rule: __init__.py.

A task is a graph of the batch and the number of a try.  Members take the next task that nobody has
taken; each has memory of its own for all levels of one try, so nothing is shared but the graphs,
which are only read, and a row of `sides` for each try, of which a task writes its own part.

    _shrink      pairs of vertices (heaviest edge first, then two hops), and the graph of the pairs
    _grow        a region around a vertex, up to its target
    _refine      moves between both sides, by Fiduccia and Mattheyses
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import crew, device, interrupted, kernel, next_chunk, stopping
from matchwood.primitives.hashing.cpu import hash2, mix64

Array = np.ndarray[Any, Any]

SMALLEST = 60  # vertices at which coarsening ends
REGIONS = 4  # regions that are grown on the coarsest graph of a try
PASSES = 10  # of Fiduccia and Mattheyses on a level, at most
PATIENCE = 60  # moves in a row that bring nothing new, at least, before a pass ends ...
PATIENT_PART = 32  # ... or one vertex in PATIENT_PART, where that is more
STALLED = 95  # percent of the vertices; a level that keeps more is the last
LEVELS = 64  # room for levels
ROOM = 5  # vertices and entries of all levels are at most ROOM times those of the graph
SCANS = 8  # of a row for its first edge, then its edges become a heap
SIGN = np.uint64(1 << 63)  # int64(h ^ SIGN) are in the order of h
LOOK = 1023  # moves between two looks whether the team stops: a power of two less one

NOWHERE, LOCKED = -1, -2  # places of vertices that are in no heap: may enter, may not


class Batch(NamedTuple):
    """Graphs side by side: graph b has the vertices begins[b] .. begins[b + 1] - 1."""

    indptr: Array  # int64
    indices: Array  # int32
    data: Array  # int64, weights of entries
    weights: Array  # int64, of vertices
    fixed: Array  # int8: 0 or 1 for vertices that must be on that side, -1 for others
    begins: Array  # int64
    limits: Array  # (graphs, 2) int64: what each side may weigh
    targets: Array  # int64: what side 0 is to weigh
    seeds: Array  # uint64


class Memory(NamedTuple):
    """What each member needs: the graphs of all levels, one behind the other, and scratch."""

    indptr: Array  # (members, vertices of all levels + levels)
    weights: Array
    map: Array  # the vertex of the next level that each vertex becomes part of
    fixed: Array
    side: Array
    indices: Array  # (members, entries of all levels)
    data: Array
    gain: Array  # (members, vertices of one graph)
    whole: Array  # the weight of all edges of a vertex
    hash: Array
    place: Array  # where a vertex is in the heap of its side
    log: Array  # vertices in the order in which they moved
    trial: Array
    heap: Array  # (members, 2, vertices)


class Level(NamedTuple):
    """A graph of one level."""

    indptr: Array
    indices: Array
    data: Array
    weights: Array
    fixed: Array


class Choice(NamedTuple):
    """What is known of the first edge of each vertex."""

    first: Array  # the neighbour, or -1
    left: Array  # the size of its heap; before, -1 less the scans that are to come first
    heap: Array  # the edges of each row, as places in it
    hash: Array  # of each entry that is in a heap


class Scratch(NamedTuple):
    """The scratch of one member, as long as the graph of the level."""

    gain: Array
    whole: Array
    hash: Array
    place: Array
    log: Array
    heap: Array


@device
def _level(memory: Memory, me: int, p: int, e: int, n: int) -> Level:
    """The graph whose vertices begin at p and whose entries begin at e."""
    indptr = memory.indptr[me, p : p + n + 1]
    return Level(
        indptr, memory.indices[me, e : e + indptr[n]], memory.data[me, e : e + indptr[n]],
        memory.weights[me, p : p + n], memory.fixed[me, p : p + n],
    )  # fmt: skip


# Heaps: the vertex with the largest (gain, hash, smaller vertex) on top


@device
def _before(s: Scratch, u: Any, v: Any) -> bool:
    if s.gain[u] != s.gain[v]:
        return s.gain[u] > s.gain[v]
    if s.hash[u] != s.hash[v]:
        return s.hash[u] > s.hash[v]
    return u < v


@device
def _up(s: Scratch, heap: Array, at: int) -> None:
    v = heap[at]
    while at > 0:
        above = (at - 1) >> 1
        u = heap[above]
        if not _before(s, v, u):
            break
        heap[at] = u
        s.place[u] = at
        at = above
    heap[at] = v
    s.place[v] = at


@device
def _down(s: Scratch, heap: Array, size: int, at: int) -> None:
    v = heap[at]
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and _before(s, heap[below + 1], heap[below]):
            below += 1
        u = heap[below]
        if not _before(s, u, v):
            break
        heap[at] = u
        s.place[u] = at
        at = below
    heap[at] = v
    s.place[v] = at


@device
def _insert(s: Scratch, heap: Array, size: int, v: Any) -> int:
    heap[size] = v
    _up(s, heap, size)
    return size + 1


@device
def _take_top(s: Scratch, heap: Array, size: int) -> int:
    """Take the top out of the heap and lock it; returns the new size."""
    s.place[heap[0]] = LOCKED
    size -= 1
    if size > 0:
        heap[0] = heap[size]
        _down(s, heap, size, 0)
    return size


@device
def _changed(s: Scratch, heap: Array, size: int, u: Any, more: Any) -> None:
    """The gain of u grew by `more`, or fell."""
    s.gain[u] += more
    if more > 0:
        _up(s, heap, s.place[u])
    else:
        _down(s, heap, size, s.place[u])


# Coarser graphs


@device
def _shuffle(order: Array, seed: Any) -> None:
    """A permutation of 0 .. size - 1 by the seed."""
    for i in range(order.size):
        order[i] = i
    for i in range(order.size - 1, 0, -1):
        j = np.int64(mix64(seed + np.uint64(i)) % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]


@device
def _first_edge(g: Level, mate: Array, v: Any, limit: Any, seed: Any) -> Any:
    """The free neighbour of v by the heaviest edge (equal: smaller hash) that it may join, or v."""
    best, heaviest, least = np.int64(v), np.int64(-1), np.uint64(0)
    fixed, rest = g.fixed[v], limit - g.weights[v]
    for k in range(np.uint64(g.indptr[v]), np.uint64(g.indptr[v + 1])):
        w = g.data[k]
        if w < heaviest:
            continue
        u = np.uint64(g.indices[k])
        if mate[u] >= 0 or g.fixed[u] != fixed or g.weights[u] > rest:
            continue
        h = hash2(min(np.int64(u), v), max(np.int64(u), v), seed)
        if w > heaviest or h < least:
            best, heaviest, least = np.int64(u), w, h
    return best


@device
def _earlier(g: Level, hashes: Array, a: Any, b: Any) -> bool:
    return g.data[a] > g.data[b] or (g.data[a] == g.data[b] and hashes[a] < hashes[b])


@device
def _sink(g: Level, hashes: Array, heap: Array, begin: Any, size: int, at: int) -> None:
    """Put the edge at that place of a heap, of places in the row from `begin` on, further down."""
    edge = begin + heap[at]
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and _earlier(g, hashes, begin + heap[below + 1], begin + heap[below]):
            below += 1
        if not _earlier(g, hashes, begin + heap[below], edge):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = edge - begin


@device
def _sorted_first_edge(g: Level, mate: Array, choice: Choice, v: Any, limit: Any, seed: Any) -> Any:
    """`_first_edge` by a heap of the edges of v, so that long rows are not scanned too often."""
    begin, end = g.indptr[v], g.indptr[v + 1]
    heap, size = choice.heap[begin:end], np.int64(choice.left[v])
    if size < 0:
        size = 0
        for k in range(begin, end):
            u = np.int64(g.indices[k])
            if mate[u] < 0 and g.fixed[u] == g.fixed[v] and g.weights[u] + g.weights[v] <= limit:
                choice.hash[k] = np.int64(hash2(min(u, v), max(u, v), seed) ^ SIGN)
                heap[size] = k - begin
                size += 1
        for at in range(size // 2 - 1, -1, -1):
            _sink(g, choice.hash, heap, begin, size, at)
    while size > 0 and mate[g.indices[begin + heap[0]]] >= 0:
        size -= 1
        heap[0] = heap[size]
        _sink(g, choice.hash, heap, begin, size, 0)
    choice.left[v] = size
    return np.int64(g.indices[begin + heap[0]]) if size > 0 else np.int64(v)


@device
def _kept_first_edge(g: Level, mate: Array, choice: Choice, v: Any, limit: Any, seed: Any) -> Any:
    """`_first_edge`, which stands until that neighbour is no longer free."""
    first = np.int64(choice.first[v])
    if first < 0 or mate[first] >= 0:
        if choice.left[v] < -1:
            choice.left[v] += 1
            first = _first_edge(g, mate, v, limit, seed)
        else:
            first = _sorted_first_edge(g, mate, choice, v, limit, seed)
        choice.first[v] = first
    return first


@device
def _match(
    team: Any, g: Level, mate: Array, order: Array, choice: Choice, limit: Any, seed: Any
) -> None:
    """mate[v]: the vertex that v is merged with, v itself where there is none.

    The greedy matching by (weight, hash of the ends): from v one follows first edges, each of which
    comes before the last one, to one that is the first of both its ends.  Those left over that have
    the same heaviest neighbour, or none, are paired in the order of a shuffle.
    """
    n = g.weights.size
    _shuffle(order, seed)
    for v in range(n):
        mate[v] = choice.first[v] = -1
        choice.left[v] = -1 - SCANS
    for x in range(n):
        if interrupted(team, x):  # those left are alone
            break
        while mate[x] < 0:
            u, v = np.int64(x), _kept_first_edge(g, mate, choice, x, limit, seed)
            if v == x:
                break
            w = _kept_first_edge(g, mate, choice, v, limit, seed)
            while w != u:
                u, v = v, w
                w = _kept_first_edge(g, mate, choice, v, limit, seed)
            mate[u] = v
            mate[v] = u
    waiting = choice.first  # room for one of both
    for v in range(n):
        waiting[v] = -1
    alone = -1  # a vertex without neighbours that waits for another
    for i in range(n):
        v = order[i]
        if mate[v] >= 0:
            continue
        hub, heaviest = -1, np.int64(-1)
        for k in range(g.indptr[v], g.indptr[v + 1]):
            u, w = np.int64(g.indices[k]), g.data[k]
            if w > heaviest or (w == heaviest and u < hub):
                hub, heaviest = u, w
        other = alone if hub < 0 else np.int64(waiting[hub])
        if other >= 0 and g.fixed[other] == g.fixed[v] and g.weights[other] + g.weights[v] <= limit:
            mate[v] = other
            mate[other] = v
            other = np.int64(-1)
        else:
            other = np.int64(v)
        if hub < 0:
            alone = other
        else:
            waiting[hub] = other
    for v in range(n):
        if mate[v] < 0:
            mate[v] = v


@device
def _contract(g: Level, mate: Array, map: Array, slot: Array, out: Level) -> int:
    """Make the graph of the pairs, numbered by their smaller vertices; returns how many there are.

    `slot[c]`: where the entry to c stands in the row at hand; all -1.
    """
    n = g.weights.size
    count = 0
    for v in range(n):
        if mate[v] >= v:
            map[v] = count
            map[mate[v]] = count
            count += 1
    for c in range(count):
        slot[c] = -1
    end, count = np.int64(0), 0
    out.indptr[0] = 0
    for v in range(n):
        if mate[v] < v:
            continue
        begin = end
        own = map[v]
        weight = g.weights[v]
        for turn in range(2):
            x = v
            if turn == 1:
                x = mate[v]
                if x == v:
                    break
                weight += g.weights[x]
            for k in range(np.uint64(g.indptr[x]), np.uint64(g.indptr[x + 1])):
                c = map[np.uint64(g.indices[k])]
                if c == own:
                    continue
                at = slot[np.uint64(c)]
                if at < 0:
                    slot[np.uint64(c)] = end - begin
                    out.indices[end] = c
                    out.data[end] = g.data[k]
                    end += 1
                else:
                    out.data[begin + at] += g.data[k]
        for k in range(begin, end):
            slot[out.indices[k]] = -1
        out.weights[count] = weight
        out.fixed[count] = g.fixed[v]
        count += 1
        out.indptr[count] = end
    return count


# Regions


@device
def _grow(
    g: Level, side: Array, start: int, target: Any, limit: Any, s: Scratch, seed: Any
) -> None:
    """Side 0 becomes a region around `start`: again and again the vertex tied to it most."""
    n = g.weights.size
    heap = s.heap[1]
    weight = np.int64(0)
    for v in range(n):
        side[v] = 1
        s.place[v] = LOCKED if g.fixed[v] == 1 else NOWHERE
        s.hash[v] = np.uint32(mix64(seed + np.uint64(v)))
        total = np.int64(0)
        for k in range(g.indptr[v], g.indptr[v + 1]):
            total += g.data[k]
        s.gain[v] = -total
    size, asked, v = 0, 0, -1
    for x in range(n):  # what must be in the region comes first
        if g.fixed[x] == 0:
            s.gain[x] = np.int64(1) << 60
            size = _insert(s, heap, size, x)
    while weight < target or (size > 0 and g.fixed[heap[0]] == 0):
        if size == 0:
            while asked < n and s.place[(start + asked) % n] != NOWHERE:
                asked += 1
            if asked == n:
                return
            size = _insert(s, heap, size, (start + asked) % n)
        v = np.int64(heap[0])
        size = _take_top(s, heap, size)
        if g.fixed[v] != 0 and weight + g.weights[v] > limit:
            continue
        side[v] = 0
        weight += g.weights[v]
        for k in range(g.indptr[v], g.indptr[v + 1]):
            u = g.indices[k]
            if s.place[u] == LOCKED:
                continue
            if s.place[u] == NOWHERE:
                s.gain[u] += 2 * g.data[k]
                size = _insert(s, heap, size, u)
            else:
                _changed(s, heap, size, u, 2 * g.data[k])


# Moves


@device
def _over(weight: Any, limit: Any) -> Any:
    return max(weight - limit, np.int64(0))


@device
def _weigh(g: Level, side: Array) -> Any:
    """The weights of both sides."""
    w0 = w1 = np.int64(0)
    for v in range(g.weights.size):
        if side[v] == 0:
            w0 += g.weights[v]
        else:
            w1 += g.weights[v]
    return w0, w1


@device
def _count(g: Level, side: Array, s: Scratch) -> Any:
    """The gain of each vertex and the weight of all its edges; returns the cut."""
    cut = np.int64(0)
    for v in range(g.weights.size):
        own = side[v]
        inside = outside = np.int64(0)
        for k in range(np.uint64(g.indptr[v]), np.uint64(g.indptr[v + 1])):
            if side[np.uint64(g.indices[k])] == own:
                inside += g.data[k]
            else:
                outside += g.data[k]
        cut += outside
        s.gain[v] = outside - inside
        s.whole[v] = outside + inside
    return cut // 2


@device
def _fill(g: Level, side: Array, s: Scratch, heavy: int) -> Any:
    """In the heaps those with neighbours across, or on the `heavy` side; the sizes of both."""
    size0 = size1 = 0
    for v in range(g.weights.size):
        own = side[v]
        s.place[v] = NOWHERE if g.fixed[v] < 0 else LOCKED
        if (s.gain[v] > -s.whole[v] or own == heavy) and g.fixed[v] < 0:
            if own == 0:
                size0 = _insert(s, s.heap[0], size0, v)
            else:
                size1 = _insert(s, s.heap[1], size1, v)
    return size0, size1


@device
def _pass(
    team: Any, g: Level, side: Array, cut: Any, w0: Any, w1: Any, l0: Any, l1: Any, s: Scratch
) -> tuple[Any, Any, bool]:
    """One pass of moves, and back to the best state; (excess, cut, whether it is better).

    Gains are those of the sides before and after it, also of vertices that are locked.
    """
    n = g.weights.size
    heavy = 0 if w0 > l0 else (1 if w1 > l1 else -1)
    size0, size1 = _fill(g, side, s, heavy)
    slack = np.int64(0)
    for v in range(n):
        slack = max(slack, g.weights[v])
    first_excess, first_cut = _over(w0, l0) + _over(w1, l1), cut
    best_excess, best_cut = first_excess, first_cut
    moves, best, patience = 0, 0, max(PATIENCE, n // PATIENT_PART)
    while moves - best < patience:
        if moves & LOOK == LOOK and stopping(team):
            break
        over0, over1 = w0 > l0, w1 > l1
        if over0 or over1:
            own = 0 if over0 else 1
        elif size0 == 0 or size1 == 0:
            own = 0 if size1 == 0 else 1
        else:
            own = 0 if _before(s, s.heap[0, 0], s.heap[1, 0]) else 1
        if (size0 if own == 0 else size1) == 0:
            break
        v = np.int64(s.heap[own, 0])
        w = g.weights[v]
        if own == 0:
            size0 = _take_top(s, s.heap[0], size0)
            there, after = w1 + w - l1, w0 - l0
        else:
            size1 = _take_top(s, s.heap[1], size1)
            there, after = w0 + w - l0, w1 - l1
        if there > slack and not (after > 0 and there < after):
            continue  # too heavy for the other side: it stays where it is
        side[v] = 1 - own
        w0, w1 = (w0 - w, w1 + w) if own == 0 else (w0 + w, w1 - w)
        cut -= s.gain[v]
        s.gain[v] = -s.gain[v]
        s.log[moves] = v
        moves += 1
        for k in range(np.uint64(g.indptr[v]), np.uint64(g.indptr[v + 1])):
            u = np.uint64(g.indices[k])
            more = 2 * g.data[k] if side[u] == own else -2 * g.data[k]
            if s.place[u] == LOCKED:
                s.gain[u] += more
            elif s.place[u] == NOWHERE:
                s.gain[u] += more
                if side[u] == 0:
                    size0 = _insert(s, s.heap[0], size0, u)
                else:
                    size1 = _insert(s, s.heap[1], size1, u)
            else:
                _changed(s, s.heap[side[u]], size0 if side[u] == 0 else size1, u, more)
        excess = _over(w0, l0) + _over(w1, l1)
        if excess < best_excess or (excess == best_excess and cut < best_cut):
            best_excess, best_cut, best = excess, cut, moves
    for i in range(best, moves):
        v = s.log[i]
        own = side[v]
        side[v] = 1 - own
        s.gain[v] = -s.gain[v]
        for k in range(np.uint64(g.indptr[v]), np.uint64(g.indptr[v + 1])):
            u = np.uint64(g.indices[k])
            s.gain[u] += 2 * g.data[k] if side[u] == own else -2 * g.data[k]
    better = best_excess < first_excess or best_cut < first_cut
    return best_excess, best_cut, better


@device
def _refine(team: Any, g: Level, side: Array, l0: Any, l1: Any, s: Scratch, seed: Any) -> Any:
    """Passes as long as they bring something; the excess and the cut in the end."""
    for v in range(g.weights.size):
        s.hash[v] = np.uint32(mix64(seed + np.uint64(v)))
    excess, cut = np.int64(0), _count(g, side, s)
    for _ in range(PASSES):
        if stopping(team):
            break
        w0, w1 = _weigh(g, side)
        excess, cut, better = _pass(team, g, side, cut, w0, w1, l0, l1, s)
        if not better:
            break
    return excess, cut


@device
def _copy_in(batch: Batch, b: int, memory: Memory, me: int) -> int:
    """Graph b becomes level 0, its vertices numbered from 0; returns how many it has."""
    begin = batch.begins[b]
    n = batch.begins[b + 1] - begin
    first = batch.indptr[begin]
    for v in range(n + 1):
        memory.indptr[me, v] = batch.indptr[begin + v] - first
    for v in range(n):
        memory.weights[me, v] = batch.weights[begin + v]
        memory.fixed[me, v] = batch.fixed[begin + v]
    for k in range(batch.indptr[begin + n] - first):
        memory.indices[me, k] = batch.indices[first + k] - begin
        memory.data[me, k] = batch.data[first + k]
    return np.int64(n)


@device
def _try(team: Any, batch: Batch, b: int, t: int, memory: Memory, side_out: Array) -> Any:
    """One try: coarser and coarser, regions, and back; the excess and the cut."""
    me = team.me
    s = Scratch(
        memory.gain[me], memory.whole[me], memory.hash[me], memory.place[me], memory.log[me],
        memory.heap[me],
    )  # fmt: skip
    l0, l1, target = batch.limits[b, 0], batch.limits[b, 1], batch.targets[b]
    seed = hash2(t, 0, batch.seeds[b])
    n = _copy_in(batch, b, memory, me)
    # of this graph, whatever others are in the batch
    rows, room = ROOM * n + 2 * LEVELS, ROOM * memory.indptr[me, n] + 1
    total = np.int64(0)
    for v in range(n):
        total += memory.weights[me, v]
    heaviest = max(5 * total // (2 * SMALLEST), np.int64(1))
    p, e, levels, whole = np.int64(0), np.int64(0), 0, n
    while n > SMALLEST and levels < LEVELS - 1 and not stopping(team):
        g = _level(memory, me, p, e, n)
        used = g.indptr[n]
        q = p + n + 1
        if q + n + 1 > rows or e + 2 * used > room:
            break
        out = Level(
            memory.indptr[me, q:], memory.indices[me, e + used :], memory.data[me, e + used :],
            memory.weights[me, q:], memory.fixed[me, q:],
        )  # fmt: skip
        choice = Choice(s.heap[0, :n], s.heap[1, :n], out.indices, out.data)  # not made yet
        turn = hash2(t, levels, batch.seeds[b])
        _match(team, g, s.place[:n], s.log[:n], choice, heaviest, turn)
        if stopping(team):
            break
        count = np.int64(_contract(g, s.place[:n], memory.map[me, p : p + n], s.heap[1], out))
        if 100 * count > STALLED * n:
            break
        memory.map[me, q - 1] = n  # the slot between two levels keeps the size of the finer one
        p, e, n = q, e + used, count
        levels += 1
    g = _level(memory, me, p, e, n)
    side, trial = memory.side[me, p : p + n], memory.trial[me, :n]
    best_excess, best_cut = np.int64(-1), np.int64(-1)
    for r in range(REGIONS):
        if stopping(team):
            break
        grown = hash2(r, 1, seed)
        _grow(g, trial, np.int64(grown % np.uint64(n)), target, l0, s, grown)
        excess, cut = _refine(team, g, trial, l0, l1, s, grown)
        if best_excess < 0 or excess < best_excess or (excess == best_excess and cut < best_cut):
            best_excess, best_cut = excess, cut
            for v in range(n):
                side[v] = trial[v]
    excess, cut = best_excess, best_cut
    for level in range(levels - 1, -1, -1):
        if stopping(team):
            break
        fine = np.int64(memory.map[me, p - 1])
        q = p - fine - 1
        e -= memory.indptr[me, p - 1]
        coarse = memory.side[me, p : p + n]
        side = memory.side[me, q : q + fine]
        for v in range(fine):
            side[v] = coarse[memory.map[me, q + v]]
        p, n = q, fine
        g = _level(memory, me, p, e, n)
        excess, cut = _refine(team, g, side, l0, l1, s, hash2(t, level, seed))
    for v in range(whole):
        side_out[v] = memory.side[me, v]
    return excess, cut


@kernel
def _bisect(team: Any, batch: Batch, memory: Memory, sides: Array, scores: Array) -> None:
    """All tries of all graphs.  sides: (tries, vertices); scores: (graphs, tries, 2)."""
    tries = sides.shape[0]
    task = next_chunk(team, tries * batch.targets.size, 1)
    while task >= 0:
        b, t = task // tries, task % tries
        begin, end = batch.begins[b], batch.begins[b + 1]
        if end > begin:
            scores[b, t, 0], scores[b, t, 1] = _try(team, batch, b, t, memory, sides[t, begin:end])
        task = next_chunk(team, tries * batch.targets.size, 1)


def bisect(batch: Batch, tries: int, threads: int | None = None) -> tuple[Array, Array]:
    """See matchwood.partitioning.bisection.bisect: sides and scores of all tries."""
    lengths = np.diff(batch.begins)
    n = int(lengths.max(initial=0))
    ends = batch.indptr[batch.begins]
    entries = int(np.diff(ends).max(initial=0))
    sides = np.zeros((tries, batch.weights.size), np.uint8)
    scores = np.zeros((lengths.size, tries, 2), np.int64)
    work = tries * (int(ends[-1]) + batch.weights.size) * 20
    members = min(crew(threads, work=work).size, max(tries * lengths.size, 1))
    team = crew(members, work=work)
    rows, room = ROOM * n + 2 * LEVELS, ROOM * entries + 1

    def words(size: int, kind: Any) -> Array:
        return np.empty((members, size), kind)

    memory = Memory(
        words(rows, np.int64), words(rows, np.int64), words(rows, np.int32), words(rows, np.int8),
        words(rows, np.uint8), words(room, np.int32), words(room, np.int64), words(n, np.int64),
        words(n, np.int64), words(n, np.uint32), words(n, np.int32), words(n, np.int32),
        words(n, np.uint8), np.empty((members, 2, n), np.int32),
    )  # fmt: skip
    team.run(_bisect, batch, memory, sides, scores)
    return sides, scores
