"""Moves one after the other between k blocks, for a team of one.  The rule: __init__.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import crew, device, interrupted, kernel

Array = np.ndarray[Any, Any]

PASSES, PATIENCE, WORK = 10, 400, 4  # measured: bench/partitioning/kway.py, email-Enron
NOWHERE, LOCKED = -1, -2  # places of vertices that are in no heap: may enter, may not


class Sweep(NamedTuple):
    """The graph, its blocks, and what is known of each vertex."""

    indptr: Array
    indices: Array
    data: Array  # empty where all edges weigh 1
    weights: Array
    fixed: Array
    labels: Array
    bound: Array
    place: Array  # where it is in the heap
    heap: Array  # the vertex with the largest (bound, smaller vertex) on top
    log: Array  # vertices in the order in which they moved
    left: Array  # the block that each of these left
    weight: Array  # of blocks
    limit: Array
    tied: Array  # all 0 between two looks


@device
def _look(s: Sweep, v: Any) -> tuple[Any, Any]:
    """The gain of v and the block that it joins; without one, less its ties inside, and -1."""
    own, w = s.labels[v], s.weights[v]
    begin, end = s.indptr[v], s.indptr[v + 1]
    for k in range(begin, end):
        s.tied[s.labels[s.indices[k]]] += s.data[k] if s.data.size > 0 else 1
    inside, best, most = s.tied[own], np.int64(-1), np.int64(0)
    s.tied[own] = 0
    for k in range(begin, end):
        c = np.int64(s.labels[s.indices[k]])
        tie = s.tied[c]
        s.tied[c] = 0
        if tie == 0 or tie < most or s.weight[c] + w > s.limit[c]:
            continue
        if tie > most or (s.weight[c], c) < (s.weight[best], best):
            best, most = c, tie
    return most - inside, best


@device
def _before(s: Sweep, u: Any, v: Any) -> bool:
    return s.bound[u] > s.bound[v] or (s.bound[u] == s.bound[v] and u < v)


@device
def _settle(s: Sweep, size: int, at: int, v: Any) -> None:
    """v, whose bound has changed, goes to its place in the heap; `at` is free."""
    while at > 0:
        above = (at - 1) >> 1
        u = s.heap[above]
        if not _before(s, v, u):
            break
        s.heap[at] = u
        s.place[u] = at
        at = above
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and _before(s, s.heap[below + 1], s.heap[below]):
            below += 1
        u = s.heap[below]
        if not _before(s, u, v):
            break
        s.heap[at] = u
        s.place[u] = at
        at = below
    s.heap[at] = v
    s.place[v] = at


@device
def _pass(team: Any, s: Sweep) -> Any:
    """One pass: by how much the cut became smaller."""
    size, gained, most = 0, np.int64(0), np.int64(0)
    moves, best, looks, read = 0, 0, 0, np.int64(0)
    for v in range(s.labels.size):
        if interrupted(team, v):
            return most
        s.place[v] = LOCKED
        if s.fixed[v] == 0:
            s.place[v] = NOWHERE
            s.bound[v], block = _look(s, v)
            if block >= 0:
                size += 1
                _settle(s, size, size - 1, v)
    while size > 0 and moves - best < PATIENCE and read < WORK * s.indices.size:
        looks += 1
        if interrupted(team, looks):
            return most
        v = np.int64(s.heap[0])
        gain, block = _look(s, v)
        read += s.indptr[v + 1] - s.indptr[v]
        late = block >= 0 and gain < s.bound[v]
        s.bound[v] = gain
        if late:
            _settle(s, size, 0, v)
            continue
        s.place[v] = NOWHERE if block < 0 else LOCKED
        size -= 1
        if size > 0:
            _settle(s, size, 0, np.int64(s.heap[size]))
        if block < 0:
            continue
        own = s.labels[v]
        s.weight[own] -= s.weights[v]
        s.weight[block] += s.weights[v]
        s.labels[v] = block
        s.log[moves], s.left[moves] = v, own
        moves += 1
        gained += gain
        if gained > most:
            most, best = gained, moves
        for k in range(s.indptr[v], s.indptr[v + 1]):
            u = np.int64(s.indices[k])
            at = s.place[u]
            if at == LOCKED:
                continue
            w = s.data[k] if s.data.size > 0 else np.int64(1)
            label = s.labels[u]
            s.bound[u] += 2 * w if label == own else (-w if label == block else w)
            if at == NOWHERE:
                at = size
                size += 1
            _settle(s, size, at, u)
    for i in range(best, moves):
        v = s.log[i]
        s.weight[s.labels[v]] -= s.weights[v]
        s.weight[s.left[i]] += s.weights[v]
        s.labels[v] = s.left[i]
    return most


@kernel
def _sweep(team: Any, s: Sweep, cut: Array) -> None:
    """Passes as long as they bring something.  cut[0]: that of the labels, before and after."""
    for _ in range(PASSES):
        gained = _pass(team, s)
        cut[0] -= gained
        if gained == 0:
            break


def moved(level: Any, labels: Array, limits: Array, fixed: Array, cut: int) -> int:
    """See matchwood.partitioning.sweep.sweep."""
    n, kind, k = level.n, level.indices.dtype, limits.size
    weight = np.zeros(k, np.int64)
    np.add.at(weight, labels, level.weights)
    data = np.empty(0, np.int64) if level.data is None else level.data
    state = Sweep(
        level.indptr, level.indices, data, level.weights, fixed, labels, np.empty(n, np.int64),
        np.empty(n, kind), np.empty(n, kind), np.empty(n, kind), np.empty(n, np.int32), weight,
        limits, np.zeros(k, np.int64),
    )  # fmt: skip
    left = np.array([cut], np.int64)
    crew(1, work=level.indices.size + n).run(_sweep, state, left)
    return int(left[0])
