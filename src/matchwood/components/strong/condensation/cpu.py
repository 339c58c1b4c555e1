"""Topological levels by one member of a team: linear, however long the longest way is."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, interrupted, kernel

Array = np.ndarray[Any, Any]


@kernel
def _levels(
    team: Any, indptr: Array, indices: Array, arcs_to: Array, queue: Array, level: Array
) -> None:
    """Take away vertices without arcs to them, then those that have none left, and so on.

    A vertex enters the queue when its last arc is taken away, by the vertex of the highest level
    that leads to it: the queue is in the order of levels.
    """
    if team.me > 0:
        return
    n = level.size
    arcs_to[:] = 0
    for k in range(indices.size):
        if interrupted(team, k):
            return
        arcs_to[indices[k]] += arcs_to.dtype.type(1)
    tail = 0
    for v in range(np.uint64(n)):
        level[v] = -1
        if arcs_to[v] == 0:
            level[v] = 0
            queue[tail] = v
            tail += 1
    i = 0
    one = queue.dtype.type(1)
    while i < tail:
        if interrupted(team, i):
            return
        u = queue[i]
        below = level[u] + 1
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + one])):
            w = indices[k]
            arcs_to[w] -= one
            if arcs_to[w] == 0:
                level[w] = below
                queue[tail] = w
                tail += 1
        i += 1


def levels(indptr: Array, indices: Array, *, threads: int | None = None) -> Array:
    n = indptr.size - 1
    unsigned = np.uint32 if indptr.dtype == np.int32 else np.uint64
    level = np.empty(n, indptr.dtype)
    if n == 0:
        return level
    arcs_to, queue = np.empty(n, unsigned), np.empty(n, unsigned)
    team = crew(1, work=n + indices.size)
    team.run(_levels, indptr, indices.view(unsigned), arcs_to, queue, level)
    return level
