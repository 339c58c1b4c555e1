"""When is a solution right?  The limit that every engine holds each row of its answers against.

A row is judged by its residual relative to its terms, |b - A x| / (|A| |x| + |b|): the smallest
relative change of its entries that makes the equation true (Oettli and Prager).  Every row must be
within UNITS rounding units, whatever the size of the system.  The residual is itself rounded: this
hides at most 2 units of a plain row, 3.5 of a block row.  So no plain row is off by more than 10.

Elimination alone does not keep this limit, neither here nor in LAPACK.  Where the terms of a row
happen to be much smaller than those of its neighbours, the rounding errors of the neighbours count
more.  On random matrices this is one row in a thousand.  If few rows are off, they are mended where
they are (mending/cpu_local.py, mend.cuh).  If many are, or if that does not do, the whole
system is solved again (mending/).
"""

from __future__ import annotations

from typing import Any

import numpy as np

UNITS = 8.0  # rounding units that a row may be off
FEW = 16  # rows that are mended where they are, in any system,
RARE = 64  # or one in so many

# Of a random system, so many rows are off before they are mended.
SURE = 8192  # rows; of fewer none
CHANCE = 256  # of more, one in so many; of block rows one in half as many
WORST = 4  # by no more than n / 4 units

# What an engine says of its answer: wrong; right, but the matrix is hard; right.
WRONG, HARD, RIGHT = range(3)


def limit(kind: Any) -> float:
    """The largest relative residual that a row may have."""
    return UNITS * float(np.finfo(kind).eps)


def few(equations: int) -> int:
    """How many of so many equations are mended where they are; if more are off, all are."""
    return max(FEW, equations // RARE)


def by_chance(n: int, p: int = 1) -> int:
    """How many equations of n rows, or block rows of p, are off although the matrix is not hard."""
    return 0 if n <= SURE else n * p // (CHANCE // p)


def worst_by_chance(n: int) -> float:
    """How many times the limit they are off."""
    return max(1.0, n / WORST / UNITS)


def product(dl: Any, d: Any, du: Any, x: Any) -> Any:
    """A x, for x of shape (n,) or (n, p); the outermost coefficients are not read."""
    result = _times(d, x)
    result[1:] += _times(dl[1:], x[:-1])
    result[:-1] += _times(du[:-1], x[1:])
    return result


def _times(a: Any, x: Any) -> Any:
    if a.ndim == 3:
        return a[:, :, 0] * x[:, :1] + a[:, :, 1] * x[:, 1:]
    return a * x
