"""The minimum spanning forest by its definition: Kruskal's algorithm with a stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np


def span(
    costs: Any, method: str, maximum: bool, *, threads: int | None = None
) -> tuple[Any, Any, int]:
    """Edges in the order (weight, ends); one is taken unless its ends are joined already."""
    edges = []
    for u in range(costs.n):
        for k in range(int(costs.indptr[u]), int(costs.indptr[u + 1])):
            v = int(costs.indices[k])
            if u < v:
                edges.append((costs.data[k].item(), u, v, k))  # sorted by (u, v) as they come
    if maximum:
        edges.sort(key=lambda edge: -edge[0])
    else:
        edges.sort(key=lambda edge: edge[0])
    label = list(range(costs.n))

    def root(v: int) -> int:
        while label[v] != v:
            v = label[v]
        return v

    taken = []
    for _, u, v, k in edges:
        a, b = root(u), root(v)
        if a != b:
            label[max(a, b)] = min(a, b)
            taken.append((u, v, k))
    taken.sort()
    pairs = np.array([(u, v) for u, v, _ in taken], costs.indices.dtype).reshape(-1, 2)
    return pairs, costs.data[[k for _, _, k in taken]], 1
