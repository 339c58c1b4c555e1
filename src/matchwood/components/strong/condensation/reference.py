"""Levels of a graph by their definition, in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np


def levels(indptr: Any, indices: Any, *, threads: int | None = None) -> Any:
    """Take away all vertices without arcs to them, again and again.  The round is the level."""
    n = indptr.size - 1
    rows = [indices[indptr[v] : indptr[v + 1]].tolist() for v in range(n)]
    arcs_to = [0] * n
    for row in rows:
        for w in row:
            arcs_to[w] += 1
    level = np.full(n, -1, indptr.dtype)
    frontier = [v for v in range(n) if arcs_to[v] == 0]
    turn = 0
    while frontier:
        following = []
        for v in frontier:
            level[v] = turn
            for w in rows[v]:
                arcs_to[w] -= 1
                if arcs_to[w] == 0:
                    following.append(w)
        frontier = following
        turn += 1
    return level
