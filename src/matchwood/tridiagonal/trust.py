"""When is a solution right?  The limits that every engine holds its own answers against.

A row is judged by its residual relative to its terms, |b - A x| / (|A| |x| + |b|): the smallest
relative change of its entries that makes the equation true (Oettli and Prager).  Elimination with
pivoting leaves a few rounding units there, but no method bounds it: where the terms of a row happen
to be much smaller than those of its neighbours, more is left.  On random matrices, with LAPACK as
here, one row in a thousand is off by more than 8 units, and the worst of n rows by some n / 300.

So up to 8192 rows every one must be within 8 units.  Of more some may be off by chance, because
mending every random system would double the time: one in 256 by more than 8 units, none by more
than n / 4.  Of block rows twice as many are off by chance, so one equation in 128 may be.  All
other answers are mended (mending/).
"""

from __future__ import annotations

from typing import Any

import numpy as np

UNITS = 8.0  # rounding units that a row may be off
FEW = 8192  # up to so many rows none may be off by more
RARE = 256  # beyond, one row in so many
WORST = 4, 2.0**-8  # no row by more than n / 4 units, nor, of many float32 rows, than by this


def limits(n: int, kind: Any) -> tuple[float, float]:
    """Relative residuals that are good, and that are bearable where they are rare."""
    unit = float(np.finfo(kind).eps)
    return UNITS * unit, min(max(UNITS, n / WORST[0]) * unit, WORST[1])


def by_chance(n: int, p: int = 1) -> int:
    """How many equations of n rows, or block rows of p, may be off by more than the first limit."""
    return 0 if n <= FEW else n * p // (RARE // p)


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
