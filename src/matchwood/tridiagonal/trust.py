"""When is a solution right?  The limits that every engine holds its own answers against.

A row is judged by its residual relative to its terms, |b - A x| / (|A| |x| + |b|): the smallest
relative change of its entries that makes the equation true (Oettli and Prager).  Elimination with
pivoting leaves a few rounding units there, but no method bounds it: where the terms of a row happen
to be much smaller than those of its neighbours, more is left.  On random matrices, with LAPACK as
here, one row in a thousand is off by more than 8 units, and the worst of n rows by some n / 300.

So an answer is trusted when hardly any row is off by more than 8 units and none by n / 4.  All
others are mended (mend.py), which takes longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

UNITS = 8.0  # rounding units that a row may be off
RARE = 256  # one row in so many may be off by more: chance
WORST = 4  # no row by more than n / WORST units


def limits(n: int, kind: Any) -> tuple[float, float]:
    """Relative residuals that are good, and that are bearable where they are rare."""
    unit = float(np.finfo(kind).eps)
    return UNITS * unit, max(UNITS, n / WORST) * unit


def by_chance(n: int) -> int:
    """How many rows may be off by more than the first limit."""
    return n // RARE
