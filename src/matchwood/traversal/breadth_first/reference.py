"""Breadth-first search by its definition: level after level, smallest parent first."""

from __future__ import annotations

from typing import Any

import numpy as np


def search(
    outward: Any, inward: Any, sources: Any, limit: int, *, threads: int | None = None
) -> tuple[Any, Any, int]:
    level = np.full(outward.n, -1, outward.indptr.dtype)
    parent = np.full(outward.n, -1, outward.indptr.dtype)
    level[sources] = 0
    parent[sources] = sources
    frontier, depth = sorted(sources.tolist()), 0
    while frontier and depth < limit:
        found = []
        for u in frontier:  # ascending, so the first to reach v is the smallest
            for v in outward.indices[outward.indptr[u] : outward.indptr[u + 1]].tolist():
                if level[v] < 0:
                    level[v] = depth + 1
                    parent[v] = u
                    found.append(v)
        frontier, depth = sorted(found), depth + 1
    return level, parent, int(level.max(initial=0))
