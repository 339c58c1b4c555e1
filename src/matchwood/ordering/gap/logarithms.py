"""Logarithms as integers, so that sums of them are the same in any order.

    L(d) = rint(2^20 log2(d >> s)) + (s << 20),   s = max(0, bits(d) - 16)

A distance keeps its 16 leading bits, which a table of 2^16 words has.  L is wrong by less than
2^-15 bits, and never descends as d grows.  ordering/cpu and logs.cuh look up the same table.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

ONE = 1 << 20  # of the integers that are one bit
TABLE_BITS = 16


@functools.cache
def table() -> Any:
    """L(d) for d below 2^16; the word of 0 is 0, and not used."""
    d = np.arange(1 << TABLE_BITS, dtype=np.float64)
    d[0] = 1
    words = np.rint(np.log2(d) * ONE).astype(np.int32)
    words.flags.writeable = False
    return words


def log_of(d: int) -> int:
    """L(d) of one distance."""
    shift = max(0, d.bit_length() - TABLE_BITS)
    return int(table()[d >> shift]) + (shift << 20)


def log_array(d: Any) -> Any:
    """L(d) of an array of distances."""
    d = d.astype(np.int64)
    shift = np.zeros_like(d)
    while bool((over := (d >> shift) >= 1 << TABLE_BITS).any()):
        shift += over
    return table()[d >> shift].astype(np.int64) + (shift << 20)


def bits(total: int) -> float:
    """A sum of logarithms as a number of bits."""
    return total / ONE
