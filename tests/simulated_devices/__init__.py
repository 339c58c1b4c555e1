"""Devices simulated on the host, for tests of partitions, batches and lists without a GPU.

A simulated device takes the same steps as a GPU, with the same plan, batches, buffers and limit on
its memory; what travels is counted.  The steps of a problem are in the file of its family.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.devices.machine import Devices, Machine, machine_of
from matchwood.engines.devices.plan import Batch, cut_rows
from matchwood.engines.devices.stats import RoundStats, Stats, new_round


class SimulatedMachine(Machine):
    """`count` devices of `memory` bytes each."""

    usual_engines = False

    def __init__(self, memory: int, count: int, devices: Devices, caller: str) -> None:
        self._memory, self._count = memory, count
        super().__init__(devices, caller)

    def steps(self, package: str) -> Any:
        return importlib.import_module(f"{__name__}.{package.split('.')[1]}")

    def _present(self) -> int:
        return self._count

    def _free(self, number: int) -> int:
        return self._memory

    def _empty(self, size: int, dtype: Any) -> Any:
        return np.empty(size, dtype)


@contextlib.contextmanager
def simulated(memory: int, *, count: int = 8) -> Iterator[None]:
    """Within, `Devices` are simulated; in this thread or task only."""
    token = machine_of.set(functools.partial(SimulatedMachine, memory, count))
    try:
        yield
    finally:
        machine_of.reset(token)


class SimulatedWorkers:
    """The partitions of a call, one object each, with a ledger and counts."""

    alone = False  # each round is counted

    def __init__(self, workers: list[Any], stats: Stats) -> None:
        self.workers = workers
        self._round = RoundStats()
        stats.pinned = "simulated"
        stats.transport = "simulated" if len(workers) > 1 else "none"

    def close(self) -> None:
        """Nothing outlives the arrays."""

    def memory(self) -> list[int]:
        return [worker.ledger.taken for worker in self.workers]

    def begin_round(self, stats: Stats) -> None:
        self._round = new_round(stats)
        for worker in self.workers:
            worker.round = self._round

    def passed(self) -> float:
        return 0.0

    def end_round(self) -> None:
        """All is counted already."""


class Group(NamedTuple):
    """Rows that fit into a buffer together, of those that travel again."""

    ids: Any
    offsets: Any
    first: int  # entries first to last - 1, counted as `offsets` does
    last: int
    at: Any  # where these entries lie in the graph


def groups(view: Any, ids: Any, buffer: Any) -> Iterator[Group]:
    """The rows of `ids`, put together and cut to the size of a buffer."""
    begin = view.indptr[ids].astype(np.int64)
    length = view.indptr[ids.astype(np.int64) + 1] - begin
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
    for row, stop, first, last in cut_rows(offsets, buffer):
        cut = np.clip(offsets[row : stop + 1], first, last)
        starts = begin[row:stop] + np.maximum(first - offsets[row:stop], 0)
        at = np.arange(first, last) + np.repeat(starts - cut[:-1], np.diff(cut))
        yield Group(ids[row:stop], offsets[row : stop + 1], first, last, at)


def filled(buffer: Any, view: Any, batch: Batch) -> Any:
    """The rows of a batch, which travel: they are copied into `buffer`."""
    entries, rows = batch.last - batch.first, batch.hi - batch.lo
    buffer.columns[:entries] = view.indices[batch.first : batch.last]
    buffer.weights[:entries] = view.data[batch.first : batch.last]
    buffer.offsets[: rows + 1] = view.indptr[batch.lo : batch.hi + 1]
    return buffer._replace(
        ids=buffer.ids[:0], base=batch.lo, offsets=buffer.offsets[: rows + 1],
        first=batch.first, last=batch.last,
    )  # fmt: skip
