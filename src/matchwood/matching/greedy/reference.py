"""The greedy matching by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.matching.methods import EngineMatching
from matchwood.primitives.edge_order.reference import edge_key


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    indptr, indices, data = (array.tolist() for array in view)
    edges = [
        (edge_key(data[k], u, indices[k], seed, by_hash), u, indices[k], data[k])
        for u in range(view.n)
        for k in range(indptr[u], indptr[u + 1])
        if u < indices[k]
    ]
    mate, weight = [-1] * view.n, 0.0
    for _, u, v, w in sorted(edges):
        if mate[u] < 0 and mate[v] < 0:
            mate[u], mate[v] = v, u
            weight += w
    return EngineMatching(np.array(mate, view.indices.dtype), weight, 1)
