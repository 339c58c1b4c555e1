"""Named graphs as lists of edges, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Edges = list[tuple[int, int]]


def path(n: int) -> tuple[Array, Array]:
    return _csr(n, [(v, v + 1) for v in range(n - 1)])


def cycle(n: int) -> tuple[Array, Array]:
    return _csr(n, [(v, (v + 1) % n) for v in range(n)])


def star(n: int) -> tuple[Array, Array]:
    return _csr(n, [(0, v) for v in range(1, n)])


def complete(n: int) -> tuple[Array, Array]:
    return _csr(n, [(u, v) for u in range(n) for v in range(u)])


def mycielskian(k: int) -> tuple[Array, Array]:
    n, edges = 1, Edges()
    if k >= 2:
        n, edges = 2, [(0, 1)]
    for _ in range(k - 2):
        copies = [(u, n + v) for u, v in edges] + [(n + u, v) for u, v in edges]
        edges = edges + copies + [(n + v, 2 * n) for v in range(n)]
        n = 2 * n + 1
    return _csr(n, edges)


def _csr(n: int, edges: Edges) -> tuple[Array, Array]:
    rows: list[list[int]] = [[] for _ in range(n)]
    for u, v in edges:
        rows[u].append(v)
        rows[v].append(u)
    indptr = np.cumsum([0] + [len(row) for row in rows], dtype=np.int32)
    return indptr, np.array([v for row in rows for v in sorted(row)], np.int32)
