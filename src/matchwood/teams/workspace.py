"""Scratch arrays of a call, in one block of memory.

Several arrays of a few megabytes each lie at the top of the heap.  When the call ends, glibc gives
them back to the system, and the next call has a page fault for each 4 KiB: for the forest of half a
million vertices 3,300 of them, a third of its time.  With one large block this does not happen:
glibc keeps free memory up to twice the largest block so far.  So a workspace that is larger than
the results of the call stays with the process.  NumPy also asks for huge pages from 4 MB on.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

LINE = 64  # bytes of a cache line: arrays do not share one


def workspace(**arrays: tuple[int | tuple[int, ...], Any]) -> Any:
    """Uninitialised arrays by name, ``workspace(queue=(n, np.int32), bits=((64, 2), np.uint32))``.

    The block lives as long as any of its arrays.  So a function must return none of them; results
    are separate arrays.
    """
    total, starts = 0, []
    for shape, kind in arrays.values():
        starts.append(total)
        total += -(-_size(shape, kind) // LINE) * LINE
    block = np.empty(total + LINE, np.uint8)
    block = block[-block.ctypes.data % LINE :]  # NumPy's begin anywhere within a line
    space = SimpleNamespace()
    for (name, (shape, kind)), start in zip(arrays.items(), starts, strict=True):
        part = block[start : start + _size(shape, kind)]
        setattr(space, name, part.view(kind).reshape(shape))
    return space


def _size(shape: int | tuple[int, ...], kind: Any) -> int:
    """Bytes."""
    elements = math.prod(map(int, shape)) if isinstance(shape, tuple) else int(shape)
    return elements * np.dtype(kind).itemsize
