"""What the workers of a call have in common, and how devices exchange words.

A transport's `share` sends words of one device to all others: by NCCL, by copies between devices,
or through the host.  All of it is queued on the streams of the devices, and nothing waits on the
host, except for the transport "host".

How many words: after a round each device knows the new pointers of its own vertices, and the others
need them.  The pointers of a partition are one piece of the array, so in the first round they
travel as they are, a word a vertex.  Later few of them change, and pairs of (vertex, pointer)
travel instead, where that is less.  Mates follow from pointers on every device, so they never
travel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matchwood import engines
from matchwood.engines.devices.machine import Devices
from matchwood.engines.devices.pinned import registered, wait_for
from matchwood.engines.devices.sending import Lane, RoundClock
from matchwood.engines.devices.stats import RoundStats, Stats, new_round
from matchwood.errors import EngineUnavailable


class DeviceWorkers:
    """The partitions of a call, one worker each: an object with a lane, a ledger and a sender.

    `make` makes the worker of a partition from its number, ledger, lane and the pinned arrays.
    `arrays` of the host travel; with the `keep` of a prepared graph they stay pinned under `name`.
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
        stats.transport = choose(devices, caller)
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
                self._transport = open_transport(stats.transport, devices.devices, streams)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for worker in self.workers:
            worker.sender.close()
        if self._transport is not None:
            self._transport.close()

    def memory(self) -> list[int]:
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


# Words from one device to the others


def choose(devices: Devices, caller: str) -> str:
    """The transport of a call: what was asked for, or the fastest that these devices have."""
    numbers = devices.devices
    if len(numbers) == 1 and devices.transport != "nccl":
        return "none"
    different = len(set(numbers))
    asked = devices.transport
    if asked == "nccl" or (asked == "auto" and different == len(numbers)):
        if library() is not None:
            return "nccl"
        if asked == "nccl":
            raise EngineUnavailable(f"{caller}: transport 'nccl' needs NCCL, CuPy does not find it")
    if asked == "auto":
        if different == 1:
            return "device"
        return "peer" if _all_reach_each_other(numbers) else "host"
    if asked == "peer" and not _all_reach_each_other(numbers):
        raise EngineUnavailable(f"{caller}: the devices {numbers} cannot read each other's memory")
    return asked


def library() -> Any:
    """NCCL, or None where CuPy does not find it."""
    try:
        from cupy.cuda import nccl
    except ImportError:
        return None
    return nccl if nccl.available else None


def _all_reach_each_other(numbers: Sequence[int]) -> bool:
    runtime = engines.cupy().cuda.runtime
    pairs = {(a, b) for a in numbers for b in numbers if a != b}
    return all(runtime.deviceCanAccessPeer(a, b) for a, b in pairs)


def open_transport(name: str, numbers: Sequence[int], streams: Sequence[Any]) -> Any:
    """The object whose `share` moves the words."""
    if name == "nccl":
        return Nccl(numbers, streams)
    return Through(numbers, streams) if name == "host" else Copies(numbers, streams)


class Copies:
    """Copies from one device to another, or within one."""

    def __init__(self, numbers: Sequence[int], streams: Sequence[Any]) -> None:
        self._cupy = engines.cupy()
        self._numbers, self._streams = numbers, streams

    def _recorded(self, worker: int) -> Any:
        with self._cupy.cuda.Device(self._numbers[worker]):
            event = self._cupy.cuda.Event(disable_timing=True)
            event.record(self._streams[worker])
        return event

    def share(self, sender: int, arrays: Sequence[Any]) -> None:
        """Copy the sender's array to those of all other workers, which have the same size."""
        if arrays[sender].nbytes == 0:
            return
        ready = self._recorded(sender)
        for worker, target in enumerate(arrays):
            if worker == sender:
                continue
            stream = self._streams[worker]
            with self._cupy.cuda.Device(self._numbers[worker]):
                stream.wait_event(ready)
                target.data.copy_from_device_async(arrays[sender].data, target.nbytes, stream)
            # the sender's words may change only when they have been read
            self._streams[sender].wait_event(self._recorded(worker))

    def close(self) -> None:
        """Nothing is held."""


class Through(Copies):
    """Through the memory of the host."""

    def share(self, sender: int, arrays: Sequence[Any]) -> None:
        if arrays[sender].nbytes == 0:
            return
        with self._cupy.cuda.Device(self._numbers[sender]):
            words = self._cupy.asnumpy(arrays[sender], stream=self._streams[sender], blocking=False)
        wait_for(self._recorded(sender))
        for worker, target in enumerate(arrays):
            if worker != sender:
                with self._cupy.cuda.Device(self._numbers[worker]):
                    target.set(words, stream=self._streams[worker])


class Nccl(Copies):
    """NCCL's broadcasts, grouped."""

    def __init__(self, numbers: Sequence[int], streams: Sequence[Any]) -> None:
        super().__init__(numbers, streams)
        self._nccl = library()
        self._comms = self._nccl.NcclCommunicator.initAll(list(numbers))

    def share(self, sender: int, arrays: Sequence[Any]) -> None:
        if arrays[sender].nbytes == 0:
            return
        self._nccl.groupStart()
        try:
            for worker, target in enumerate(arrays):
                place = target.data.ptr
                self._comms[worker].broadcast(
                    place, place, target.nbytes, self._nccl.NCCL_UINT8, sender,
                    self._streams[worker].ptr,
                )  # fmt: skip
        finally:
            self._nccl.groupEnd()

    def close(self) -> None:
        for comm in self._comms:
            comm.destroy()
        self._comms = []


# How many words


def as_pairs(changed: int, vertices: int) -> bool:
    """Whether the changed pointers of a partition travel as pairs and not as a whole."""
    return 2 * changed < vertices


def words_sent(changed: int, vertices: int) -> int:
    """Words that a partition sends to another one: what has changed."""
    return 2 * changed if as_pairs(changed, vertices) else vertices


def words_received(changed: Sequence[int], vertices: Sequence[int]) -> list[int]:
    """Words that each device receives from the others together."""
    sent = [words_sent(*one) for one in zip(changed, vertices, strict=True)]
    return [sum(sent) - own for own in sent]
