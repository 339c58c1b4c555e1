"""From the host to one device: buffers in turn, copies from pinned memory, or through the ring.

Batch b passes through buffer b mod 2.  The copy waits, on the device, for the kernel that read the
buffer before, and the kernel for the copy.  The host only queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines.devices import cpu_copies
from matchwood.engines.devices.pinned import Job, Registration, Ring, Rings, gathering, wait_for
from matchwood.engines.devices.stats import RoundStats
from matchwood.engines.devices.streams import Lane, Reading

SMALL_ANSWER = 1 << 20  # bytes; a larger one comes through pinned memory


class Room(NamedTuple):
    """Memory of the host for an answer.  It is pinned until the answer is there."""

    memory: Any
    pinned: Registration

    def filled(self, source: Any, stream: Any) -> Any:
        """The memory with the array that `stream` has written on the current device."""
        source.data.copy_to_host_async(self.memory.ctypes.data, self.memory.nbytes, stream)
        event = engines.cupy().cuda.Event(disable_timing=True)
        event.record(stream)
        wait_for(event)
        return self.memory


def room_for(source: Any, threads: int | None) -> Room:
    """Room for an array of a device."""
    memory = cpu_copies.touched(source.size, source.dtype, threads)
    return Room(memory, Registration((memory,)))


class Sender:
    """What a partition receives from the host.  A buffer has an attribute `free`, None at first."""

    def __init__(
        self,
        lane: Lane,
        pinned: Registration,
        rings: Rings,
        threads: int | None,
        buffers: Sequence[Any],
    ) -> None:
        self._lane, self.pinned, self._threads, self._rings = lane, pinned, threads, rings
        self._buffers = buffers
        self._turn = 0
        self._ring: Ring | None = None
        self._answer: Room | None = None  # where one will be written
        self.round = RoundStats()

    def next_buffer(self) -> Any:
        """The buffers in turn; the stream of copies waits until it has been read."""
        self._turn += 1
        buffer = self._buffers[self._turn % len(self._buffers)]
        if buffer.free is not None:
            self._lane.copies.wait_event(buffer.free)
        return buffer

    def send(self, *pairs: tuple[Any, Any]) -> None:
        """(array of the device, slice of an array of the host), on the stream of copies."""
        staged: list[Job] = []
        for target, source in pairs:
            if source.dtype == target.dtype and self.pinned.holds(source):
                self.round.bytes_up += target.nbytes
                place, stream = source.ctypes.data, self._lane.copies
                target.data.copy_from_host_async(place, source.nbytes, stream)
            else:
                staged.append((target, source))
        self.produce(*staged)

    def foresee(self, sends: Sequence[Sequence[Any]], threads: int) -> None:
        """The next calls of `send` will be for these arrays of the host, in this order.

        They have the types of their targets.  Where they are not pinned, so many threads are ahead
        of the copies.
        """
        staged = [[one for one in arrays if not self.pinned.holds(one)] for arrays in sends]
        staged = [arrays for arrays in staged if arrays]
        if staged and all(one.flags.c_contiguous for arrays in staged for one in arrays):
            self._through_ring().foresee(staged, threads)

    def produce(self, *jobs: Job) -> None:
        """What the jobs write into pinned memory, see `Ring`."""
        self.round.bytes_up += sum(target.nbytes for target, _ in jobs)
        if jobs:
            self._through_ring().produce(jobs, self._lane.copies)

    def gather(self, begin: Any, offsets: Any, first: int, *pairs: tuple[Any, Any]) -> None:
        """Rows of arrays of the host, one after the other; the first entry of all is `first`.

        Row i has the entries offsets[i] to offsets[i + 1] - 1, and lies at begin[i].  The first
        and the last row may be cut.
        """
        starts = begin + np.maximum(first - offsets[:-1], 0)
        done = np.maximum(offsets - first, 0)
        self.produce(
            *((target, gathering(source, starts, done, self._threads)) for target, source in pairs)
        )

    def _through_ring(self) -> Ring:
        if self._ring is None:
            self._ring = self._rings.borrow(self._threads)
        return self._ring

    def expect(self, source: Any) -> None:
        """Make room on the host for what `receive` will be asked for."""
        if source.nbytes > SMALL_ANSWER:
            self._answer = room_for(source, self._threads)

    def receive(self, source: Any) -> Any:
        """An array that kernels of this partition have written, on the host."""
        self.round.bytes_down += source.nbytes
        if source.nbytes <= SMALL_ANSWER:
            return source.get(stream=self._lane.kernels)
        found, self._answer = self._answer or room_for(source, self._threads), None
        if found.pinned.holds(found.memory):
            return found.filled(source, self._lane.kernels)
        self._through_ring().receive(found.memory, source, self._lane.kernels)
        return found.memory

    def reading(self, buffer: Any) -> Reading:
        """Within, kernels read the buffer: they wait for its copies, and later copies for them."""
        return Reading(self._lane, buffer)

    def close(self) -> None:
        """Wait for the device, and give the pinned memory back."""
        self._lane.close()
        if self._ring is not None:
            self._rings.give_back(self._ring)
            self._ring = None


def received(source: Any, rings: Rings, threads: int | None) -> Any:
    """An array of the current device, which its current stream has written, on the host."""
    if source.nbytes <= SMALL_ANSWER:
        return source.get()
    found, stream = room_for(source, threads), engines.cupy().cuda.get_current_stream()
    if found.pinned.holds(found.memory):
        return found.filled(source, stream)
    ring = rings.borrow(threads)
    try:
        ring.receive(found.memory, source, stream)
    finally:
        rings.give_back(ring)
    return found.memory
