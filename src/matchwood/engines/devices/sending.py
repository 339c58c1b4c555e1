"""A device at work for a partition: its streams, and what the host sends to it.

A partition has a stream for copies and one for kernels.  Batch b passes through buffer b mod 2.
The copy waits, on the device, for the kernel that read the buffer before, and the kernel for the
copy.  The host only queues.  Copies are from pinned memory, or through a ring of it (pinned.py).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines.devices import cpu
from matchwood.engines.devices.pinned import Job, Registration, Ring, Rings, gathering, wait_for
from matchwood.engines.devices.stats import RoundStats

SMALL_ANSWER_BYTES = 1 << 20  # a larger answer is copied through pinned memory


class Lane:
    """The streams of a partition.  Everything of it runs inside ``with lane.here():``.

    Phases are timed by events on the stream that they run on, and only where `timed`.
    """

    def __init__(self, number: int, timed: bool) -> None:
        self._cupy = engines.cupy()
        self.number, self.timed = number, timed
        with self._cupy.cuda.Device(number):
            self.kernels = self._cupy.cuda.Stream(non_blocking=True)
            self.copies = self._cupy.cuda.Stream(non_blocking=True)
            # arrays of this call may be memory that the default stream still reads
            before = self.event(self._cupy.cuda.Stream.null)
            self.kernels.wait_event(before)
            self.copies.wait_event(before)
        self._marks: list[tuple[str, Any, Any]] = []

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """The device and its stream of kernels are the current ones."""
        with self._cupy.cuda.Device(self.number), self.kernels:
            yield

    def event(self, stream: Any, timing: bool = False) -> Any:
        """An event that occurs when all that is queued on the stream by now is done."""
        with self._cupy.cuda.Device(self.number):
            made = self._cupy.cuda.Event(disable_timing=not timing)
            made.record(stream)
        return made

    @contextlib.contextmanager
    def phase(self, name: str, stream: Any = None) -> Iterator[None]:
        """Measure what is queued within as that phase."""
        if not self.timed:
            yield
            return
        stream = self.kernels if stream is None else stream
        begin = self.event(stream, timing=True)
        yield
        self._marks.append((name, begin, self.event(stream, timing=True)))

    def seconds(self) -> dict[str, float]:
        """Seconds by phase since the last call; the streams must have ended."""
        found: dict[str, float] = {}
        for name, begin, end in self._marks:
            passed = self._cupy.cuda.get_elapsed_time(begin, end) / 1000
            found[name] = found.get(name, 0.0) + passed
        self._marks = []
        return found

    def wait(self) -> None:
        """Wait until all that was queued is done.  Ctrl-C takes effect meanwhile."""
        wait_for(self.event(self.copies))
        wait_for(self.event(self.kernels))

    def close(self) -> None:
        """Wait for the device, whatever happened: its arrays are given back after this."""
        with contextlib.suppress(Exception), self._cupy.cuda.Device(self.number):
            self.copies.synchronize()
            self.kernels.synchronize()


class Counters:
    """Words that kernels of a partition count in, and their copy on the host.

    `ask` queues the copy to pinned memory, and `told` waits for it: the host asks all partitions
    before it waits for the first one.
    """

    def __init__(self, lane: Lane, there: Any) -> None:
        self._lane, self.there = lane, there
        memory = engines.cupy().cuda.alloc_pinned_memory(there.nbytes)
        self._told = np.frombuffer(memory, there.dtype, there.size)
        self._asked: Any = None

    def clear(self, word: int | None = None) -> None:
        """Set all words to zero, or one."""
        words = self.there if word is None else self.there[word : word + 1]
        words.data.memset_async(0, words.nbytes)

    def ask(self) -> None:
        """Ask for the words as the kernels so far leave them."""
        stream = self._lane.kernels
        self.there.data.copy_to_host_async(self._told.ctypes.data, self.there.nbytes, stream)
        self._asked = self._lane.event(stream)

    def told(self) -> Any:
        """The words that were asked for last.  Ctrl-C takes effect meanwhile."""
        wait_for(self._asked)
        return self._told.copy()


class RoundClock:
    """The wall time of a round, and what the devices did in it."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()

    def passed(self, lanes: list[Lane]) -> float:
        """Seconds until the devices have done all that was queued."""
        for lane in lanes:
            lane.wait()
        return time.perf_counter() - self._begin

    def seconds(self, lanes: list[Lane]) -> dict[str, float]:
        """By phase, of the device that worked longest; "waiting" is the rest of the round."""
        passed = self.passed(lanes)
        each = [lane.seconds() for lane in lanes]
        found = max(each, key=lambda one: sum(one.values()))
        busy = sum(value for name, value in found.items() if name != "transfer")
        return {**found, "waiting": max(0.0, passed - busy)}


# From the host, and back


class Room(NamedTuple):
    """Memory of the host for an answer, pinned until the answer has been received."""

    memory: Any
    pinned: Registration

    def filled(self, source: Any, stream: Any, ring: Callable[[], Ring]) -> Any:
        """The memory with the array that `stream` has written on the current device.

        It passes through the ring where the memory could not be pinned.
        """
        if not self.pinned.holds(self.memory):
            ring().receive(self.memory, source, stream)
            return self.memory
        source.data.copy_to_host_async(self.memory.ctypes.data, self.memory.nbytes, stream)
        event = engines.cupy().cuda.Event(disable_timing=True)
        event.record(stream)
        wait_for(event)
        return self.memory


def room_for(source: Any, threads: int | None) -> Room:
    memory = cpu.touched(source.size, source.dtype, threads)
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
        """The buffers in turn; the stream of copies waits until the buffer has been read."""
        self._turn += 1
        buffer = self._buffers[self._turn % len(self._buffers)]
        if buffer.free is not None:
            self._lane.copies.wait_event(buffer.free)
        return buffer

    def send(self, *pairs: tuple[Any, Any]) -> None:
        """Copy pairs (array of the device, slice of an array of the host) on the copy stream."""
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

        They have the types of their targets.  Those that are not pinned are copied to pinned memory
        by `threads` threads, ahead of the copies to the device.
        """
        staged = [[one for one in arrays if not self.pinned.holds(one)] for arrays in sends]
        staged = [arrays for arrays in staged if arrays]
        if staged and all(one.flags.c_contiguous for arrays in staged for one in arrays):
            self._through_ring().foresee(staged, threads)

    def produce(self, *jobs: Job) -> None:
        """Send what the jobs write into pinned memory, see `Ring`."""
        self.round.bytes_up += sum(target.nbytes for target, _ in jobs)
        if jobs:
            self._through_ring().produce(jobs, self._lane.copies)

    def gather(self, begin: Any, offsets: Any, first: int, *pairs: tuple[Any, Any]) -> None:
        """Send rows of arrays of the host, one after the other; the first entry is `first`.

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
        if source.nbytes > SMALL_ANSWER_BYTES:
            self._answer = room_for(source, self._threads)

    def receive(self, source: Any) -> Any:
        """An array that kernels of this partition have written, on the host."""
        self.round.bytes_down += source.nbytes
        if source.nbytes <= SMALL_ANSWER_BYTES:
            return source.get(stream=self._lane.kernels)
        room, self._answer = self._answer or room_for(source, self._threads), None
        return room.filled(source, self._lane.kernels, self._through_ring)

    @contextlib.contextmanager
    def reading(self, buffer: Any) -> Iterator[None]:
        """Within, kernels read the buffer: they wait for its copies, and later copies for them."""
        self._lane.kernels.wait_event(self._lane.event(self._lane.copies))
        try:
            yield
        finally:
            buffer.free = self._lane.event(self._lane.kernels)

    def close(self) -> None:
        self._lane.close()
        if self._ring is not None:
            self._rings.give_back(self._ring)
            self._ring = None


def received(source: Any, rings: Rings, threads: int | None) -> Any:
    """An array of the current device, which its current stream has written, on the host."""
    if source.nbytes <= SMALL_ANSWER_BYTES:
        return source.get()
    ring, stream = rings.borrow(threads), engines.cupy().cuda.get_current_stream()
    try:
        return room_for(source, threads).filled(source, stream, lambda: ring)
    finally:
        rings.give_back(ring)
