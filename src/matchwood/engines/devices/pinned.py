"""Host memory that a device reads by itself: registered arrays, and a ring of pinned buffers.

A copy from pinned memory runs at the full speed of the bus beside the kernels.  To register an
array takes as long as one copy of it, so it pays from the second use on: the arrays of a prepared
Graph are registered once and stay so as long as the Graph.  All other rows pass through a ring of
pinned buffers, which threads fill, ahead of the copies where it is known what will travel
(`Filling`); there columns become int32 on the way, where vertices can be counted so.  A prepared
Graph keeps the rings of its calls.

Pinned memory is allocated at 1.9 GB/s (H200, PCIe 5).  Memory whose pages are there already is
registered at 39 GB/s, so the rings are such memory.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines.devices import cpu

Array = np.ndarray[Any, Any]

PORTABLE, MAPPED = 1, 2  # cudaHostRegister: for all devices, and kernels may read it
RING_SLOTS = 3  # one is filled, one is read, one waits for its turn
SLOT_BYTES = 40 << 20  # at most: 0.8 ms of the bus; to call the threads takes half of that
LEAST_SLOT_BYTES = 1 << 20
LINE_BYTES = 64  # parts of a slot begin at lines of the cache
FILLED_POLL_SECONDS = 0.00002  # between two looks at the counters: a slot is filled in some 0.7 ms
POLL_SECONDS = 0.0002  # between two looks at an event: Ctrl-C takes effect in between
SPINS = 4000  # looks without a pause before that: some milliseconds, longer than most steps


class Registration:
    """Arrays that are pinned while this object lives.  `reason`: why they are not, or empty.

    `others` have pinned memory already and are kept alive: no memory can be registered twice.
    """

    def __init__(self, arrays: Sequence[Array], others: Sequence[Registration] = ()) -> None:
        self._others = tuple(others)
        self._arrays = arrays  # memory must not be given back while it is pinned
        self._ranges: list[tuple[int, int]] = []
        self.reason = ""
        runtime = engines.cupy().cuda.runtime
        done: list[int] = []
        weakref.finalize(self, unregister, runtime, done)
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
                unregister(runtime, done)
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


def unregister(runtime: Any, places: list[int]) -> None:
    """Unpin the memory at these addresses, the last one first, and empty the list."""
    while places:
        try:
            runtime.hostUnregister(places.pop())
        except runtime.CUDARuntimeError:  # at the end of the process CUDA may be gone
            return


Fill = Callable[[Array, int], None]
Job = tuple[Any, Array | Fill]


class Part(NamedTuple):
    """Words of an array of the device, `size` of them from `begin` on, and their byte in a slot."""

    array: int  # its number
    begin: int
    size: int
    place: int


class Slot:
    """A piece of pinned memory.  `event` occurs when the device is done with it; None: it is."""

    def __init__(self, memory: Array) -> None:
        self.memory = memory
        self.event: Any = None

    def words(self, part: Part, dtype: Any) -> Array:
        end = part.place + part.size * dtype.itemsize
        return self.memory[part.place : end].view(dtype)


def _turn(slot: Slot, parts: list[Part], arrays: Sequence[Array]) -> Turn:
    targets = [slot.words(part, arrays[part.array].dtype) for part in parts]
    sources = [arrays[part.array][part.begin : part.begin + part.size] for part in parts]
    return Turn(slot, parts, targets, sources)


class Turn(NamedTuple):
    """What goes into a slot: its parts, and where their words are."""

    slot: Any
    parts: Any
    targets: list[Array]  # in the slot
    sources: list[Array]

    def moves(self) -> list[tuple[int, int, int]]:
        pairs = zip(self.targets, self.sources, strict=True)
        return [(to.ctypes.data, of.ctypes.data, of.nbytes) for to, of in pairs]


class Filling:
    """The turns of several sends, in their order, filled by a team ahead of the copies.

    To call twelve threads for a slot takes 0.4 ms, a third of the time in which they fill it.  Here
    they are called once for all slots.  Turn t is in slot t mod RING_SLOTS.  The team waits until
    the device is done with it, and the caller, which alone calls CUDA, until it is filled.  Two
    counters say how far each of them is.  All slots are free at the beginning; `sends` are the
    turns that the caller will ask for by `next_send`.
    """

    def __init__(self, sends: Sequence[list[Turn]], slots: int, threads: int) -> None:
        self._sends = deque(sends)
        self._turn = 0  # that is sent next
        self._sent: deque[Any] = deque()  # events of turns that the device has not left
        self._words = np.zeros(cpu.FILLING_WORDS, np.int64)
        self._error: BaseException | None = None
        self._turns = [turn for send in sends for turn in send]  # memory that the team reads
        moves = [move for turn in self._turns for move in turn.moves()]
        firsts = np.cumsum([0, *(len(turn.parts) for turn in self._turns)], dtype=np.int64)
        table = np.array(moves, np.int64).reshape(-1, 3)
        arguments = (table, firsts, slots, self._words, threads)
        self._thread = threading.Thread(
            target=self._run, args=arguments, daemon=True, name="matchwood filling"
        )
        self._thread.start()

    def _run(self, *arguments: Any) -> None:
        try:
            cpu.fill(*arguments)
        except BaseException as error:
            self._error = error

    @property
    def ended(self) -> bool:
        """Whether all sends were asked for."""
        return not self._sends

    def next_send(self) -> Any:
        """The turns of the next send, each when its slot is filled; call `sent` after each."""
        for turn in self._sends.popleft():
            self._wait()
            self._turn += 1
            yield turn

    def sent(self, event: Any) -> None:
        """Note the event that occurs when the device is done with the slot of the last turn."""
        self._sent.append(event)

    def _wait(self) -> None:
        """Wait until the next turn is in its slot.  Ctrl-C takes effect meanwhile."""
        self._tell_left()
        while not self._is_filled():
            if not self._thread.is_alive() and not self._is_filled():
                raise self._error or RuntimeError("the slots of a ring are filled no more")
            time.sleep(FILLED_POLL_SECONDS)
            self._tell_left()

    def _is_filled(self) -> bool:
        return bool(self._words[cpu.FILLED] > self._turn)

    def _tell_left(self) -> None:
        """Count for the team the slots that the device is done with."""
        while self._sent and self._sent[0].done:
            self._sent.popleft()
            self._words[cpu.LEFT] += 1

    def close(self) -> None:
        """End the team: no thread writes into a slot after this."""
        self._words[cpu.ENDED] = 1
        self._thread.join()


class Ring:
    """Pinned buffers in turn: while the device reads some, threads fill another one.

    A job is an array of the device and either an array of the host, whose numbers it gets, or a
    function: ``fill(staged, begin)`` writes the words of the array from `begin` on, as many as
    `staged` has, by threads of its own.  CUDA is called by the caller alone, once for a large copy.
    Twelve threads that each call it for copies of their own wait for each other most of the time.
    """

    def __init__(self, threads: int | None) -> None:
        self._cupy = engines.cupy()
        self.threads = threads
        self._pinned: Any = None
        self._slots: list[Slot] = []
        self._turn = 0
        self._filling: Filling | None = None

    def foresee(self, sends: Sequence[Sequence[Array]], threads: int) -> None:
        """Let `threads` threads fill the slots for the next calls of `produce`.

        These will be for copies of the arrays in `sends`, in this order.
        """
        self.stop_filling()
        self._allocate(max(sum(array.nbytes + LINE_BYTES for array in one) for one in sends))
        self.wait()
        foreseen: list[list[Turn]] = []
        slots = itertools.cycle(self._slots)
        for arrays in sends:
            turns = [(next(slots), parts) for parts in self._turns(arrays)]
            foreseen.append([_turn(slot, parts, arrays) for slot, parts in turns])
        self._filling = Filling(foreseen, RING_SLOTS, threads)

    def stop_filling(self) -> None:
        """Forget what was foreseen and not asked for."""
        if self._filling is not None:
            self._filling.close()
            self._filling = None

    def produce(self, jobs: Sequence[Job], stream: Any) -> None:
        """Send what the jobs write; asynchronous for the device."""
        filling = self._filling
        for slot, parts in self._filled(jobs):
            for part in parts:
                target = jobs[part.array][0][part.begin : part.begin + part.size]
                place = slot.words(part, target.dtype).ctypes.data
                target.data.copy_from_host_async(place, target.nbytes, stream)
            slot.event = self._event(stream)
            if filling is not None:
                filling.sent(slot.event)
        if filling is not None and filling.ended:
            self.stop_filling()

    def _filled(self, jobs: Sequence[Job]) -> Iterator[tuple[Slot, list[Part]]]:
        """Slots with all that the jobs write, one after the other."""
        if self._filling is not None:
            for turn in self._filling.next_send():
                yield turn.slot, turn.parts
            return
        for parts in self._turns([target for target, _ in jobs]):
            slot, copies = self._next(), []
            for part in parts:
                target, given = jobs[part.array]
                staged = slot.words(part, target.dtype)
                if isinstance(given, np.ndarray):
                    copies.append((staged, given[part.begin : part.begin + part.size]))
                else:
                    given(staged, part.begin)
            cpu.copy(copies, self.threads)
            yield slot, parts

    def receive(self, target: Array, source: Any, stream: Any) -> None:
        """Copy the device array `source`, which `stream` has written, to `target`."""
        turns, on_the_way = self._turns([source]), deque[tuple[Slot, list[Part]]]()
        for parts in [*turns, []]:
            if parts:
                slot = self._next()
                for part in parts:
                    there = source[part.begin : part.begin + part.size]
                    place = slot.words(part, there.dtype).ctypes.data
                    there.data.copy_to_host_async(place, there.nbytes, stream)
                slot.event = self._event(stream)
                on_the_way.append((slot, parts))
            while len(on_the_way) > bool(parts):  # the next one travels meanwhile
                self._take_out(target, *on_the_way.popleft())

    def _take_out(self, target: Array, slot: Slot, parts: list[Part]) -> None:
        self._leave(slot)
        cpu.copy(
            [
                (target[part.begin : part.begin + part.size], slot.words(part, target.dtype))
                for part in parts
            ],
            self.threads,
        )

    def _turns(self, targets: Sequence[Any]) -> list[list[Part]]:
        """The words of all arrays, cut into parts; those of a turn fit into a slot together."""
        self._allocate(sum(target.nbytes + LINE_BYTES for target in targets))
        turns: list[list[Part]] = [[]]
        total = sum(target.nbytes + LINE_BYTES for target in targets)
        slot, place = self._slots[0].memory.size, 0
        even = -(-total // -(-total // slot))  # bytes of turns of the same size
        room = min(slot, -(-even // LINE_BYTES) * LINE_BYTES)
        for number, target in enumerate(targets):
            begin, itemsize = 0, target.dtype.itemsize
            while begin < target.size:
                size = min(target.size - begin, (room - place) // itemsize)
                if size == 0:
                    turns.append([])
                    place = 0
                    continue
                turns[-1].append(Part(number, begin, size, place))
                begin += size
                place = -(-(place + size * itemsize) // LINE_BYTES) * LINE_BYTES
        return [parts for parts in turns if parts]

    def _allocate(self, nbytes: int) -> None:
        """Make slots for `nbytes` bytes, up to SLOT_BYTES, unless the present ones are as large."""
        size = min(SLOT_BYTES, max(LEAST_SLOT_BYTES, 1 << (nbytes - 1).bit_length()))
        if self._slots and self._slots[0].memory.size >= size:
            return
        self.wait()
        self._slots, self._pinned = [], None  # the smaller ones are given back first
        memory = cpu.touched(RING_SLOTS * size, np.uint8, self.threads)
        self._pinned = Registration((memory,))
        self._slots = [Slot(memory[k * size : (k + 1) * size]) for k in range(RING_SLOTS)]

    def _next(self) -> Slot:
        """The slots in turn, each when the device is done with it."""
        self._turn += 1
        slot = self._slots[self._turn % RING_SLOTS]
        self._leave(slot)
        return slot

    @staticmethod
    def _leave(slot: Slot) -> None:
        if slot.event is not None:
            wait_for(slot.event)
            slot.event = None

    def _event(self, stream: Any) -> Any:
        made = self._cupy.cuda.Event(disable_timing=True)
        made.record(stream)
        return made

    def wait(self) -> None:
        """Wait until nobody reads or writes the pinned memory; then all slots are free."""
        self.stop_filling()
        for slot in self._slots:
            if slot.event is not None:
                slot.event.synchronize()
                slot.event = None


def gathering(source: Array, begin: Array, done: Array, threads: int | None) -> Fill:
    """A function that fills a slot with ranges of `source`; see cpu.gather."""
    return functools.partial(cpu.gather, source=source, begin=begin, done=done, threads=threads)


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
    """The rings of the prepared Graph whose `keep` this is; else new ones, freed after the call."""
    found: Rings = Rings() if keep is None else keep("pinned rings", Rings)
    return found


def wait_for(event: Any) -> None:
    """Wait until the event has occurred.  Ctrl-C takes effect meanwhile."""
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
