"""The heaviest matching by trying all: best[S] over sets S of vertices."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood.matching.methods import EngineMatching

MOST = 24  # vertices; there are 2^24 sets of them to try


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    n = view.n
    if n > MOST:
        raise ValueError(
            f"weighted_matching: the reference of method='exact' takes at most {MOST} vertices, "
            f"got {n}"
        )
    indptr, indices, data = (array.tolist() for array in view)

    @functools.cache
    def best(left: int) -> tuple[float, tuple[tuple[int, int], ...]]:
        """Weight and edges of the best matching among the vertices of a bit set."""
        if left == 0:
            return 0.0, ()
        u = left.bit_length() - 1
        without = left & ~(1 << u)
        found = best(without)
        for k in range(indptr[u], indptr[u + 1]):
            if without >> indices[k] & 1:
                weight, edges = best(without & ~(1 << indices[k]))
                if weight + data[k] > found[0]:
                    found = weight + data[k], (*edges, (u, indices[k]))
        return found

    weight, edges = best((1 << n) - 1)
    mate = np.full(n, -1, view.indices.dtype)
    for u, v in edges:
        mate[u], mate[v] = v, u
    return EngineMatching(mate, weight, 1, weight)
