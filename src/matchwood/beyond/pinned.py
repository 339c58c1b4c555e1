"""Host memory that a device reads by itself: registered arrays, and a ring of pinned buffers.

A copy from pinned memory runs at the full speed of the bus beside the kernels.  To register an
array takes as long as one copy of it, so it pays from the second use on: the arrays of a prepared
Graph are registered once and stay so as long as the Graph.  All other rows pass through a ring of
small pinned buffers, which threads fill; there columns become int32 on the way, where vertices can
be counted so.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.teams import crew

Array = np.ndarray[Any, Any]

PORTABLE, MAPPED = 1, 2  # cudaHostRegister: for all devices, and kernels may read it
RING_SLOTS = 4
SLOT_BYTES = 4 << 20  # of pinned memory; allocating takes 0.5 ms for each MiB
PIECE_BYTES = 1 << 20  # that a thread copies at a time
POLL_SECONDS = 0.0002  # between two looks at an event: Ctrl-C is heard in between
SPINS = 200  # looks without a pause before that


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
        self._threads = threads
        memory = self._cupy.cuda.pinned_memory
        self._memory = [
            memory.PinnedMemoryPointer(memory.PinnedMemory(SLOT_BYTES), 0)
            for _ in range(RING_SLOTS)
        ]
        self._free: list[Any] = [None] * RING_SLOTS
        self._turn = 0

    def send(self, target: Any, source: Array, stream: Any) -> None:
        """Copy `source` to the device array `target`, in its type; asynchronous for the device."""
        size = SLOT_BYTES // target.dtype.itemsize
        for begin in range(0, source.size, size):
            part = source[begin : begin + size]
            slot = self._turn % RING_SLOTS
            self._turn += 1
            if self._free[slot] is not None:
                wait_for(self._free[slot])
            staged = np.frombuffer(self._memory[slot], target.dtype, part.size)
            self._fill(staged, part)
            there = target[begin : begin + part.size]
            there.data.copy_from_host_async(staged.ctypes.data, staged.nbytes, stream)
            event = self._cupy.cuda.Event(disable_timing=True)
            event.record(stream)
            self._free[slot] = event

    def gather(self, target: Any, source: Array, begin: Array, length: Array, stream: Any) -> None:
        """Copy the ranges ``source[begin : begin + length]``, one after the other."""
        at = 0
        done = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
        size = SLOT_BYTES // target.dtype.itemsize
        while at < int(done[-1]):
            upto = min(at + size, int(done[-1]))
            first = int(np.searchsorted(done, at, side="right")) - 1
            last = int(np.searchsorted(done, upto, side="left"))
            cut = np.clip(done[first : last + 1], at, upto)
            starts = begin[first:last] + np.maximum(at - done[first:last], 0)
            places = np.arange(at, upto) + np.repeat(starts - cut[:-1], np.diff(cut))
            self.send(target[at:upto], source[places], stream)
            at = upto

    def _fill(self, staged: Array, part: Array) -> None:
        each = max(1, PIECE_BYTES // staged.itemsize)
        count = -(-part.size // each)

        def copy(i: int) -> None:
            piece = slice(i * each, (i + 1) * each)
            np.copyto(staged[piece], part[piece], casting="unsafe")

        crew(self._threads, work=part.size).spread(copy, count)

    def close(self) -> None:
        """Free the pinned memory, when the device has read it."""
        for event in self._free:
            if event is not None:
                event.synchronize()
        self._memory = []


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
