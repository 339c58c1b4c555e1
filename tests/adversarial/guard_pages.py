"""Memory that ends, or begins, where an array does: one step outside kills the process.

`guarded` copies an array into such memory.  Inside `everywhere` all arrays that NumPy's makers
give (empty, zeros, full, ...) lie there, and so do the results and the scratch of kernels.  On
other systems than Linux these are plain arrays.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

_PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_empty = np.empty


def room(shape: Any, dtype: Any, at_end: bool = True) -> Any:
    """An array of that shape between two pages that must not be touched."""
    dtype = np.dtype(dtype)
    shape = tuple(shape) if np.iterable(shape) else (int(shape),)
    size = math.prod(shape)
    nbytes = size * dtype.itemsize
    if _libc is None or dtype.hasobject or not nbytes:
        return _empty(shape, dtype)
    pages = -(-nbytes // _PAGE)
    memory = mmap.mmap(-1, (pages + 2) * _PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (start, start + (pages + 1) * _PAGE):
        if _libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), 0):
            return _empty(shape, dtype)
    offset = (pages + 1) * _PAGE - nbytes if at_end else _PAGE
    return np.frombuffer(memory, dtype, size, offset).reshape(shape)


def guarded(array: Any, at_end: bool = True) -> Any:
    """A copy in guarded memory."""
    if not array.flags.c_contiguous or array.dtype.hasobject:
        return array.copy()
    made = room(array.shape, array.dtype, at_end)
    made[...] = array
    return made


@contextlib.contextmanager
def everywhere(at_end: bool = True) -> Iterator[None]:
    """Guarded memory for all arrays that are made inside."""

    def empty(shape: Any, dtype: Any = float, *rest: Any, **options: Any) -> Any:
        return room(shape, dtype, at_end)

    def full(shape: Any, value: Any, dtype: Any = None, **options: Any) -> Any:
        made = room(shape, np.asarray(value).dtype if dtype is None else dtype, at_end)
        made[...] = value
        return made

    def like(fill: Any) -> Any:
        def make(array: Any, *value: Any, dtype: Any = None, **options: Any) -> Any:
            array = np.asarray(array)
            made = room(array.shape, array.dtype if dtype is None else dtype, at_end)
            number = value[0] if value and fill is None else fill
            if number is not None:
                made[...] = number
            return made

        return make

    makers = {
        "empty": empty,
        "zeros": lambda shape, dtype=float, **options: full(shape, 0, dtype),
        "ones": lambda shape, dtype=float, **options: full(shape, 1, dtype),
        "full": full,
        "empty_like": lambda array, dtype=None, **options: like(None)(array, dtype=dtype),
        "zeros_like": lambda array, dtype=None, **options: like(0)(array, dtype=dtype),
        "full_like": like(None),
    }
    kept = {name: getattr(np, name) for name in makers}
    for name, maker in makers.items():
        setattr(np, name, maker)
    try:
        yield
    finally:
        for name, maker in kept.items():
            setattr(np, name, maker)
