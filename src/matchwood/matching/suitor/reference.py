"""The suitor method as in the paper: one vertex after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.matching.methods import EngineMatching
from matchwood.primitives.edge_order.reference import edge_key


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    indptr, indices, data = (array.tolist() for array in view)
    suitor = [-1] * view.n
    offer: list[Any] = [None] * view.n  # key and weight of the best proposal so far
    for start in range(view.n):
        u = start
        while u >= 0:
            best = None
            for k in range(indptr[u], indptr[u + 1]):
                v, w = indices[k], data[k]
                key = edge_key(w, u, v, seed, by_hash)
                if (best is None or key < best[0]) and (offer[v] is None or key < offer[v][0]):
                    best = key, w, v
            if best is None:
                break
            key, w, v = best
            offer[v] = key, w
            suitor[v], u = u, suitor[v]
    weight = sum(offer[v][1] for v, u in enumerate(suitor) if v < u)
    return EngineMatching(np.array(suitor, view.indices.dtype), float(weight), 1)
