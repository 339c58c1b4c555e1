"""Sums and ratios of sums that do not overflow on the way.  For NumPy and CuPy arrays.

Weights near 1e308 are finite while their sum is not.  They are scaled down by a power of two and
the result is scaled up again, which is exact.  Only a result that double precision cannot hold is
refused.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood import engines

SCALE = 2.0**-64  # a factor; with it a sum of 2^64 terms does not overflow


def total(values: Any) -> float:
    """The sum in double precision, infinite where double precision cannot hold it."""
    if getattr(getattr(values, "dtype", None), "kind", "O") not in "biuf":  # made by hand
        got = getattr(values, "dtype", type(values).__name__)
        raise TypeError(f"weights must be an array of real numbers, got {got}")
    with np.errstate(over="ignore"):
        return float(values.sum(dtype=np.float64))


def half_of(values: Any) -> float:
    """Half the sum, where the sum itself may be too large."""
    return _half(total(values), values)


def _half(found: float, values: Any) -> float:
    """`half_of` the values, whose sum is `found`."""
    return found / 2 if math.isfinite(found) else total(values.astype(np.float64) / 2)


def half_over_ranks(comm: Any, values: Any) -> float:
    """`half_of` the values of all ranks of a communicator; all of them call this.

    Halves are added up only where a sum overflows: those of the smallest numbers are rounded.
    """
    found = total(values)
    parts = np.array([found, _half(found, values)])
    with np.errstate(over="ignore"):
        whole, halves = (float(part) for part in comm.allreduce(parts))
    return whole / 2 if math.isfinite(whole) else halves


def ratio(part: Any, whole: Any) -> float:
    """The sum of `part` over that of `whole`, none negative: 0 to 1; 0 where `whole` is 0."""
    above, below = total(part), total(whole)
    if not (math.isfinite(above) and math.isfinite(below)):
        above, below = (total(a.astype(np.float64) * SCALE) for a in (part, whole))
    return min(1.0, above / below) if below > 0 else 0.0  # the two sums are rounded differently


def mean_of_two(a: Any, b: Any) -> Any:
    """(a + b) / 2 where that does not overflow, else a / 2 + b / 2: the same but for denormals."""
    xp = engines.cupy() if engines.location(a) == "gpu" else np
    with np.errstate(over="ignore"):
        both = (a + b) / 2
    return xp.where(xp.isfinite(both), both, a / 2 + b / 2).astype(a.dtype, copy=False)


def finite(caller: str, what: str, value: float) -> float:
    """`value`, refused where a sum of finite weights has become infinite."""
    if math.isfinite(value):
        return value
    raise ValueError(
        f"{caller}: {what} must be a number of double precision, got more than "
        f"{np.finfo(np.float64).max:.4g}; divide the weights by a power of two"
    )
