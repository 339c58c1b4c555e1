"""Host memory that a device reads by itself: registered arrays, and a ring of pinned buffers.

A copy from pinned memory runs at the full speed of the bus beside the kernels.  To register an
array takes as long as one copy of it, so it pays from the second use on: the arrays of a prepared
Graph are registered once and stay so as long as the Graph.  All other rows pass through a ring of
small pinned buffers, which threads fill; there columns become int32 on the way, where vertices can
be counted so.  A prepared Graph keeps the rings of its calls.

Pinned memory is allocated at 1.9 GB/s (H200, PCIe 5).  Memory whose pages are there already is
registered at 39 GB/s, so the rings are such memory.
"""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.beyond import cpu_copies
from matchwood.teams import crew, default_threads

Array = np.ndarray[Any, Any]

PORTABLE, MAPPED = 1, 2  # cudaHostRegister: for all devices, and kernels may read it
COPY_THREADS = 12  # at most: they fill most of a host's bandwidth, and to call one takes time
RING_SLOTS = 2 * COPY_THREADS  # a thread fills one while the device reads another
SLOT_BYTES = 4 << 20  # of pinned memory: 0.08 ms of the bus, 0.5 ms of a thread
LEAST_PIECE = 1 << 18  # bytes that a thread is called for
POLL_SECONDS = 0.0002  # between two looks at an event: Ctrl-C is heard in between
SPINS = 4000  # looks without a pause before that: some milliseconds, longer than most steps


class Registration:
    """Arrays that are pinned while this object lives.  `reason`: why they are not; empty if so.

    `others` have pinned memory already, and live as long: no memory can be registered twice.
    """

    def __init__(self, arrays: Sequence[Array], others: Sequence[Registration] = ()) -> None:
        self._others = tuple(others)
        self._arrays = arrays  # memory must not be given back while it is pinned
        self._ranges: list[tuple[int, int]] = []
        self.reason = ""
        runtime = engines.cupy().cuda.runtime
        done: list[int] = []
        weakref.finalize(self, _unregister, runtime, done)
        for array in arrays:
            if array.nbytes == 0:
                continue
            if isinstance(array, np.memmap) or isinstance(array.base, np.memmap):
                self.reason = "the array is a file"
            elif not array.flags.c_contiguous:
                self.reason = "the array is not contiguous"
            else:
                self._register(runtime, array, done)
            if self.reason:
                _unregister(runtime, done)
                self._ranges = []
                return

    def _register(self, runtime: Any, array: Array, done: list[int]) -> None:
        place = array.ctypes.data
        if self.holds(array):
            return
        try:
            runtime.hostRegister(place, array.nbytes, PORTABLE | MAPPED)
        except runtime.CUDARuntimeError as error:  # a limit of the container, or memory of others
            self.reason = f"pinning was refused: {error}"
            return
        done.append(place)
        self._ranges.append((place, place + array.nbytes))

    def holds(self, array: Array) -> bool:
        """Whether all of the array is pinned."""
        first = array.ctypes.data
        own = any(low <= first and first + array.nbytes <= high for low, high in self._ranges)
        return own or any(other.holds(array) for other in self._others)


def registered(arrays: Sequence[Array], keep: Any, key: str) -> Registration:
    """The arrays of a prepared Graph, whose `keep` this is, pinned once; else none, and why."""
    if keep is None:
        none = Registration(())
        none.reason = "the graph is used once"
        return none

    def make() -> Registration:
        before = keep("pinned before", list)
        before.append(Registration(arrays, before))
        made: Registration = before[-1]
        return made

    found: Registration = keep(key, make)
    return found


def _unregister(runtime: Any, places: list[int]) -> None:
    while places:
        try:
            runtime.hostUnregister(places.pop())
        except runtime.CUDARuntimeError:  # at the end of the process CUDA may be gone
            return


Job = tuple[Any, Callable[[Array, int], None]]


class Ring:
    """Pinned buffers in turn: while the device reads some, threads fill others.

    A job is an array of the device and a function: ``fill(staged, begin)`` writes the words of the
    array from `begin` on, as many as `staged` has.  Several threads call it at once.
    """

    def __init__(self, threads: int | None) -> None:
        self._cupy = engines.cupy()
        self.threads = threads
        self._memory: Any = None
        self._pinned: Any = None
        self._free: deque[tuple[int, Any]] = deque()

    def produce(self, jobs: Sequence[Job], stream: Any) -> None:
        """Send what the jobs write; asynchronous for the device."""
        pieces, here = self._cut([target for target, _ in jobs]), self._cupy.cuda.Device().id

        def send(i: int) -> None:
            job, begin, size = pieces[i]
            target, fill = jobs[job]
            there = target[begin : begin + size]
            slot, staged = self._next(there.dtype, there.size)
            fill(staged, begin)
            with self._cupy.cuda.Device(here):
                there.data.copy_from_host_async(staged.ctypes.data, staged.nbytes, stream)
                self._free.append((slot, self._event(stream)))

        self._spread(send, len(pieces))

    def receive(self, target: Array, source: Any, stream: Any) -> None:
        """Copy the device array `source`, which `stream` has written, to `target`."""
        pieces, here = self._cut([source]), self._cupy.cuda.Device().id

        def receive(i: int) -> None:
            _, begin, size = pieces[i]
            part = source[begin : begin + size]
            slot, staged = self._next(target.dtype, part.size)
            with self._cupy.cuda.Device(here):
                part.data.copy_to_host_async(staged.ctypes.data, part.nbytes, stream)
                self._event(stream).synchronize()
            cpu_copies.copy(target[begin : begin + size], staged)
            self._free.append((slot, None))

        self._spread(receive, len(pieces))

    def _cut(self, targets: Sequence[Any]) -> list[tuple[int, int, int]]:
        """(number of the array, first word, words) of pieces that fit into a slot."""
        share = sum(target.nbytes for target in targets) // COPY_THREADS
        nbytes = min(SLOT_BYTES, max(LEAST_PIECE, share))
        found = []
        for number, target in enumerate(targets):
            size = max(1, nbytes // target.dtype.itemsize)
            found += [
                (number, begin, min(size, target.size - begin))
                for begin in range(0, target.size, size)
            ]
        return found

    def _spread(self, task: Callable[[int], None], pieces: int) -> None:
        """Each thread takes the next piece that nobody has taken."""
        self._allocate()
        size = min(pieces, COPY_THREADS, self.threads or default_threads())
        crew(max(1, size), work=0).spread(task, pieces)

    def _allocate(self) -> None:
        if self._memory is None:
            self._memory = cpu_copies.touched(RING_SLOTS * SLOT_BYTES, np.uint8, self.threads)
            self._pinned = Registration((self._memory,))
            self.wait()

    def _next(self, dtype: Any, size: int) -> tuple[int, Array]:
        """The slot that was left first, when the device has left it, as an array.

        The thread sleeps until then: many that look at their events hold up each other.
        """
        slot, event = self._free.popleft()
        if event is not None:
            event.synchronize()
        place = slot * SLOT_BYTES
        return slot, self._memory[place : place + size * dtype.itemsize].view(dtype)

    def _event(self, stream: Any) -> Any:
        made = self._cupy.cuda.Event(disable_timing=True)
        made.record(stream)
        return made

    def wait(self) -> None:
        """Until no device reads or writes the pinned memory; then all slots are free."""
        for _, event in self._free:
            if event is not None:
                event.synchronize()
        self._free = deque((slot, None) for slot in range(RING_SLOTS))


def copying(source: Array) -> Callable[[Array, int], None]:
    """Fills with the numbers of `source`."""

    def fill(staged: Array, begin: int) -> None:
        cpu_copies.copy(staged, source[begin : begin + staged.size])

    return fill


def gathering(source: Array, begin: Array, done: Array) -> Callable[[Array, int], None]:
    """Fills with ranges of `source` that lie one after the other; see cpu_copies.gather."""

    def fill(staged: Array, at: int) -> None:
        cpu_copies.gather(staged, at, source, begin, done)

    return fill


class Rings:
    """Rings of a call, or of a prepared Graph, whose calls may run side by side."""

    def __init__(self) -> None:
        self._idle: list[Ring] = []

    def borrow(self, threads: int | None) -> Ring:
        """A ring that nobody else uses until it is given back."""
        try:
            ring = self._idle.pop()
        except IndexError:
            return Ring(threads)
        ring.threads = threads
        return ring

    def give_back(self, ring: Ring) -> None:
        ring.wait()
        self._idle.append(ring)


def rings_of(keep: Any) -> Rings:
    """Those of the prepared Graph whose `keep` this is; else new ones, freed after the call."""
    found: Rings = Rings() if keep is None else keep("pinned rings", Rings)
    return found


def wait_for(event: Any) -> None:
    """Wait until the device has come to the event.  Ctrl-C is heard meanwhile."""
    looks = 0
    while not event.done:
        looks += 1
        if looks > SPINS:
            time.sleep(POLL_SECONDS)


def mapped(array: Array) -> Any:
    """A registered array of the host as a device sees it, without a copy."""
    cupy = engines.cupy()
    here = cupy.cuda.Device().id
    memory = cupy.cuda.UnownedMemory(array.ctypes.data, array.nbytes, array, here)
    return cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0))
