"""Elimination row after row, as in LAPACK: for systems that are not solved well in parts.

Partial pivoting among the rows that contain an unknown; pivots are compared as the rows are given.
So the pivots are LAPACK's, and the solution is as good.  But every row is first divided by a power
of two that brings its largest entry near 1, which is exact.  So products do not overflow, nor do
quotients whose result can be represented, and subnormal numbers lose no digits.  With `scaled`,
pivots are compared after that division: better where rows differ much in size.

The same code for plain rows and blocks: equation i of P x P blocks has unknowns i - K to i + K,
with K = 2 P - 1.  A window of K + 1 equations moves down the rows; its columns begin at the unknown
that is eliminated next.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, device, interrupted, kernel

Array = np.ndarray[Any, Any]


@device
def _entry(dl: Array, d: Array, du: Array, i: int, column: int) -> float:
    """Coefficient of unknown `column` in equation i; zero outside of the matrix."""
    n, p = d.shape[0], d.shape[1]
    if column < 0 or column >= n * p:
        return 0.0
    row, side = i // p, column // p - i // p
    if side == 0:
        return float(d[row, i % p, column % p])
    if side == -1:
        return float(dl[row, i % p, column % p])
    if side == 1:
        return float(du[row, i % p, column % p])
    return 0.0


@device
def _enter(
    dl: Array, d: Array, du: Array, b: Array, i: int, first: int, w: Array, powers: Array, at: int
) -> None:
    """Put equation i, its columns from `first` on, into row `at` of the window."""
    last = w.shape[1] - 1
    p, n = d.shape[1], d.shape[0]
    for k in range(last + 1):
        w[at, k] = 0.0
    powers[at] = 0
    if i >= n * p:
        return
    largest = 0.0
    reach = 2 * p - 1
    for column in range(max(i - reach, 0), min(i + reach + 1, n * p)):
        largest = max(largest, abs(_entry(dl, d, du, i, column)))
    power = math.frexp(largest)[1]
    for k in range(last):
        w[at, k] = math.ldexp(_entry(dl, d, du, i, first + k), -power)
    w[at, last] = math.ldexp(float(b[i]), -power)
    powers[at] = power


@device
def _swap(w: Array, powers: Array, i: int, j: int) -> None:
    for k in range(w.shape[1]):
        w[i, k], w[j, k] = w[j, k], w[i, k]
    powers[i], powers[j] = powers[j], powers[i]


@kernel
def _solve(
    team: Any,
    dl: Array,
    d: Array,
    du: Array,
    b: Array,
    w: Array,
    powers: Array,
    upper: Array,
    x: Array,
    lacking: Array,
    scaled: bool,
) -> None:
    """One thread computes x; `lacking` becomes the first unknown without a pivot."""
    if team.rank > 0:
        return
    size, reach, last = x.size, w.shape[0] - 1, w.shape[1] - 1
    for i in range(reach):
        _enter(dl, d, du, b, i, 0, w, powers, i)
    for j in range(size):
        if interrupted(team, j):
            return
        _enter(dl, d, du, b, j + reach, j, w, powers, reach)
        best = 0
        for i in range(1, reach + 1):
            shift = 0
            if not scaled:  # compare the rows as they were before the division
                shift = min(max(powers[i] - powers[best], -2000), 2000)
            if math.ldexp(abs(w[i, 0]), shift) > abs(w[best, 0]):
                best = i
        if best != 0:
            _swap(w, powers, 0, best)
        if w[0, 0] == 0:
            if lacking[0] < 0:
                lacking[0] = j
            w[0, 0] = 2.0**-52
        for k in range(last + 1):
            upper[j, k] = w[0, k]
        for i in range(1, reach + 1):
            factor = w[i, 0] / upper[j, 0]  # not w[0, 0], which step i = 1 overwrites
            for k in range(1, last):
                w[i - 1, k - 1] = w[i, k] - factor * upper[j, k]
            w[i - 1, last - 1] = 0.0
            w[i - 1, last] = w[i, last] - factor * upper[j, last]
            powers[i - 1] = powers[i]
    for j in range(size - 1, -1, -1):
        value = upper[j, last]
        for k in range(1, min(last, size - j)):
            if upper[j, k] != 0:  # else x[j + k] may be infinite
                value -= upper[j, k] * x[j + k]
        x[j] = value / upper[j, 0]


def solve(dl: Array, d: Array, du: Array, b: Array, scaled: bool = False) -> tuple[Array, int]:
    """The solution for one right-hand side, in double precision; the row without a pivot or -1."""
    n, p = d.shape[0], (d.shape[1] if d.ndim == 3 else 1)
    reach = 2 * p - 1
    blocks = (np.ascontiguousarray(a, np.float64).reshape(n, p, p) for a in (dl, d, du))
    width = 2 * reach + 1
    x, lacking = np.empty(n * p), np.full(1, -1, np.int64)
    room = np.empty((reach + 1, width + 1)), np.empty(reach + 1, np.int64)
    upper = np.empty((n * p, width + 1))
    right = np.ascontiguousarray(b, np.float64)
    crew(1, work=64 * n * p).run(_solve, *blocks, right, *room, upper, x, lacking, scaled)
    return x, int(lacking[0]) // p if lacking[0] >= 0 else -1
