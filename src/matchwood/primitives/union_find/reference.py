"""Union-find: the definition.  An edge between two labels replaces the larger one everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.union_find import end_out_of_range


def union_find(n: int, u: Any, v: Any, *, threads: int | None = None) -> Any:
    label = np.arange(n, dtype=u.dtype)
    for edge in range(u.size):
        a, b = int(u[edge]), int(v[edge])
        if not (0 <= a < n and 0 <= b < n):
            raise end_out_of_range(n, edge)
        low, high = sorted((label[a], label[b]))
        label[label == high] = low
    return label
