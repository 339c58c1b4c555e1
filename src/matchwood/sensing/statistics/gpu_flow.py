"""Jobs on devices: the next one's data is copied in while one is worked on and one is copied out.

Each device has a thread of its own, since a sort waits for its device, and three streams.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines, gpu

SENT = 2  # arrays on their way out that are kept in memory, at most, when a job begins
SLACK = 16  # a buffer is made larger by this part, so that parts of about its size fit too


class Piece(NamedTuple):
    """Part of an array, on the host as a rule."""

    array: Any
    start: int
    end: int


Pieces = Callable[[Any], list[list[Piece]]]


class Lane:
    """A device with its streams, and two sets of buffers that are used in turn."""

    def __init__(self, device: int) -> None:
        cupy = engines.cupy()
        self.device = cupy.cuda.Device(device)
        with self.device:
            self.main, self.inward, self.outward = (
                cupy.cuda.Stream(non_blocking=True) for _ in range(3)
            )
        self._buffers: tuple[dict[int, Any], ...] = ({}, {})
        self._sent: list[tuple[Any, Any]] = []  # arrays that are being copied out, until when

    def flow(self, jobs: Sequence[Any], pieces: Pieces, work: Callable[..., Any]) -> None:
        """Work on jobs one after the other; see `shared_out`."""
        with self.device, self.main:
            try:
                self._flow(jobs, pieces, work)
            finally:  # also after an error: memory must not be given back while it is written
                for stream in (self.main, self.inward, self.outward):
                    stream.synchronize()
                self._sent.clear()
                engines.cupy().get_default_memory_pool().free_all_blocks(stream=self.main)

    def _flow(self, jobs: Sequence[Any], pieces: Pieces, work: Callable[..., Any]) -> None:
        free: list[Any] = [None, None]  # when the buffers may be written to again
        following = self._load(pieces(jobs[0]), 0) if len(jobs) else None
        k = 0
        while k < len(jobs):
            arrays, loaded = following or ([], None)
            if k + 1 < len(jobs):
                turn = (k + 1) % 2
                if free[turn] is not None:
                    free[turn].synchronize()
                following = self._load(pieces(jobs[k + 1]), turn)
            self.main.wait_event(loaded)
            work(jobs[k], arrays, self.out)
            free[k % 2] = self.main.record()
            while len(self._sent) > SENT:
                self._sent.pop(0)[1].synchronize()
            k += 1

    def _load(self, lists: list[list[Piece]], turn: int) -> tuple[list[Any], Any]:
        """The arrays of a job, each put together from pieces, and when they will be there."""
        arrays = [self._buffer(parts, turn, number) for number, parts in enumerate(lists)]
        # their memory may have been another array's, which kernels under way still read
        self.inward.wait_event(self.main.record())
        for array, parts in zip(arrays, lists, strict=True):
            at = int(array.data.ptr)
            for given, start, end in parts:
                nbytes = (end - start) * array.itemsize
                _copy(at, _address(given) + start * array.itemsize, nbytes, self.inward)
                at += nbytes
        return arrays, self.inward.record()

    def _buffer(self, parts: list[Piece], turn: int, number: int) -> Any:
        kind = parts[0].array.dtype if parts else np.dtype(np.uint32)
        size = sum(piece.end - piece.start for piece in parts)
        buffer = self._buffers[turn].get(number)
        if buffer is None or buffer.nbytes < size * kind.itemsize:
            self._buffers[turn].pop(number, None)
            nbytes = (size + size // SLACK) * kind.itemsize // 8 * 8 + 8
            buffer = gpu.empty(nbytes, np.uint8, "traffic_statistics")
            self._buffers[turn][number] = buffer
        return buffer[: size * kind.itemsize].view(kind)

    def out(self, array: Any) -> Any:
        """A copy in pinned memory of the host, which is filled when `flow` ends."""
        import cupyx

        host = cupyx.empty_pinned(array.size, array.dtype)
        self.outward.wait_event(self.main.record())
        _copy(host.ctypes.data, array.data.ptr, array.nbytes, self.outward)
        self._sent.append((array, self.outward.record()))
        return host


def _copy(target: int, source: int, nbytes: int, stream: Any) -> None:
    runtime = engines.cupy().cuda.runtime
    if nbytes:
        runtime.memcpyAsync(target, source, nbytes, runtime.memcpyDefault, stream.ptr)


def _address(array: Any) -> int:
    return int(array.data.ptr if engines.location(array) == "gpu" else array.ctypes.data)


class _Stoppable(Sequence[Any]):
    """Jobs that end when another device has failed, or on Ctrl-C."""

    def __init__(self, jobs: Sequence[Any], stop: threading.Event) -> None:
        self._jobs, self._stop = jobs, stop

    def __len__(self) -> int:
        return 0 if self._stop.is_set() else len(self._jobs)

    def __getitem__(self, k: Any) -> Any:
        return self._jobs[k]


def shared_out(
    lanes: list[Lane], jobs: Sequence[Any], pieces: Pieces, work: Callable[..., Any]
) -> None:
    """Give each lane its jobs; the first error is raised.

    `pieces(job)` are the arrays to load; `work(job, arrays, out)` gets them on the device, and may
    copy back by `out(array)`.
    """
    stop = threading.Event()
    if len(lanes) == 1:
        lanes[0].flow(jobs, pieces, work)
        return
    with ThreadPoolExecutor(len(lanes)) as pool:
        try:
            under_way = [
                pool.submit(lane.flow, _Stoppable(jobs[k :: len(lanes)], stop), pieces, work)
                for k, lane in enumerate(lanes)
            ]
            for one in under_way:
                one.result()
        finally:
            stop.set()
