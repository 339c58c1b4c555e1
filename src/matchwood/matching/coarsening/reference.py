"""Coarsening from the definition."""

from __future__ import annotations

from typing import Any

import numpy as np


def coarsen(view: Any, mate: Any, members: Any, threads: int | None = None) -> Any:
    """((indptr, indices, data), map, weights of the coarse vertices)."""
    n = view.n
    map = np.empty(n, view.indices.dtype)
    weights: list[Any] = []
    for v in range(n):
        if 0 <= mate[v] < v:
            map[v] = map[mate[v]]
            weights[map[v]] += members[v]
        else:
            map[v] = len(weights)
            weights.append(members[v])
    k = len(weights)
    table: list[dict[int, Any]] = [{} for _ in range(k)]
    for u in range(n):
        for e in range(view.indptr[u], view.indptr[u + 1]):
            i, j, w = int(map[u]), int(map[view.indices[e]]), view.data[e]
            if i < j:
                table[i][j] = table[i][j] + w if j in table[i] else w
                table[j][i] = table[i][j]
    rows = [sorted(row.items()) for row in table]
    indptr = np.zeros(k + 1, view.indptr.dtype)
    indptr[1:] = np.cumsum([len(row) for row in rows])
    indices = np.array([j for row in rows for j, _ in row], view.indices.dtype)
    data = np.array([w for row in rows for _, w in row], view.data.dtype)
    return (indptr, indices, data), map, np.array(weights, members.dtype)
