"""Spanning forests on a team: which file holds which method.

cpu_order.py      codes of weights, marks, the forest from its marks: what all methods share
cpu_boruvka.py    rounds of first edges
cpu_kruskal.py    edges in sorted order, all at once or the light ones first
cpu_stars.py      Awerbuch and Shiloach: stars hook, trees grow flat
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.boruvka.cpu import boruvka
from matchwood.spanning.forest.cpu_order import forest_of
from matchwood.spanning.forest.kruskal.cpu import filter_kruskal, kruskal
from matchwood.spanning.forest.stars.cpu import awerbuch_shiloach

_METHODS = {
    "auto": boruvka,
    "boruvka": boruvka,
    "awerbuch_shiloach": awerbuch_shiloach,
    "kruskal": kruskal,
    "filter_kruskal": filter_kruskal,
}


def span(
    costs: Any, method: str, maximum: bool, *, threads: int | None = None
) -> tuple[Any, Any, int]:
    """Edges, weights and rounds."""
    if costs.nnz == 0:
        return np.empty((0, 2), costs.indices.dtype), costs.data[:0].copy(), 0
    marks, rounds = _METHODS[method](costs, orders.make(costs, maximum), threads)
    return (*forest_of(costs, marks, threads), rounds)
