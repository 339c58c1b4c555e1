"""A round of joins by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.hashing.reference import mix64_number


def joins(
    pattern: tuple[Any, Any, Any], volume: Any, names: Any, total: int, resolution: float, *,
    threads: int | None = None,
) -> Any:  # fmt: skip
    indptr, indices, weights = pattern
    n = len(indptr) - 1
    k, name = [int(x) for x in volume], [int(x) for x in names]
    target = np.arange(n, dtype=indices.dtype)

    def key(r: int) -> tuple[int, int, int]:
        return k[r], mix64_number(name[r]), name[r]

    for r in range(n):
        best, pick = (0.0, 0), r
        for e in range(int(indptr[r]), int(indptr[r + 1])):
            u = int(indices[e])
            w = 1 if weights is None else int(weights[e])
            gain = w - resolution * k[r] * k[u] / total if u != r else 0.0
            if gain > 0 and (gain, mix64_number(name[u])) > best:
                best, pick = (gain, mix64_number(name[u])), u
        if key(r) < key(pick):
            target[r] = pick
    return target


def trees(target: Any, *, threads: int | None = None) -> tuple[Any, Any]:
    n = len(target)
    root = list(range(n))
    for v in range(n):
        while target[root[v]] != root[v]:
            root[v] = int(target[root[v]])
    roots = sorted(set(root))
    number = {r: i for i, r in enumerate(roots)}
    kind = target.dtype
    return np.array([number[r] for r in root], kind), np.array(roots, kind)
