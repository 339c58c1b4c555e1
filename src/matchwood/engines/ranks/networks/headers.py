"""How an array looks that is broadcast: place, type and shape in a few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines

NUMBERS = 4 + 64  # on a GPU, letter and bytes of the type, dimensions, and their lengths


def header(array: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The numbers that describe an array; zeros where there is none."""
    numbers = np.zeros(NUMBERS, np.int64)
    if array is not None:
        on_gpu = engines.location(array) == "gpu"
        numbers[:4] = on_gpu, ord(array.dtype.kind), array.itemsize, array.ndim
        numbers[4 : 4 + array.ndim] = array.shape
    return numbers


def described(numbers: Any) -> tuple[bool, np.dtype[Any], tuple[int, ...]]:
    """Whether it lies on a GPU, its type and its shape."""
    on_gpu, letter, itemsize, dimensions = numbers[:4].tolist()
    shape = tuple(numbers[4 : 4 + dimensions].tolist())
    return bool(on_gpu), np.dtype(f"{chr(letter)}{itemsize}"), shape
