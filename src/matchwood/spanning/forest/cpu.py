"""Spanning forests on a team: the method marks the edges (its folder), marks/ reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.spanning.forest import METHODS
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.marks.cpu import forest_of


def span(
    costs: Any, method: str, maximum: bool, *, threads: int | None = None
) -> tuple[Any, Any, int]:
    """Edges, weights and rounds."""
    if costs.nnz == 0:
        return np.empty((0, 2), costs.indices.dtype), costs.data[:0].copy(), 0
    engine = engines.load(f"{__package__}.{METHODS[method]}", "cpu")
    marks, rounds = engine.mark_forest(costs, orders.make(costs, maximum), method, threads)
    return (*forest_of(costs, marks, threads), rounds)
