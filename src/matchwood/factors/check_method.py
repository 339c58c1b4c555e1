"""Is this the factor that its arguments give?  Decided from the definition, with NumPy.

How each method is checked: greedy/check.py, rounds/check.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.errors import CheckFailed
from matchwood.factors.greedy.check import check_greedy
from matchwood.factors.result import Plan
from matchwood.factors.rounds.check import check_rounds
from matchwood.factors.row_places import place_in_row
from matchwood.primitives.hashing import hash2

Array = np.ndarray[Any, Any]


def check_by_plan(view: Any, plan: Plan, table: Array, answer: Any) -> None:
    """Raise `CheckFailed` unless `table`, a factor of the view, is what the plan gives."""
    u, v = np.repeat(np.arange(view.n), np.diff(view.indptr)), view.indices.astype(np.int64)
    order = _order(u, v, view.data, plan)
    rank = np.empty(u.size, np.int64)
    rank[order] = np.arange(u.size)
    taken = (table[u] == v[:, None]).any(axis=1)
    if plan.method == "greedy":
        check_greedy(u, v, rank, taken, plan.n)
    else:
        check_rounds(view.n, u, v, order, taken, plan, answer)
    if hasattr(answer, "neighbours"):
        _check_places(table, u, v, rank, taken)


def _order(u: Array, v: Array, w: Array, plan: Plan) -> Array:
    """The entries by preference: among all for the greedy rule, else within each row."""
    low, high = np.minimum(u, v), np.maximum(u, v)
    heavy = -w.astype(np.float64)
    ties = [~hash2(low, high, plan.seed, engine="reference")] if plan.by_hash else []
    if plan.method == "greedy":
        return np.lexsort((high, low, *ties, heavy))
    return np.lexsort((*ties, heavy, u))  # stable, and columns ascend


def _check_places(table: Array, u: Array, v: Array, rank: Array, taken: Array) -> None:
    """Neighbours are listed by preference."""
    chosen = np.flatnonzero(taken)
    chosen = chosen[np.lexsort((rank[chosen], u[chosen]))]
    expected = np.full_like(table, -1)
    expected[u[chosen], place_in_row(u[chosen])] = v[chosen]
    wrong = (table != expected).any(axis=1)
    if wrong.any():
        i = int(wrong.argmax())
        raise CheckFailed(
            f"factor: vertex {i} lists {table[i].tolist()}, by preference {expected[i].tolist()}"
        )
