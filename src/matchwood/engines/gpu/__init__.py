"""The GPU engine: loads, types, caches and launches CUDA text; memory; captured rounds.

A problem keeps its kernels in `gpu.cu` and its host loop in `gpu.py`:

    SOURCE = gpu.Source(__package__, "gpu.cu", ("hook<I>", "relax<I,W>"))

    def run(indptr, indices):                              # cupy arrays
        k = SOURCE.kernels(I=indices.dtype)                # compiled once per device and types
        space = gpu.workspace("bfs", queue=(n, indices.dtype), size=(1, np.uint64))
        k.hook(n, (n, indptr, indices, space.queue))       # threads needed, arguments

Below are memory and rounds; read on in source.py (text to kernels, numbers that CUDA and Python
share) and launch.py (arguments, grids).  Headers that several families include are in device/, the
others beside their problem or primitive; all are included as ``#include "matchwood/atomics.cuh"``:

    threads, atomics    numbers of a thread, warp and block sums; relaxed accesses, counters
    edges, sorted_row   entries of rows shared among lanes; a search in a sorted row
    by_owner            elements that go to chosen ranks, and records of them
    status              how a kernel reports an error
    grid_barrier        many rounds in one kernel
    resident_barrier    the same for the blocks that run; blocks that read each other's memory
    exact               float32 as the CPU has it (CuPy flushes subnormal numbers to zero)

Rules: everything runs on the current stream; nothing waits for the device except `Flag.read`
and `Status.check`; nothing here imports cupy before it is called.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from matchwood import engines
from matchwood.engines.gpu.launch import Kernel, Kernels, multiprocessors
from matchwood.engines.gpu.source import SOURCES, KernelError, Source
from matchwood.errors import OutOfMemory

__all__ = [
    "SOURCES",
    "Captured",
    "Flag",
    "Kernel",
    "KernelError",
    "Kernels",
    "Layout",
    "Source",
    "Status",
    "capture",
    "empty",
    "free_bytes",
    "guard",
    "multiprocessors",
    "reserve",
    "workspace",
]

ALIGNMENT = 512  # bytes; what CuPy's pool rounds to, and more than any load needs
_NO_STATUS = 0xFFFF_FFFF_FFFF_FFFF  # the word of status.cuh for "nothing has failed"
_DETAIL_BITS = 56  # bits of a status below its code


# Memory, all of it from CuPy's pool, whose limit holds.  A call adds up what it will take and asks
# once, before it starts, so that `OutOfMemory` leaves the input as it was.


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
    """Where scratch arrays lie in one block of memory; for calls that are made repeatedly.

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


# Rounds on the device: captured launches, a convergence flag, a status word.  A launch from Python
# costs 8 us, one inside a captured graph 0.7 us (H200), so rounds that repeat are captured once and
# replayed; the host reads a flag in pinned memory every few rounds:
#
#     flag = gpu.Flag()
#     rounds = gpu.capture(lambda: [one_round(flag) for _ in range(4)])
#     while True:
#         flag.clear()
#         rounds.launch()
#         flag.fetch()                    # asynchronous
#         if not flag.read():             # waits for the fetch, not for what was launched after it
#             break


class Captured:
    """Launches recorded by `capture`; `launch` replays them on the current stream."""

    def __init__(self, graph: Any, function: Callable[[], object]) -> None:
        self._graph = graph
        # the arrays that the launches use belong to the function's closure: keep it alive
        self._function = function

    def launch(self) -> None:
        """Replay on the current stream.  Does not wait."""
        self._graph.launch()


def capture(function: Callable[[], object]) -> Captured:
    """Record what `function` launches, without running it.

    The function may launch kernels and copy between arrays asynchronously.  It must not allocate
    (allocate before and let it use those arrays), must not wait for the device, and its kernels
    must be compiled already (call `Source.kernels` before).  The arrays it uses stay alive as
    long as the result.
    """
    cupy = engines.cupy()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream, cupy.cuda.using_allocator(_no_allocation):
        stream.begin_capture()
        try:
            function()
        except BaseException:
            # leave capture mode; the broken recording itself may be an error, the first one counts
            with contextlib.suppress(Exception):
                stream.end_capture()
            raise
        graph = stream.end_capture()
    return Captured(graph, function)


def _no_allocation(nbytes: int) -> NoReturn:
    raise RuntimeError(f"capture: the function allocates {nbytes} bytes; allocate them before")


class Flag:
    """Words that kernels set on the device and the host reads from pinned memory.

    Pass the flag itself as an ``int*`` argument of a kernel.  One word by default.
    """

    def __init__(self, words: int = 1, dtype: Any = np.int32) -> None:
        self._cupy = engines.cupy()
        import cupyx

        self.device_words = self._cupy.zeros(words, dtype)
        self._host = cupyx.zeros_pinned(words, dtype)
        self._fetched = self._cupy.cuda.Event(disable_timing=True)

    def clear(self) -> None:
        """Set the device words to 0, on the current stream."""
        self.device_words.data.memset_async(0, self.device_words.nbytes)

    def fetch(self) -> None:
        """Start to copy the words to the host, on the current stream (not inside `capture`)."""
        self.device_words.data.copy_to_host_async(self._host.ctypes.data, self._host.nbytes)
        self._fetched.record()

    def read(self) -> Any:
        """Wait for the last `fetch` and return what it copied: an int, or an array of words."""
        self._fetched.synchronize()
        return int(self._host[0]) if self._host.size == 1 else self._host.copy()

    def __del__(self) -> None:
        # CuPy hands pinned memory to the next who asks, also where a copy to it is under way
        with contextlib.suppress(Exception):
            self._fetched.synchronize()


class Status:
    """A word in which kernels report an error (status.cuh: ``fail(status, code, detail)``).

    Pass it as the ``unsigned long long* status`` of a kernel.  Of several failures the one with
    the smallest (code, detail) is kept, so the message does not depend on scheduling.
    """

    def __init__(self) -> None:
        self._flag = Flag(1, np.uint64)
        self.device_words = self._flag.device_words
        self.clear()

    def clear(self) -> None:
        """Clear failures, on the current stream."""
        self.device_words.data.memset_async(0xFF, self.device_words.nbytes)

    def read(self) -> tuple[int, int]:
        """Wait for the current stream; code and detail of the failure, or (0, -1)."""
        self._flag.fetch()
        word = self._flag.read()
        if word == _NO_STATUS:
            return 0, -1
        return word >> _DETAIL_BITS, word & ((1 << _DETAIL_BITS) - 1)

    def check(self, errors: Mapping[int, Callable[[int], Exception]] | None = None) -> None:
        """Wait for the current stream and raise what the kernels reported.

        `errors` maps codes (1 to 255) to functions that make the exception from the detail
        (0 to 2^56 - 1, a vertex or an entry).
        """
        code, detail = self.read()
        if code == 0:
            return
        if errors is None or code not in errors:
            raise RuntimeError(f"a GPU kernel failed with code {code}, detail {detail}")
        raise errors[code](detail)
