"""Weights from the hash of an edge, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.generators.streams import INTEGERS, values

Array = np.ndarray[Any, Any]


def weigh(
    indptr: Array,
    indices: Array,
    dtype: Any,
    directed: bool,
    key: int,
    fraction_bits: int,
    threads: int | None = None,
) -> Array:
    """k / 2^fraction_bits from the upper bits of the hash; 0 asks for an integer 1 .. 255."""
    n = indptr.size - 1
    u = np.repeat(np.arange(n, dtype=np.uint64), np.diff(indptr))
    v = indices.astype(np.uint64)
    if not directed:
        u, v = np.minimum(u, v), np.maximum(u, v)
    drawn = values(key, u * np.uint64(n) + v)
    if fraction_bits == 0:
        number = (drawn >> np.uint64(32)) * np.uint64(INTEGERS) >> np.uint64(32)
    else:
        number = drawn >> np.uint64(64 - fraction_bits)
    return ((number + np.uint64(1)).astype(np.float64) * 2.0**-fraction_bits).astype(dtype)
