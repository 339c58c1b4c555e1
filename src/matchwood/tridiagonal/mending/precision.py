"""Float32 to float64 and back without loss on either engine.

CuPy's kernels treat subnormal float32 numbers, those below 2^-126, as zeros.  So on the GPU these
numbers are converted by their bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines

_STEP = 2.0**-149  # distance of neighbouring subnormal float32 numbers
_LEAST = 2.0**-126  # the smallest float32 number that is not subnormal
_SIGN = np.uint32(1 << 31)
_MANTISSA = np.uint32((1 << 23) - 1)


def widened(a: Any) -> Any:
    """The array in double precision; itself if it is so already."""
    if a.dtype != np.float32 or engines.location(a) == "cpu":
        return a.astype(np.float64, copy=False)
    return from_bits(engines.xp(a), a)


def narrowed(a: Any, kind: Any) -> Any:
    """The double precision array in that type, rounded; too large numbers become infinite."""
    if np.dtype(kind) != np.float32 or engines.location(a) == "cpu":
        with np.errstate(all="ignore"):
            return a.astype(kind, copy=False)
    return to_bits(engines.xp(a), a)


def from_bits(xp: Any, a: Any) -> Any:
    """`widened` where arithmetic treats subnormal numbers as zeros."""
    bits = xp.ascontiguousarray(a).view(np.uint32)
    small = (bits & _MANTISSA).astype(np.float64) * _STEP
    small = xp.where((bits & _SIGN) != 0, -small, small)
    return xp.where((bits & ~(_MANTISSA | _SIGN)) == 0, small, a.astype(np.float64))


def to_bits(xp: Any, a: Any) -> Any:
    """`narrowed` where arithmetic would round subnormal results to zero."""
    steps = xp.rint(xp.minimum(abs(a), _LEAST) / _STEP).astype(np.uint32)
    small = steps | xp.where(xp.signbit(a), _SIGN, np.uint32(0))
    with np.errstate(all="ignore"):
        usual = xp.ascontiguousarray(a.astype(np.float32)).view(np.uint32)
    return xp.where(abs(a) < _LEAST, small, usual).astype(np.uint32).view(np.float32)
