"""Arrays for a library that may not read GPU memory: they go through pinned memory of the host.

A library that is not made for CUDA ends the process when it is given an address of a GPU (Open MPI
4.1 does).  So it is asked whether it can, never tried.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from matchwood import engines
from matchwood.engines.ranks.checks import module_of

NUMBERS = 4 + 64  # on a GPU, letter and bytes of the type, dimensions, and their lengths
Method = TypeVar("Method", bound=Callable[..., Any])


@functools.cache
def cuda_aware(MPI: Any) -> bool:
    """Whether the MPI library says that it reads and writes memory of a GPU.

    MATCHWOOD_DIST_CUDA_AWARE=0 or 1 overrules it: some vendors' libraries can and do not say so.
    """
    setting = os.environ.get("MATCHWOOD_DIST_CUDA_AWARE", "")
    if setting in ("0", "1"):
        return setting == "1"
    if setting:
        raise ValueError(f"MATCHWOOD_DIST_CUDA_AWARE must be 0 or 1, got {setting!r}")
    try:
        library = ctypes.CDLL(MPI.__file__)  # finds the functions of the libraries it is linked to
        return bool(library.MPIX_Query_cuda_support())
    except (OSError, AttributeError):
        return False


def through_host(method: Method) -> Method:
    """A method whose array goes through the host's memory, and its result back, where it must."""

    @functools.wraps(method)
    def call(self: Any, array: Any, *args: Any) -> Any:
        if self.cuda_aware or engines.location(array) == "cpu":
            return method(self, array, *args)
        return engines.moved(method(self, on_host(array), *args), "gpu")

    return call  # type: ignore[return-value]


def on_host(array: Any) -> np.ndarray[Any, Any]:
    """The array itself, or a copy in pinned memory where it lies on a GPU."""
    if engines.location(array) == "cpu":
        return array
    host = _pinned(array.shape, array.dtype)
    array.get(out=host)
    return host


def _pinned(shape: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    engines.cupy()
    import cupyx

    return cupyx.empty_pinned(shape, dtype)


def empty(size: int, like: Any) -> Any:
    """An array of that size, of the type and at the place of another."""
    return module_of(like).empty(size, like.dtype)


def place(shape: Any, dtype: np.dtype[Any], on_gpu: bool) -> Any:
    """An empty array on the host, or on the GPU."""
    return engines.cupy().empty(shape, dtype) if on_gpu else np.empty(shape, dtype)


def raw(array: Any) -> Any:
    """The bytes of a contiguous array: libraries do not know every type of number."""
    return array.view(np.uint8)


def settle(array: Any) -> None:
    """Wait until the GPU has written the array: other streams and processes read it next."""
    if array is not None and engines.location(array) == "gpu":
        engines.cupy().cuda.get_current_stream().synchronize()


# Place, type and shape of an array that is broadcast, in a few numbers


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
