"""Scratch arrays of a call, in few blocks of memory.

Several arrays of a few megabytes each lie at the top of the heap.  When the call ends, glibc gives
them back to the system, and the next call has a page fault for each 4 KiB: for the forest of half a
million vertices 3,300 of them, a third of its time.  With one large block this does not happen:
glibc keeps free memory up to twice the largest block so far.  So a workspace that is larger than
the results of the call stays with the process.  NumPy also asks for huge pages from 4 MB on.

glibc always takes a block of 32 MB or more from the system and gives it back at once.  So no block
is that large, unless an array is.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

LINE = 64  # bytes of a cache line: arrays do not share one
LARGEST = (32 << 20) - (1 << 16)  # bytes of a block of several arrays: below 32 MB with its headers


def workspace(**arrays: tuple[int | tuple[int, ...], Any]) -> Any:
    """Uninitialised arrays by name, ``workspace(queue=(n, np.int32), bits=((64, 2), np.uint32))``.

    A block lives as long as any of its arrays.  So a function must return none of them; results
    are separate arrays.
    """
    space = SimpleNamespace()
    block: list[tuple[str, int | tuple[int, ...], Any]] = []
    total = 0
    for name, (shape, kind) in arrays.items():
        size = _padded(shape, kind)
        if block and total + size > LARGEST:
            _lay_out(space, block, total)
            block, total = [], 0
        block.append((name, shape, kind))
        total += size
    _lay_out(space, block, total)
    return space


def _lay_out(
    space: SimpleNamespace, arrays: list[tuple[str, int | tuple[int, ...], Any]], total: int
) -> None:
    """Put the arrays into one block of `total` bytes, as attributes of `space`."""
    block = np.empty(total + LINE, np.uint8)
    start = -block.ctypes.data % LINE  # NumPy's begin anywhere within a line
    for name, shape, kind in arrays:
        part = block[start : start + _size(shape, kind)]
        setattr(space, name, part.view(kind).reshape(shape))
        start += _padded(shape, kind)


def _padded(shape: int | tuple[int, ...], kind: Any) -> int:
    return -(-_size(shape, kind) // LINE) * LINE


def _size(shape: int | tuple[int, ...], kind: Any) -> int:
    elements = math.prod(map(int, shape)) if isinstance(shape, tuple) else int(shape)
    return elements * np.dtype(kind).itemsize
