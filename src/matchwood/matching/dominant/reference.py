"""Pointing and matching in rounds, all vertices in every round."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.matching.methods import EngineMatching
from matchwood.matching.reference import first_edge


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    indptr, indices, data = (array.tolist() for array in view)
    mate, rounds, weight = [-1] * view.n, 0, 0.0
    while True:
        pointer = [-1] * view.n
        for u in range(view.n):
            free = [k for k in range(indptr[u], indptr[u + 1]) if mate[indices[k]] < 0]
            first = first_edge(u, free, indices, data, seed, by_hash)
            if mate[u] < 0 and first is not None:
                pointer[u] = indices[first]
        if max(pointer, default=-1) < 0:
            break
        rounds += 1
        for u, v in enumerate(pointer):
            if u < v and pointer[v] == u:
                mate[u], mate[v] = v, u
                weight += data[indptr[u] + indices[indptr[u] : indptr[u + 1]].index(v)]
    return EngineMatching(np.array(mate, view.indices.dtype), weight, rounds)
