"""Devices simulated on the host, for tests of partitions, batches and lists without a GPU.

A simulated device takes the same steps as a GPU, with the same plan, batches, buffers and limit on
its memory; what travels is counted.  The steps of a problem are in the file of its family.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood.engines.devices.machine import Devices, Machine, machine_of
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
        return [worker.ledger.most for worker in self.workers]

    def begin_round(self, stats: Stats) -> None:
        self._round = new_round(stats)
        for worker in self.workers:
            worker.round = self._round

    def passed(self) -> float:
        return 0.0

    def end_round(self) -> None:
        """All is counted already."""
