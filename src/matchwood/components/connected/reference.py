"""Connected components by their definition: follow edges, in both directions, from each vertex."""

from __future__ import annotations

from typing import Any

import numpy as np


def label(
    view: Any, symmetric: bool, method: str, *, graph: Any = None, threads: int | None = None
) -> tuple[int, Any, int]:
    neighbours: list[set[int]] = [set() for _ in range(view.n)]
    for u in range(view.n):
        for v in view.indices[view.indptr[u] : view.indptr[u + 1]].tolist():
            neighbours[u].add(v)
            neighbours[v].add(u)
    labels = np.full(view.n, -1, view.indptr.dtype)
    count = 0
    for start in range(view.n):  # ascending: a component is numbered at its smallest vertex
        if labels[start] >= 0:
            continue
        labels[start] = count
        stack = [start]
        while stack:
            for v in neighbours[stack.pop()]:
                if labels[v] < 0:
                    labels[v] = count
                    stack.append(v)
        count += 1
    return count, labels, count
