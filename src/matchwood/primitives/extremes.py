"""The smallest and the largest of many numbers, on the CPU or the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines


def extremes(values: Any) -> tuple[Any, Any]:
    """(least, largest), NumPy scalars of the type of `values`: at least one value, none NaN.

    CuPy's own kernels may take float32 numbers below 1.2e-38 for zero, so on a GPU their bits are
    compared.  As signed integers these have the order of the numbers, those of negative numbers
    the opposite one.

    >>> extremes(np.array([1e-40, -2e-40, 0], np.float32))
    (np.float32(-2e-40), np.float32(1e-40))
    """
    if engines.location(values) != "gpu":
        return np.minimum.reduce(values), np.maximum.reduce(values)
    if values.dtype != np.float32:
        return tuple(values.dtype.type(end.item()) for end in (values.min(), values.max()))
    bits = values.view(np.int32)
    least, most = np.int32(bits.min().item()), np.int32(bits.max().item())
    farthest = np.uint32(values.view(np.uint32).max().item())
    low = farthest if least < 0 else least
    high = most if most >= 0 else least
    return low.view(np.float32), high.view(np.float32)
