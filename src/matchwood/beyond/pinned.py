"""Host memory that a device reads by itself: registered arrays, and a ring of pinned buffers.

A copy from pinned memory runs at the full speed of the bus beside the kernels.  To register an
array takes as long as one copy of it, so it pays from the second use on: the arrays of a prepared
Graph are registered once and stay so as long as the Graph.  All other rows pass through a ring of
small pinned buffers, which threads fill; there columns become int32 on the way, where vertices can
be counted so.  Answers come back through such a ring too.  Allocating one takes as long as sending
half a gigabyte, so a prepared Graph keeps those of its calls.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.beyond import cpu_copies

Array = np.ndarray[Any, Any]

PORTABLE, MAPPED = 1, 2  # cudaHostRegister: for all devices, and kernels may read it
RING_SLOTS = 2
SLOT_BYTES = 16 << 20  # of pinned memory; allocating takes 0.5 ms for each MiB
POLL_SECONDS = 0.0002  # between two looks at an event: Ctrl-C is heard in between
SPINS = 4000  # looks without a pause before that: some milliseconds, longer than most steps


class Registration:
    """Arrays that are pinned while this object lives.  `reason`: why they are not; empty if so."""

    def __init__(self, arrays: Sequence[Array]) -> None:
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
        return any(low <= first and first + array.nbytes <= high for low, high in self._ranges)


def registered(arrays: Sequence[Array], keep: Any, key: str) -> Registration:
    """The arrays of a prepared Graph, whose `keep` this is, pinned once; else none, and why."""
    if keep is None:
        none = Registration(())
        none.reason = "the graph is used once"
        return none
    found: Registration = keep(key, lambda: Registration(arrays))
    return found


def _unregister(runtime: Any, places: list[int]) -> None:
    while places:
        try:
            runtime.hostUnregister(places.pop())
        except runtime.CUDARuntimeError:  # at the end of the process CUDA may be gone
            return


class Ring:
    """Pinned buffers in turn: while the device reads one, threads fill the next."""

    def __init__(self, threads: int | None) -> None:
        self._cupy = engines.cupy()
        self.threads = threads
        self._memory: list[Any] = [None] * RING_SLOTS
        self._free: list[Any] = [None] * RING_SLOTS
        self._turn = 0

    def produce(self, target: Any, fill: Callable[[Array, int], None], stream: Any) -> None:
        """Send what ``fill(staged, begin)`` writes: the words of `target` from `begin` on."""
        size = SLOT_BYTES // target.dtype.itemsize
        for begin in range(0, target.size, size):
            there = target[begin : begin + size]
            slot, staged = self._next(target.dtype, there.size)
            fill(staged, begin)
            there.data.copy_from_host_async(staged.ctypes.data, staged.nbytes, stream)
            self._mark(slot, stream)

    def send(self, target: Any, source: Array, stream: Any) -> None:
        """Copy `source` to the device array `target`, in its type; asynchronous for the device."""

        def fill(staged: Array, begin: int) -> None:
            cpu_copies.copy(staged, source[begin : begin + staged.size], self.threads)

        self.produce(target, fill, stream)

    def gather(self, target: Any, source: Array, begin: Array, length: Array, stream: Any) -> None:
        """Copy the ranges ``source[begin : begin + length]``, one after the other."""
        done = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))

        def fill(staged: Array, at: int) -> None:
            same = source.dtype == staged.dtype
            there = staged if same else np.empty(staged.size, source.dtype)
            cpu_copies.gather(there, at, source, begin, done, self.threads)
            if not same:
                cpu_copies.copy(staged, there, self.threads)

        self.produce(target[: int(done[-1])], fill, stream)

    def receive(self, target: Array, source: Any, stream: Any) -> None:
        """Copy the device array `source`, which `stream` has written, to `target`."""
        size = SLOT_BYTES // target.itemsize
        coming: list[tuple[int, int, Array]] = []
        for begin in range(0, target.size, size):
            if len(coming) == RING_SLOTS:
                self._received(target, *coming.pop(0))
            part = source[begin : begin + size]
            slot, staged = self._next(target.dtype, part.size)
            part.data.copy_to_host_async(staged.ctypes.data, part.nbytes, stream)
            self._mark(slot, stream)
            coming.append((slot, begin, staged))
        for one in coming:
            self._received(target, *one)

    def _received(self, target: Array, slot: int, begin: int, staged: Array) -> None:
        wait_for(self._free[slot])
        cpu_copies.copy(target[begin : begin + staged.size], staged, self.threads)

    def _next(self, dtype: Any, size: int) -> tuple[int, Array]:
        """The next slot, when the device has left it, as an array."""
        slot = self._turn % RING_SLOTS
        self._turn += 1
        if self._free[slot] is not None:
            wait_for(self._free[slot])
        if self._memory[slot] is None:
            memory = self._cupy.cuda.pinned_memory
            self._memory[slot] = memory.PinnedMemoryPointer(memory.PinnedMemory(SLOT_BYTES), 0)
        return slot, np.frombuffer(self._memory[slot], dtype, size)

    def _mark(self, slot: int, stream: Any) -> None:
        """The slot is free again when the stream has come so far."""
        self._free[slot] = self._cupy.cuda.Event(disable_timing=True)
        self._free[slot].record(stream)

    def wait(self) -> None:
        """Until no device reads or writes the pinned memory."""
        for event in self._free:
            if event is not None:
                event.synchronize()
        self._free = [None] * RING_SLOTS


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
