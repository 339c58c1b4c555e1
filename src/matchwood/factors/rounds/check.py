"""Is this the factor that the rounds give?  With NumPy, from the definition.

The result of rounds with random charges depends on the order of the proposals, so no property of
the answer alone decides.  The rounds are repeated, all vertices at once, with the entries of the
matrix in the order of preference.  Nothing but the hashes is shared with the engines.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from matchwood.errors import CheckFailed
from matchwood.factors.result import Plan
from matchwood.factors.row_places import place_in_row
from matchwood.primitives.hashing import round_number
from matchwood.primitives.hashing.reference import quarter_md5_array

Array = np.ndarray[Any, Any]


def check_rounds(
    n: int, u: Array, v: Array, order: Array, taken: Array, plan: Plan, answer: Any
) -> None:
    """Raise `CheckFailed` unless the entries (u, v) that are `taken` are those of the rounds."""
    expected, rounds, maximal = _proposed(n, u, v, order, plan)
    _compare(u, v, taken, expected)
    _check_end(answer, rounds, maximal)


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
        if k == plan.limit or (plan.limit < 0 and idle == plan.period):
            return confirmed, k, False
        asked = live
        if plan.charged(k):
            charge = quarter_md5_array(vertices, round_number(plan.seed, k)) < plan.barrier
            asked = live[charge[u[live]] != charge[v[live]]]
        proposed = asked[place_in_row(u[asked]) < plan.n - degree[u[asked]]]
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


def _compare(u: Array, v: Array, taken: Array, expected: Array) -> None:
    wrong = taken != expected
    if wrong.any():
        k = int(wrong.argmax())
        what = "is not confirmed in any round" if taken[k] else "is confirmed by the rounds"
        where = "in" if taken[k] else "missing from"
        raise CheckFailed(f"factor: edge ({u[k]}, {v[k]}) {what}, but {where} the factor")


def _check_end(answer: Any, rounds: int, maximal: bool) -> None:
    for name, right in (("rounds", rounds), ("maximal", maximal)):
        said = getattr(answer, name, right)
        if said != right:
            raise CheckFailed(f"factor: {name} is {said}, must be {right}")
