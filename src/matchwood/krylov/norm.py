"""The Euclidean norm of a vector whose squares may overflow or underflow."""

from __future__ import annotations

from typing import Any

import numpy as np

SMALLEST_SQUARE = 1e-280  # sums of squares between this and its inverse lost nothing


def norm(x: Any) -> float:
    """The Euclidean norm, also where squares overflow or underflow."""
    wide = x.astype(np.float64, copy=False)
    with np.errstate(over="ignore", under="ignore"):
        square = float((wide**2).sum())
    if SMALLEST_SQUARE < square < 1 / SMALLEST_SQUARE or square != square:
        return square**0.5
    largest = float(abs(wide).max()) if wide.size else 0.0
    if largest == 0 or not np.isfinite(largest):
        return largest
    power = np.ldexp(1.0, min(-int(np.frexp(largest)[1]), 1000))  # exact
    return float((((wide * power) ** 2).sum()) ** 0.5) / float(power)
