"""When is a solution right?  The limit that every engine checks each row of its solutions against.

The measure is the residual of a row relative to its terms, |b - A x| / (|A| |x| + |b|).  This is
the smallest relative change of its entries that makes the equation true (Oettli and Prager).  It
must be at most UNITS rounding units in every row, for systems of any size; a row that exceeds the
limit is "off".  The residual is itself rounded, by at most HIDDEN units: 2 in a plain row, 3.5 in a
block row.

The promise for a system: the largest measure of its rows is at most TIMES that of LAPACK's solution
(gtsv, for blocks gbsv), or within the limit, whichever is larger.  Measured exactly, the limit is
UNITS + HIDDEN units.

Elimination alone does not keep this limit, neither here nor in LAPACK.  Where the terms of a row
happen to be much smaller than those of its neighbours, the rounding errors of the neighbours are
large for it.  On random matrices this happens in one row in a thousand.  If few rows are off, they
are repaired by a change of the unknowns around (repair/cpu.py, passes.cuh).  If many are off, or
if that is not enough, the whole system is solved again (repair/).
"""

from __future__ import annotations

from typing import Any

import numpy as np

UNITS = 8.0  # rounding units; the limit for a row
HIDDEN = {False: 2.0, True: 3.5}  # rounding units of the residual itself; True: of blocks
TIMES = 10.0  # the largest ratio to LAPACK's measure
# Rows are repaired locally if at most this many are off: FEW_ROWS, or one in ROWS_PER_REPAIRED,
# whichever is more.
FEW_ROWS = 16
ROWS_PER_REPAIRED = 64

# At most how many rows of a random system are off before they are repaired.
ROWS_WITHOUT_CHANCE = 8192  # rows; none in a system of up to this size
ROWS_PER_CHANCE = 256  # rows; in a larger system one in 256, of block rows one in 128
ROWS_PER_UNIT = 4  # such a row of a system of n rows is off by no more than n / 4 units

# An engine's verdict on its solution: wrong; right, but the matrix is hard; right.
WRONG, HARD, RIGHT = range(3)


def limit(kind: Any) -> float:
    """The largest relative residual that a row may have."""
    return UNITS * float(np.finfo(kind).eps)


def few(equations: int) -> int:
    """If more of the equations than this are off, the whole system is solved again."""
    return max(FEW_ROWS, equations // ROWS_PER_REPAIRED)


def by_chance(n: int, p: int = 1) -> int:
    """How many equations of n rows, or block rows of p, may be off in a matrix that is not hard."""
    return 0 if n <= ROWS_WITHOUT_CHANCE else n * p // (ROWS_PER_CHANCE // p)


def worst_by_chance(n: int) -> float:
    """How far these equations may be off, in multiples of the limit."""
    return max(1.0, n / ROWS_PER_UNIT / UNITS)


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
