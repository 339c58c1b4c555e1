"""PageRank by its definition, in plain Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def prepare(graph: Any, problem: Any, *, threads: int | None = None) -> Any:
    return None


def iterate(plan: Any, problem: Any, *, threads: int | None = None) -> tuple[Any, int, float]:
    view, n = problem.incoming, problem.incoming.n
    weights = [1.0] * view.nnz if view.data is None else view.data.tolist()
    share = [float(x) for x in problem.share]
    p = [1 / n] * n if problem.jump is None else [float(x) for x in problem.jump]
    q = p if problem.dangling is None else [float(x) for x in problem.dangling]
    x = [float(value) for value in problem.start]
    d, error, iterations = problem.damping, math.inf, 0
    while iterations < problem.most:
        iterations += 1
        lost = math.fsum(x[i] for i in range(n) if share[i] == 0)
        y = [d * (pulled(view, weights, x, share, j) + lost * q[j]) + (1 - d) * p[j]
             for j in range(n)]  # fmt: skip
        error = math.fsum(abs(a - b) for a, b in zip(x, y, strict=True))
        x = y
        if error < problem.tol:
            break
    return np.array(x, problem.dtype), iterations, error


def pulled(view: Any, weights: list[float], x: list[float], share: list[float], j: int) -> float:
    """What j receives along the arcs into it."""
    row = range(int(view.indptr[j]), int(view.indptr[j + 1]))
    return math.fsum(x[i] * share[i] * weights[e] for e in row for i in (int(view.indices[e]),))
