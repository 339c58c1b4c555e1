"""GPU memory: ask for what is needed before taking it; our own error when there is not enough.

Everything comes from CuPy's pool, and its limit holds.  A call adds up what it will take and
asks once, before it starts; out of memory then leaves the input as it was.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.errors import OutOfMemory

ALIGNMENT = 512  # bytes; what CuPy's pool rounds to, and more than any load needs


def free_bytes() -> int:
    """Bytes that can be allocated on the current device now, counting the pool's own free ones."""
    cupy = engines.cupy()
    pool = cupy.get_default_memory_pool()
    free = int(cupy.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())
    limit = int(pool.get_limit())
    return min(free, max(0, limit - int(pool.used_bytes()))) if limit else free


def reserve(nbytes: int, what: str) -> None:
    """Raise `OutOfMemory` unless `nbytes` can be allocated on the current device.

    Nothing is taken yet.  Quick when the pool holds as much already.
    """
    pool = engines.cupy().get_default_memory_pool()
    if nbytes <= pool.free_bytes():
        return
    if nbytes > free_bytes():
        _refuse(nbytes, what)


def empty(shape: int | tuple[int, ...], dtype: Any, what: str) -> Any:
    """An uninitialised cupy array for a result, or `OutOfMemory` naming `what`."""
    cupy = engines.cupy()
    try:
        return cupy.empty(shape, dtype)
    except cupy.cuda.memory.OutOfMemoryError:
        # the pool's free blocks may be too scattered to use: give them back, try once more
        cupy.get_default_memory_pool().free_all_blocks()
    try:
        return cupy.empty(shape, dtype)
    except cupy.cuda.memory.OutOfMemoryError:
        _refuse(_elements(shape) * np.dtype(dtype).itemsize, what)


class Layout:
    """Where scratch arrays lie in one block of memory; for calls that are made again and again.

    Examples
    --------
    ``layout = Layout("solve", rows=(n, np.float32))`` once; then ``block = layout.take()``, and the
    array is at the address ``block.ptr + layout.rows``.  Keep `block` until the last launch.
    """

    def __init__(self, what: str, **arrays: tuple[int, Any]) -> None:
        self._what = what
        self.nbytes = 0
        for name, (size, kind) in arrays.items():
            setattr(self, name, self.nbytes)
            self.nbytes += -(-size * np.dtype(kind).itemsize // ALIGNMENT) * ALIGNMENT

    def take(self) -> Any:
        """The block, uninitialised: an object with the address `ptr`."""
        return empty(max(self.nbytes, 1), np.uint8, self._what).data


def workspace(what: str, **arrays: tuple[int | tuple[int, ...], Any]) -> Any:
    """Scratch arrays, uninitialised, in one block of memory.  `OutOfMemory` if there is not enough.

    The block lives as long as any of its arrays: return none of them, use `empty` for results.

    Examples
    --------
    ``space = workspace("bfs", queue=(n, np.int32), bits=((words, 2), np.uint32))`` gives
    ``space.queue`` and ``space.bits``.
    """
    total = 0
    starts = []
    for size, kind in arrays.values():
        starts.append(total)
        total += -(-_elements(size) * np.dtype(kind).itemsize // ALIGNMENT) * ALIGNMENT
    reserve(total, what)
    block = empty(max(total, 1), np.uint8, what).data
    array = engines.cupy().ndarray  # at an address; a slice of the block takes 3 times as long
    space = SimpleNamespace(nbytes=total)
    for (name, (size, kind)), start in zip(arrays.items(), starts, strict=True):
        setattr(space, name, array(size, kind, block + start))
    return space


@contextlib.contextmanager
def guard(what: str, needs: int = 0) -> Iterator[None]:
    """Within, CuPy running out of memory is `OutOfMemory` for `what`; `needs` is asked first."""
    cupy = engines.cupy()
    if needs:
        reserve(needs, what)
    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise OutOfMemory(f"{what}: {error}; {free_bytes():,} bytes are free on the GPU") from error


def _elements(shape: int | tuple[int, ...]) -> int:
    return math.prod(map(int, shape)) if isinstance(shape, tuple) else int(shape)


def _refuse(nbytes: int, what: str) -> None:
    raise OutOfMemory(
        f"{what} needs {nbytes:,} bytes on the GPU, {free_bytes():,} are free; "
        f"free memory, or run it on the CPU; {engines.BEYOND}"
    )
