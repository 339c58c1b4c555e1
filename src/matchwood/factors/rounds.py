"""Is this the factor that the rounds, or the greedy rule, give?  With NumPy, from the definition.

The greedy factor is the one in which every edge outside has an end that is full with edges that
come before it; so it is decided without being made.  What rounds with random charges leave has no
such mark: it depends on who proposed when.  There the rounds are gone through again, all vertices
at once, with the entries of the matrix in the order of preference; nothing here is shared with the
engines but the hashes.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from matchwood.errors import CheckFailed
from matchwood.factors.result import Plan
from matchwood.primitives.hashing import hash2, round_number
from matchwood.primitives.hashing.reference import quarter_md5_array

Array = np.ndarray[Any, Any]


def check_by_plan(view: Any, plan: Plan, table: Array, answer: Any) -> None:
    """Raise `CheckFailed` unless `table`, a factor of the view, is what the plan gives."""
    u, v = np.repeat(np.arange(view.n), np.diff(view.indptr)), view.indices.astype(np.int64)
    order = _order(u, v, view.data, plan)
    rank = np.empty(u.size, np.int64)
    rank[order] = np.arange(u.size)
    taken = (table[u] == v[:, None]).any(axis=1)
    if plan.method == "greedy":
        _check_greedy(u, v, rank, taken, plan.n)
    else:
        expected, rounds, maximal = _proposed(view.n, u, v, order, plan)
        _compare(u, v, taken, expected)
        _check_rounds(answer, rounds, maximal)
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


def _check_greedy(u: Array, v: Array, rank: Array, taken: Array, n: int) -> None:
    size = int(u.max(initial=-1)) + 1
    degree = np.bincount(u[taken], minlength=size)
    weakest = np.full(size, -1)
    np.maximum.at(weakest, u[taken], rank[taken])
    blocked_by_tail = (degree[u] == n) & (weakest[u] < rank)
    blocked_by_head = (degree[v] == n) & (weakest[v] < rank)
    wrong = ~taken & ~blocked_by_tail & ~blocked_by_head
    if wrong.any():
        k = int(wrong.argmax())
        raise CheckFailed(
            f"factor: edge ({u[k]}, {v[k]}) comes before an edge of each of its ends, or fits"
        )


def _proposed(
    n: int, u: Array, v: Array, order: Array, plan: Plan
) -> tuple[Array, int, bool]:  # fmt: skip
    """Which entries the rounds confirm, how many rounds there are, and whether none was left."""
    keys = u * n + v  # ascending, as rows are sorted
    back = np.searchsorted(keys, v * n + u).clip(max=max(keys.size - 1, 0))
    mirrored = keys[back] == v * n + u if keys.size else np.zeros(0, bool)
    confirmed, degree = np.zeros(u.size, bool), np.zeros(n, np.int64)
    proposes = np.zeros(u.size, bool)
    live, idle = order, 0
    vertices = np.arange(n)
    for k in itertools.count():
        if k == plan.limit or (plan.limit < 0 and idle == plan.m):
            return confirmed, k, False
        asked = live
        if plan.charged(k):
            charge = quarter_md5_array(vertices, round_number(plan.seed, k)) < plan.barrier
            asked = live[charge[u[live]] != charge[v[live]]]
        proposed = asked[_place_in_row(u[asked]) < plan.n - degree[u[asked]]]
        if not plan.charged(k) and proposed.size == 0:
            return confirmed, k + 1, True
        proposes[proposed] = True
        mutual = proposed[mirrored[proposed] & proposes[back[proposed]]]
        proposes[proposed] = False
        confirmed[mutual] = True
        degree += np.bincount(u[mutual], minlength=n)
        room = degree < plan.n
        live = live[~confirmed[live] & room[u[live]] & room[v[live]]]
        idle = 0 if mutual.size else idle + 1
    raise AssertionError("unreachable")


def _place_in_row(rows: Array) -> Array:
    """0, 1, ... within each run of equal rows."""
    at = np.arange(rows.size)
    starts = np.ones(rows.size, bool)
    starts[1:] = rows[1:] != rows[:-1]
    return at - np.maximum.accumulate(np.where(starts, at, 0))


def _compare(u: Array, v: Array, taken: Array, expected: Array) -> None:
    wrong = taken != expected
    if wrong.any():
        k = int(wrong.argmax())
        what = "is not confirmed in any round" if taken[k] else "is confirmed by the rounds"
        where = "in" if taken[k] else "missing from"
        raise CheckFailed(f"factor: edge ({u[k]}, {v[k]}) {what}, but {where} the factor")


def _check_rounds(answer: Any, rounds: int, maximal: bool) -> None:
    for name, right in (("rounds", rounds), ("maximal", maximal)):
        said = getattr(answer, name, right)
        if said != right:
            raise CheckFailed(f"factor: {name} is {said}, must be {right}")


def _check_places(table: Array, u: Array, v: Array, rank: Array, taken: Array) -> None:
    """Neighbours are listed by preference."""
    chosen = np.flatnonzero(taken)
    chosen = chosen[np.lexsort((rank[chosen], u[chosen]))]
    expected = np.full_like(table, -1)
    expected[u[chosen], _place_in_row(u[chosen])] = v[chosen]
    wrong = (table != expected).any(axis=1)
    if wrong.any():
        i = int(wrong.argmax())
        raise CheckFailed(
            f"factor: vertex {i} lists {table[i].tolist()}, by preference {expected[i].tolist()}"
        )
