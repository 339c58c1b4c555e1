"""From the host to one device: buffers in turn, copies from pinned memory, or through the ring.

Batch b passes through buffer b mod 2.  The copy waits, on the device, for the kernel that read the
buffer before, and the kernel for the copy.  The host only queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.beyond import cpu_copies
from matchwood.beyond.pinned import Job, Registration, Ring, Rings, copying, gathering, wait_for
from matchwood.beyond.stats import RoundStats
from matchwood.beyond.streams import Lane, Reading

SMALL_ANSWER = 1 << 20  # bytes; a larger one comes through pinned memory


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
        self._answer: Any = None  # where one will be written
        self._pinned_answer: Any = None
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
                staged.append((target, copying(source)))
        self.produce(*staged)

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
        self.produce(*((target, gathering(source, starts, done)) for target, source in pairs))

    def _through_ring(self) -> Ring:
        if self._ring is None:
            self._ring = self._rings.borrow(self._threads)
        return self._ring

    def expect(self, source: Any) -> None:
        """Make room on the host for what `receive` will be asked for."""
        if source.nbytes > SMALL_ANSWER:
            self._answer = cpu_copies.touched(source.size, source.dtype, self._threads)
            self._pinned_answer = Registration((self._answer,))

    def receive(self, source: Any) -> Any:
        """An array that kernels of this partition have written, on the host."""
        self.round.bytes_down += source.nbytes
        if source.nbytes <= SMALL_ANSWER:
            return source.get(stream=self._lane.kernels)
        if self._answer is None:
            self.expect(source)
        found, pinned = self._answer, self._pinned_answer
        self._answer = self._pinned_answer = None
        if pinned.holds(found):
            source.data.copy_to_host_async(found.ctypes.data, found.nbytes, self._lane.kernels)
            wait_for(self._lane.event(self._lane.kernels))
        else:
            self._through_ring().receive(found, source, self._lane.kernels)
        return found

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
    found, ring = cpu_copies.touched(source.size, source.dtype, threads), rings.borrow(threads)
    try:
        ring.receive(found, source, engines.cupy().cuda.get_current_stream())
    finally:
        rings.give_back(ring)
    return found
