"""The choices of a refinement: metrics, partners, and vertices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import real
from matchwood.primitives.sort import radix_sort

METRICS = ("log_gap", "linear_gap")
PARTNERS = ("neighbours", "median")
AROUND = (-2, -1, 1, 2)  # places beside the median that are tried


def exact_fraction(function: str, value: Any) -> Fraction:
    """`value` as the decimal number that Python prints: a tenth of 30 is 3, and not 4."""
    number = real(function, "fraction", value, 0, 1)
    if number == 0:
        raise ValueError(f"{function}: fraction must be above 0 and at most 1, got {value}")
    return Fraction(repr(number))


def chosen_vertices(view: Any, fraction: Fraction, threads: int | None) -> Any:
    """The first ceil(fraction |S|) of S: vertices with neighbours by (degree, vertex)."""
    xp = engines.xp(view.indptr)
    degree = xp.diff(view.indptr)
    holders = xp.flatnonzero(degree).astype(view.indptr.dtype)
    unsigned = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    keys = degree[holders].view(unsigned)
    size = -(-fraction.numerator * int(holders.size) // fraction.denominator)
    return radix_sort(keys, holders, threads=threads)[1][:size].copy()
