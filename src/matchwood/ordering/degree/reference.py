"""Orders by degree by their definitions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np


def order(view: Any, rule: str, *, threads: int | None = None) -> Any:
    degree = np.diff(view.indptr).tolist()
    n = view.n
    average = Fraction(view.nnz, n) if n else Fraction(0)
    limits = [average * Fraction(2) ** power for power in (5, 4, 3, 2, 1, 0, -1)]

    def key(v: int) -> tuple[int, ...]:
        hub = degree[v] > average
        if rule == "degree":
            return (-degree[v], v)
        if rule == "sort":
            return (0, -degree[v], v) if hub else (1, 0, v)
        if rule == "cluster":
            return (0 if hub else 1, v)
        return (sum(degree[v] < limit for limit in limits), v)

    return np.array(sorted(range(n), key=key), view.indptr.dtype)
