"""From the host to one device: buffers in turn, copies from pinned memory, or through the ring.

Batch b passes through buffer b mod 2.  The copy waits, on the device, for the kernel that read the
buffer before, and the kernel for the copy.  The host only queues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matchwood import engines
from matchwood.beyond import cpu_copies
from matchwood.beyond.pinned import Registration, Ring, Rings
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
        self.round = RoundStats()

    def next_buffer(self) -> Any:
        """The buffers in turn; the stream of copies waits until it has been read."""
        self._turn += 1
        buffer = self._buffers[self._turn % len(self._buffers)]
        if buffer.free is not None:
            self._lane.copies.wait_event(buffer.free)
        return buffer

    def send(self, target: Any, source: Any) -> None:
        """A slice of an array of the host to the device, on the stream of copies."""
        self.round.bytes_up += target.nbytes
        if source.dtype == target.dtype and self.pinned.holds(source):
            target.data.copy_from_host_async(source.ctypes.data, source.nbytes, self._lane.copies)
        else:
            self._through_ring().send(target, source, self._lane.copies)

    def produce(self, target: Any, fill: Callable[[Any, int], None]) -> None:
        """What ``fill(staged, begin)`` writes into pinned memory, a part of `target` at a time."""
        self.round.bytes_up += target.nbytes
        self._through_ring().produce(target, fill, self._lane.copies)

    def gather(self, target: Any, source: Any, starts: Any, length: Any) -> None:
        """The ranges ``source[starts : starts + length]`` in turn, through the ring."""
        self.round.bytes_up += target.nbytes
        self._through_ring().gather(target, source, starts, length, self._lane.copies)

    def _through_ring(self) -> Ring:
        if self._ring is None:
            self._ring = self._rings.borrow(self._threads)
        return self._ring

    def expect(self, source: Any) -> None:
        """Make room on the host for what `receive` will be asked for."""
        if source.nbytes > SMALL_ANSWER:
            self._answer = cpu_copies.touched(source.size, source.dtype, self._threads)

    def receive(self, source: Any) -> Any:
        """An array that kernels of this partition have written, on the host."""
        self.round.bytes_down += source.nbytes
        if source.nbytes <= SMALL_ANSWER:
            return source.get(stream=self._lane.kernels)
        if self._answer is None:
            self.expect(source)
        found, self._answer = self._answer, None
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
