"""Random order, heaviest free neighbour, by the definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.matching.methods import EngineMatching
from matchwood.matching.reference import first_edge
from matchwood.primitives.hashing.reference import hash2_number


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    indptr, indices, data = (array.tolist() for array in view)
    mate, weight = [-1] * view.n, 0.0
    for u in sorted(range(view.n), key=lambda v: (hash2_number(v, 0, seed), v)):
        free = [k for k in range(indptr[u], indptr[u + 1]) if mate[indices[k]] < 0]
        k = first_edge(u, free, indices, data, seed, by_hash)
        if mate[u] < 0 and k is not None:
            mate[u], mate[indices[k]] = indices[k], u
            weight += data[k]
    return EngineMatching(np.array(mate, view.indices.dtype), weight, 1)
