"""The streams for kernels: device functions on uint64 numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device
from matchwood.primitives.hashing.cpu import mix64

STEP = np.uint64(0x9E3779B97F4A7C15)  # GOLDEN; written here, where the cache sees a change


@device
def value(key: Any, k: Any) -> Any:
    """Number k of the stream that starts at `key`."""
    return mix64(key + np.uint64(k) * STEP)


def words(numbers: Any) -> tuple[Any, ...]:
    """Python integers as the uint64 that kernels take."""
    return tuple(np.uint64(number) for number in numbers)
