"""The part of `sense` on GPUs.

Chunks of packets go to the devices in turn; their runs are copied back to the host, where sums of
runs are kept.  Sums are made by ranges of sources, on the devices in turn.

A separate thread works on a chunk, in its own stream, while the next one is read and copied to the
device.  One chunk at a time: the arrays of a chunk may be written to again when `begin` is called
for the next but one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
        self._next = itertools.cycle(self.devices)
        self._thread: ThreadPoolExecutor | None = None
        self._streams: dict[int, Any] = {}  # by device

    def begin(
        self, src: Any, dst: Any, cuts: Any, keep: bool
    ) -> Callable[[], tuple[Any, Any, list[Any]]]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "matchwood-sense")
        # the packets may still be being copied to the device
        ready = engines.cupy().cuda.get_current_stream().record()
        return self._thread.submit(self._aside, ready, src, dst, cuts, keep).result

    def _aside(self, ready: Any, *job: Any) -> tuple[Any, Any, list[Any]]:
        """`_windows` in this thread's stream, after the event `ready`."""
        device = self._device()
        with device:
            if device.id not in self._streams:
                self._streams[device.id] = engines.cupy().cuda.Stream(non_blocking=True)
            stream = self._streams[device.id]
            with stream:
                stream.wait_event(ready)
                try:
                    return self._windows(*job)
                finally:  # also after an error: nothing reads the packets any more
                    stream.synchronize()

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None
            for number, stream in self._streams.items():
                with engines.cupy().cuda.Device(number):
                    engines.cupy().get_default_memory_pool().free_all_blocks(stream=stream)
            self._streams = {}

    ahead = True

    def _device(self) -> Any:
        return engines.cupy().cuda.Device(next(self._next))

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
        found = []
        for part in range(parts):
            with self._device():
                pieces = [
                    Run(*(_here(array[cut[part] : cut[part + 1]]) for array in run))
                    for run, cut in zip(given, cuts, strict=True)
                ]
                found.append(_on_host(links.sum_runs(pieces)))
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
            arrays = (matrix.sources, matrix.indptr, matrix.destinations, matrix.counts)
            return statistics.matrix_statistics(trusted(*(_here(array) for array in arrays)))


def _here(array: Any) -> Any:
    """The array on the current device, contiguous."""
    cupy = engines.cupy()
    return cupy.ascontiguousarray(cupy.asarray(array))


def _on_host(run: Any) -> Run:
    return Run(*(engines.moved(array, "cpu") for array in run))
