"""The part of `sense` on GPUs.

Chunks of packets go to the devices in turn; their runs are copied back to the host, where sums of
runs are kept.  Sums are made by ranges of sources, each on a device.

Each device has a thread and a stream, and works on a chunk while the others work on theirs and the
next one is read and copied to a device.  The arrays of a chunk may be written to again when as many
chunks as there are devices were begun after it, and one more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.statistics import Histograms, Statistics
from matchwood.applications.sensing.statistics import gpu as statistics
from matchwood.applications.sensing.stream import cpu
from matchwood.applications.sensing.traffic import gpu as links
from matchwood.applications.sensing.traffic.result import Run, TrafficMatrix, trusted
from matchwood.engines import gpu

SORT_BYTES = 64  # device memory per link while runs are added up


class Worker(cpu.Worker):
    """Chunks and sums on devices; runs and matrices on the host."""

    def __init__(self, threads: int | None, devices: tuple[int, ...] | None = None) -> None:
        super().__init__(threads)
        cupy = engines.cupy()
        self.devices = devices or (int(cupy.cuda.runtime.getDevice()),)
        self.ahead = len(self.devices)
        self._lanes = [_Lane(number) for number in self.devices]
        self._next = itertools.cycle(self._lanes)

    def begin(
        self, src: Any, dst: Any, cuts: Any, keep: bool
    ) -> Callable[[], tuple[Any, Any, list[Any]]]:
        # the packets may still be being copied to the device
        ready = engines.cupy().cuda.get_current_stream().record()
        return next(self._next).submit(ready, self._windows, src, dst, cuts, keep).result

    def begin_statistics(self, matrix: TrafficMatrix) -> Callable[[], Any]:
        return next(self._next).submit(None, self._statistics, matrix).result

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()

    def _device(self) -> Any:
        return next(self._next).device

    def windows(self, src: Any, dst: Any, cuts: Any, keep: bool) -> tuple[Any, Any, list[Any]]:
        with self._device():
            return self._windows(src, dst, cuts, keep)

    def _windows(self, src: Any, dst: Any, cuts: Any, keep: bool) -> tuple[Any, Any, list[Any]]:
        """`windows` on the current device, in the current stream."""
        src, dst = _here(src), _here(dst)
        table, run = statistics.window_statistics(src, dst, cuts)
        table[:, 0] = np.diff(cuts)  # packets
        kept = []
        if keep:
            for a, b in itertools.pairwise(cuts.tolist()):
                rows = links.rows_of_packets(src[a:b], dst[a:b])
                kept.append(trusted(*(part.get() for part in rows)))
        return table, _on_host(run), kept

    def run_of_packets(self, src: Any, dst: Any) -> Any:
        with self._device():
            return _on_host(links.run_of_packets(_here(src), _here(dst)))

    def merge(self, a: Any, b: Any) -> Any:
        return self.combine([a, b])

    def combine(self, runs: Any) -> Any:
        """The sum of runs, by ranges of sources on the devices in turn."""
        given = [run for run in runs if run.keys.size]
        if len(given) < 2:
            return given[0] if given else super().combine([])
        total = sum(run.keys.size for run in given)
        parts = max(len(self.devices), -(-total * SORT_BYTES // max(1, self._free())))
        longest = max(given, key=lambda run: run.keys.size).keys
        marks = [longest[longest.size * part // parts] for part in range(1, parts)]
        cuts = [[0, *np.searchsorted(run.keys, marks).tolist(), run.keys.size] for run in given]

        def piece(part: int) -> Run:
            pieces = [
                Run(*(_here(array[cut[part] : cut[part + 1]]) for array in run))
                for run, cut in zip(given, cuts, strict=True)
            ]
            return _on_host(links.sum_runs(pieces))

        if len(self._lanes) > 1:  # each waits for what it has begun before
            begun = [next(self._next).submit(None, piece, part) for part in range(parts)]
            found = [one.result() for one in begun]
        else:
            with self._device():
                found = [piece(part) for part in range(parts)]
        if len(found) == 1:
            return found[0]
        return Run(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    def _free(self) -> int:
        free = []
        for number in set(self.devices):
            with engines.cupy().cuda.Device(number):
                free.append(gpu.free_bytes())
        return min(free)

    def histograms(self, matrix: TrafficMatrix) -> Histograms:
        if matrix.links * SORT_BYTES > self._free():
            return super().histograms(matrix)
        with self._device():
            arrays = (matrix.sources, matrix.indptr, matrix.destinations, matrix.counts)
            there = trusted(*(_here(array) for array in arrays))
            return statistics.matrix_histograms(there)

    def statistics(self, matrix: TrafficMatrix) -> Statistics:
        with self._device():
            return self._statistics(matrix)

    def _statistics(self, matrix: TrafficMatrix) -> Statistics:
        """`statistics` on the current device, in the current stream."""
        arrays = (matrix.sources, matrix.indptr, matrix.destinations, matrix.counts)
        return statistics.matrix_statistics(trusted(*(_here(array) for array in arrays)))


class _Lane:
    """A device with a thread and a stream, both made when they are first needed."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._thread: ThreadPoolExecutor | None = None
        self._stream: Any = None

    @property
    def device(self) -> Any:
        return engines.cupy().cuda.Device(
            self._number
        )  # an object cannot be entered by two threads

    def submit(self, ready: Any, work: Callable[..., Any], *job: Any) -> Future[Any]:
        """Begin work(*job) on the device, after the event `ready`."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "matchwood-sense")
        return self._thread.submit(self._run, ready, work, *job)

    def _run(self, ready: Any, work: Callable[..., Any], *job: Any) -> Any:
        with self.device:
            if self._stream is None:
                self._stream = engines.cupy().cuda.Stream(non_blocking=True)
            with self._stream:
                if ready is not None:
                    self._stream.wait_event(ready)
                try:
                    return work(*job)
                finally:  # also after an error: nothing reads the packets any more
                    self._stream.synchronize()

    def close(self) -> None:
        """Wait for what was begun, and give memory back."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None
        if self._stream is not None:
            with self.device:
                engines.cupy().get_default_memory_pool().free_all_blocks(stream=self._stream)
            self._stream = None


def _here(array: Any) -> Any:
    """The array on the current device, contiguous."""
    cupy = engines.cupy()
    return cupy.ascontiguousarray(cupy.asarray(array))


def _on_host(run: Any) -> Run:
    return Run(*(engines.moved(array, "cpu") for array in run))
