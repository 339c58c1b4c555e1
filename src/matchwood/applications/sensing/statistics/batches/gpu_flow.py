"""Jobs on devices: the next one's data is copied in while one is worked on and one is copied out.

Each device has a thread of its own, since a sort waits for its device, and three streams.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.statistics.batches.gpu_arena import Arena
from matchwood.engines import gpu

SLACK = 16  # a buffer is made larger by this part, so that parts of about its size fit too


class Piece(NamedTuple):
    """Part of an array, on the host as a rule."""

    array: Any
    start: int
    end: int
    address: int | None = None  # of the array, where it was asked for before


Pieces = Callable[[Any], list[list[Piece]]]


class Lane:
    """A device with its streams, memory to work in, and two sets of buffers that are used in turn.

    `nbytes` is about what a job takes; a job that takes more is worked on as well.
    """

    def __init__(self, device: int, nbytes: int) -> None:
        cupy = engines.cupy()
        self.device = cupy.cuda.Device(device)
        with self.device:
            self.main, self.inward, self.outward = (
                cupy.cuda.Stream(non_blocking=True) for _ in range(3)
            )
            self._arena = Arena(nbytes, "traffic_statistics")
            self.device.synchronize()  # what had this memory before, and what makes the packets
        self._buffers: tuple[dict[int, Any], ...] = ({}, {})
        self._read: list[Any] = [None, None]  # when the buffers may be written to again
        self._loading: list[Any] = [None, None]  # what is copied from there, kept until it is done
        self._sent: list[tuple[Any, Any]] = []  # arrays that this job copies out, until when
        self._sent_before: list[tuple[Any, Any]] = []  # and the one before it

    def flow(self, jobs: Sequence[Any], pieces: Pieces, work: Callable[..., Any]) -> None:
        """Work on jobs one after the other; see `shared_out`."""
        cupy = engines.cupy()
        with self.device, self.main, cupy.cuda.using_allocator(self._arena.malloc):
            try:
                self._flow(jobs, pieces, work)
            finally:  # also after an error: memory must not be given back while it is written
                for stream in (self.main, self.inward, self.outward):
                    stream.synchronize()
                self._sent, self._sent_before, self._buffers = [], [], ({}, {})
                self._read, self._loading = [None, None], [None, None]
                if self._arena.overflowed:
                    cupy.get_default_memory_pool().free_all_blocks(stream=self.main)

    def _flow(self, jobs: Sequence[Any], pieces: Pieces, work: Callable[..., Any]) -> None:
        following: list[Any] = []

        def load(k: int) -> None:
            if not following and k < len(jobs):
                following.append(self._load(pieces(jobs[k]), k % 2))

        load(0)
        k = 0
        while k < len(jobs):
            arrays, loaded = following.pop()
            self.main.wait_event(loaded)

            def loaded_is_read(k: int = k) -> None:
                self._read[k % 2] = self.main.record()
                load(k + 1)

            work(jobs[k], arrays, self.out, loaded_is_read)
            if not following:
                loaded_is_read()
            for _, until in self._sent_before:
                until.synchronize()
            self._sent_before, self._sent = self._sent, []
            k += 1

    def _load(self, lists: list[list[Piece]], turn: int) -> tuple[list[Any], Any]:
        """The arrays of a job, each put together from pieces, and when they will be there."""
        arrays = [self._buffer(parts, turn, number) for number, parts in enumerate(lists)]
        if self._read[turn] is not None:
            self.inward.wait_event(self._read[turn])
        runtime, stream = engines.cupy().cuda.runtime, self.inward.ptr
        copy, kind = runtime.memcpyAsync, runtime.memcpyDefault
        for array, parts in zip(arrays, lists, strict=True):
            at, each = int(array.data.ptr), array.itemsize
            for given, start, end, address in parts:
                if end > start:  # there are many, and the device may wait for them
                    source = address_of(given) if address is None else address
                    nbytes = (end - start) * each
                    copy(at, source + start * each, nbytes, kind, stream)
                    at += nbytes
        self._loading[turn] = lists
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
            # the memory may have been another array's, which kernels under way still read
            self._read[turn] = self.main.record()
        return buffer[: size * kind.itemsize].view(kind)

    def out(self, array: Any, host: Any = None) -> Any:
        """A copy in pinned memory of the host, which is filled when `flow` ends."""
        host = pinned(array.size, array.dtype) if host is None else host[: array.size]
        self.outward.wait_event(self.main.record())
        if array.nbytes:
            runtime = engines.cupy().cuda.runtime
            runtime.memcpyAsync(
                host.ctypes.data, array.data.ptr, array.nbytes, runtime.memcpyDefault,
                self.outward.ptr,
            )  # fmt: skip
        self._sent.append((array, self.outward.record()))
        return host


def pinned(size: int, kind: Any) -> Any:
    """Memory of the host that a device can copy from and to by itself."""
    import cupyx

    return cupyx.empty_pinned(size, kind) if size else np.empty(0, kind)


def address_of(array: Any) -> int:
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

    `pieces(job)` are the arrays to load; `work(job, arrays, out, read)` gets them on the device,
    and may copy back by `out(array)`.  It may say `read()` when all that reads them is launched:
    then the next job's are loaded; else they are when it returns.
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
