"""Which neighbours a vertex prefers, and the arrays of a factor: steps of both references."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.factors.result import Found, Plan
from matchwood.primitives.edge_order.reference import edge_key


def row_of(view: Any, v: int) -> dict[int, float]:
    """The neighbours of v and the weights of their edges."""
    part = slice(int(view.indptr[v]), int(view.indptr[v + 1]))
    columns, weights = view.indices[part].tolist(), view.data[part].tolist()
    return dict(zip(columns, weights, strict=True))


def preferences(view: Any, plan: Plan) -> list[list[int]]:
    """The neighbours of each vertex, the preferred ones first."""
    lists = []
    for v in range(view.n):
        keys = {w: edge_key(a, v, w, plan.seed, plan.by_hash) for w, a in row_of(view, v).items()}
        lists.append(sorted(keys, key=keys.__getitem__))
    return lists


def tabulated(view: Any, plan: Plan, pi: list[list[int]], rounds: int, maximal: bool) -> Found:
    """The arrays of the factor in which pi[v] are the neighbours of v."""
    neighbours = np.full((view.n, plan.n), -1, view.indices.dtype)
    weights = np.zeros((view.n, plan.n), view.data.dtype)
    for v, preferred in enumerate(preferences(view, plan)):
        row = row_of(view, v)
        for slot, w in enumerate(w for w in preferred if w in pi[v]):
            neighbours[v, slot], weights[v, slot] = w, row[w]
    return Found(neighbours, weights, rounds, maximal)
