"""The streams in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.hashing import GOLDEN
from matchwood.primitives.hashing.reference import mix64_array

Array = np.ndarray[Any, Any]


def values(key: int, k: Array) -> Array:
    """Numbers k (uint64 array) of the stream that starts at `key`."""
    return np.asarray(mix64_array(np.uint64(key) + k * np.uint64(GOLDEN)))
