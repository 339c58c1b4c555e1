"""Potentials and stack, in plain Python.  The rule: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.matching.methods import EngineMatching
from matchwood.matching.streaming import EPSILON
from matchwood.matching.streaming.cpu import proved_bound


def match(
    view: Any, seed: int, by_hash: bool, threads: int | None = None, epsilon: float = EPSILON
) -> EngineMatching:
    """The edges are read row by row; ties do not matter."""
    indptr, indices, data = (array.tolist() for array in view)
    potential = [0.0] * view.n
    stack = []
    for u in range(view.n):
        for k in range(indptr[u], indptr[u + 1]):
            v, w = indices[k], data[k]
            below = potential[u] + potential[v]
            if u < v and w > (1.0 + epsilon) * below:
                potential[u] += w - below
                potential[v] += w - below
                stack.append((u, v, w))
    mate, weight = [-1] * view.n, 0.0
    for u, v, w in reversed(stack):
        if mate[u] < 0 and mate[v] < 0:
            mate[u], mate[v] = v, u
            weight += w
    bound = proved_bound(1.0 + epsilon, np.array(potential))
    return EngineMatching(np.array(mate, view.indices.dtype), weight, 1, bound)
