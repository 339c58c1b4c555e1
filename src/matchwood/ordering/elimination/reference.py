"""Elimination by its definition: neighbours of a vertex become neighbours of each other."""

from __future__ import annotations

from typing import Any

import numpy as np


def count(view: Any, perm: Any, place: Any) -> tuple[Any, Any, int]:
    n, at = view.n, place.tolist()
    later: list[set[int]] = [set() for _ in range(n)]  # rows below the diagonal of each column
    for u in range(n):
        for v in view.indices[view.indptr[u] : view.indptr[u + 1]].tolist():
            later[min(at[u], at[v])].add(max(at[u], at[v]))
    parent, level = [-1] * n, [1] * n
    for j in range(n):
        if later[j]:
            parent[j] = min(later[j])
            later[parent[j]] |= later[j] - {parent[j]}
    for j in reversed(range(n)):
        if parent[j] >= 0:
            level[j] = level[parent[j]] + 1
    kind = view.indptr.dtype
    counts = np.array([len(rows) + 1 for rows in later], np.int64)
    return np.array(parent, kind), counts, max(level, default=0)


def tree(view: Any, perm: Any, place: Any) -> Any:
    return count(view, perm, place)[0]
