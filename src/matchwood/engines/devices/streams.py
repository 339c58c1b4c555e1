"""A device at work for a partition: a stream for copies, one for kernels, the time of both."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines.devices.pinned import wait_for


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
        """An event that comes when all that the stream has by now is done."""
        with self._cupy.cuda.Device(self.number):
            made = self._cupy.cuda.Event(disable_timing=not timing)
            made.record(stream)
        return made

    @contextlib.contextmanager
    def phase(self, name: str, stream: Any = None) -> Iterator[None]:
        """What is queued within counts as that phase."""
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
        """Until all that was queued is done.  Ctrl-C is heard meanwhile."""
        wait_for(self.event(self.copies))
        wait_for(self.event(self.kernels))

    def close(self) -> None:
        """Until the device has ended, come what may: its arrays are given back after this."""
        with contextlib.suppress(Exception), self._cupy.cuda.Device(self.number):
            self.copies.synchronize()
            self.kernels.synchronize()


class Counters:
    """Words that kernels of a partition count in, and what the host was told of them.

    The copy to pinned memory is queued at once, so that the host asks all partitions before it
    waits for the first one.
    """

    def __init__(self, lane: Lane, there: Any) -> None:
        self._lane, self.there = lane, there
        memory = engines.cupy().cuda.alloc_pinned_memory(there.nbytes)
        self._told = np.frombuffer(memory, there.dtype, there.size)
        self._asked: Any = None

    def clear(self, word: int | None = None) -> None:
        """All of them, or one."""
        words = self.there if word is None else self.there[word : word + 1]
        words.data.memset_async(0, words.nbytes)

    def ask(self) -> None:
        """For the words as the kernels so far leave them."""
        stream = self._lane.kernels
        self.there.data.copy_to_host_async(self._told.ctypes.data, self.there.nbytes, stream)
        self._asked = self._lane.event(stream)

    def told(self) -> Any:
        """What was asked for last.  Ctrl-C is heard meanwhile."""
        wait_for(self._asked)
        return self._told.copy()


class Reading:
    """Kernels queued within wait for the copies so far; later copies into the buffer for them."""

    def __init__(self, lane: Lane, buffer: Any) -> None:
        self._lane, self._buffer = lane, buffer

    def __enter__(self) -> None:
        self._lane.kernels.wait_event(self._lane.event(self._lane.copies))

    def __exit__(self, *error: object) -> None:
        self._buffer.free = self._lane.event(self._lane.kernels)


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
