"""Strongly connected components by Tarjan's algorithm, in plain Python, without recursion."""

from __future__ import annotations

from typing import Any

import numpy as np


def label(
    view: Any, inward: Any, loops: bool, method: str, *, threads: int | None = None
) -> tuple[int, Any, int]:
    n = view.n
    rows = [view.indices[view.indptr[v] : view.indptr[v + 1]].tolist() for v in range(n)]
    index: dict[int, int] = {}  # when a vertex was first seen
    low: dict[int, int] = {}  # the earliest vertex that it is known to reach, in its component
    waiting: list[int] = []  # vertices seen whose component is not known
    component = [-1] * n
    count = 0
    for root in range(n):
        if root in index:
            continue
        index[root] = low[root] = len(index)
        waiting.append(root)
        path = [(root, iter(rows[root]))]
        while path:
            v, arcs = path[-1]
            for w in arcs:
                if w not in index:
                    index[w] = low[w] = len(index)
                    waiting.append(w)
                    path.append((w, iter(rows[w])))
                    break
                if component[w] < 0:
                    low[v] = min(low[v], index[w])
            else:
                path.pop()
                if path:
                    u = path[-1][0]
                    low[u] = min(low[u], low[v])
                if low[v] == index[v]:  # v and what was seen after it are a component
                    while component[v] < 0:
                        component[waiting.pop()] = count
                    count += 1
    return count, by_smallest_vertex(component, view.indptr.dtype), 1


def by_smallest_vertex(component: list[int], dtype: Any) -> Any:
    """The same partition, numbered in the order in which its parts first occur."""
    number: dict[int, int] = {}
    return np.array([number.setdefault(c, len(number)) for c in component], dtype)
