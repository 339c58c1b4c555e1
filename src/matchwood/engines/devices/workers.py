"""What the workers of a call have in common, whatever the problem: on CUDA's devices or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matchwood.engines.devices import transports
from matchwood.engines.devices.pinned import registered
from matchwood.engines.devices.stats import RoundStats, Stats, new_round
from matchwood.engines.devices.streams import Lane, RoundClock


class DeviceWorkers:
    """The partitions of a call, one worker each: an object with a lane, a ledger and a sender.

    Parameters
    ----------
    make : function
        Makes the worker of a partition from its number, ledger, lane and the pinned arrays.
    machine, stats : Machine, Stats
        The devices, and where the result will tell what was done.
    caller : str
        The public function, for messages.
    arrays, keep, name
        Arrays of the host that travel; with `keep` of a prepared graph they stay pinned under
        that name.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        machine: Any,
        stats: Stats,
        caller: str,
        arrays: tuple[Any, ...],
        keep: Any,
        name: str,
    ) -> None:
        devices = machine.devices
        self.workers: list[Any] = []
        self._round, self._clock, self._timed = RoundStats(), RoundClock(), devices.stats
        self._transport: Any = None
        stats.transport = transports.choose(devices, caller)
        pinned = registered(arrays, keep, name)
        stats.pinned = "ring" if pinned.reason else "registered"
        if keep is not None and pinned.reason:
            stats.notes.append(f"rows pass through a ring of pinned buffers: {pinned.reason}")
        try:
            for p, number in enumerate(devices.devices):
                lane = Lane(number, devices.stats)
                with lane.here():
                    self.workers.append(make(p, machine.ledger(p), lane, pinned))
            if stats.transport != "none":
                streams = [worker.lane.kernels for worker in self.workers]
                self._transport = transports.open_transport(
                    stats.transport, devices.devices, streams
                )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Wait for the devices, and give everything back."""
        for worker in self.workers:
            worker.sender.close()
        if self._transport is not None:
            self._transport.close()

    def memory(self) -> list[int]:
        """Most bytes that each partition held."""
        return [worker.ledger.most for worker in self.workers]

    def begin_round(self, stats: Stats) -> None:
        self._round, self._clock = new_round(stats), RoundClock()
        for worker in self.workers:
            worker.sender.round = self._round

    def passed(self) -> float:
        """Seconds of this round so far, where they are measured; else 0, and nothing waits."""
        return self._clock.passed([one.lane for one in self.workers]) if self._timed else 0.0

    def end_round(self) -> None:
        if self._timed:
            self._round.seconds = self._clock.seconds([worker.lane for worker in self.workers])


class SimulatedWorkers:
    """The same for simulated devices: objects with a ledger and the counts of a round.

    Parameters
    ----------
    workers : list
        One for each partition.
    stats : Stats
        Where the result will tell what was done.
    """

    alone = False  # each round is counted

    def __init__(self, workers: list[Any], stats: Stats) -> None:
        self.workers = workers
        self._round = RoundStats()
        stats.pinned = "simulated"
        stats.transport = "simulated" if len(workers) > 1 else "none"

    def close(self) -> None:
        """Nothing outlives the arrays."""

    def memory(self) -> list[int]:
        """Most bytes that each partition held."""
        return [worker.ledger.most for worker in self.workers]

    def begin_round(self, stats: Stats) -> None:
        self._round = new_round(stats)
        for worker in self.workers:
            worker.round = self._round

    def passed(self) -> float:
        """Seconds are not measured."""
        return 0.0

    def end_round(self) -> None:
        """All is counted already."""
