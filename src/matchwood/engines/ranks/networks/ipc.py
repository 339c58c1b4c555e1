"""GPU arrays between processes of one host that share GPUs, by CUDA IPC.  Read device.py first.

Each rank has a window: memory of its GPU that the others have mapped.  A rank copies what it sends
into its window, waits for its GPU, and all ranks meet; then each reads what it needs from the
windows of the others.  Where lengths must be exchanged, that is the meeting.  A reduction reads the
windows where they lie, in the order of the ranks.

A window has two halves, which alternate: a step is a piece of an array in one half.  So nobody
waits until all have read.  A half is written again two steps later.  Before that all ranks met in
the step between, and each of them had waited for its GPU, which had read by then.
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines.ranks.checks import Counts, reduced
from matchwood.engines.ranks.networks.device import Cuda, OnDevice
from matchwood.engines.ranks.protocol import Communicator, MappedArrays, collective
from matchwood.errors import EngineUnavailable

WINDOW_BYTES = 1 << 28  # the most of half a window; 256 MiB take 0.1 ms, so a step costs little
FIRST_BYTES = 1 << 20  # of half the first window
ALIGNED = 16  # bytes; every type of number begins at a multiple of its size


class Windows:
    """The windows of all ranks of a communicator, mapped into this process."""

    def __init__(self, base: Communicator) -> None:
        self._base = base
        self._runtime = engines.cupy().cuda.runtime
        self._own = 0
        self._open = False
        self._mapped: list[int] = []
        self._arrays: list[Any] = []
        self.capacity = 0  # bytes, the same for all

    def grow(self, nbytes: int) -> None:
        """Make windows of that size; all ranks call this together, with one size."""
        self.close()
        self._open = True
        runtime, base = self._runtime, self._base
        problem, handle = "", b""
        try:
            self._own = runtime.malloc(nbytes)
            handle = runtime.ipcGetMemHandle(self._own)
        except runtime.CUDARuntimeError as error:
            problem = str(error)
        answers = [_unpacked(text) for text in base.raw_bytes(_packed(problem, handle))]
        self._agree([each for each, _ in answers])
        try:
            for rank, (_, theirs) in enumerate(answers):
                mine = rank == base.rank
                self._mapped.append(self._own if mine else runtime.ipcOpenMemHandle(theirs))
        except runtime.CUDARuntimeError as error:
            problem = str(error)
        self._agree([_unpacked(text)[0] for text in base.raw_bytes(_packed(problem, b""))])
        self.capacity = nbytes
        self._arrays = [self._array(pointer) for pointer in self._mapped]

    def _array(self, pointer: int) -> Any:
        cuda = engines.cupy().cuda
        memory = cuda.UnownedMemory(pointer, self.capacity, None, cuda.Device().id)
        return engines.cupy().ndarray(self.capacity, np.uint8, cuda.MemoryPointer(memory, 0))

    def _agree(self, problems: Sequence[str]) -> None:
        found = [(rank, text) for rank, text in enumerate(problems) if text]
        if found:
            rank, text = found[0]
            raise EngineUnavailable(f"world: CUDA IPC does not work on rank {rank}: {text}")

    def view(self, rank: int, offset: int, size: int, dtype: Any) -> Any:
        """Elements of a rank's window, `offset` bytes from its beginning."""
        end = offset + size * np.dtype(dtype).itemsize
        return self._arrays[rank][offset:end].view(dtype)

    def close(self) -> None:
        """Give the memory back; all ranks call this together."""
        if not self._open:
            return
        for rank, pointer in enumerate(self._mapped):
            if rank != self._base.rank:
                self._runtime.ipcCloseMemHandle(pointer)
        self._mapped.clear()
        self._arrays.clear()
        self._base.raw_barrier()  # nobody has this window mapped any more
        if self._own:
            self._runtime.free(self._own)
        self._own = self.capacity = 0
        self._open = False


def _packed(problem: str, handle: bytes) -> bytes:
    text = problem.encode()
    return len(text).to_bytes(4, "little") + text + handle


def _unpacked(text: bytes) -> tuple[str, bytes]:
    length = int.from_bytes(text[:4], "little")
    return text[4 : 4 + length].decode(), text[4 + length :]


class Mappings:
    """Arrays that the ranks of a communicator have mapped; for ranks that share one GPU.

    A mapping lasts as long as the rank keeps its `MappedArrays`.  The owner keeps its arrays until
    no other rank has them mapped: each rank says which of its mappings have ended when arrays are
    mapped again, and when the communicator ends.
    """

    def __init__(self, base: Communicator, cuda: Cuda) -> None:
        self._base, self._cuda = base, cuda
        self._number = 0
        self._offered: dict[int, Any] = {}  # own arrays that others may have mapped
        self._mapped: dict[int, list[int]] = {}  # of others, while this rank needs them

    def lend(self, arrays: Sequence[Any]) -> MappedArrays | None:
        """See `Communicator.lend`; all ranks call it."""
        self._number += 1
        number, cuda = self._number, self._cuda
        over = [each for each in self._offered if each not in self._mapped]
        problem, offered = "", []
        try:
            offered = [(*self._handle(each), each.size, each.dtype.str) for each in arrays]
            cuda.synchronize()  # what was written into them is there
        except cuda.errors() as error:
            problem = str(error)
        offers = self._of_all((cuda.bus(), problem, over, offered))
        for each in set(over).intersection(*(theirs[2] for theirs in offers)):
            del self._offered[each]
        if len({theirs[0] for theirs in offers}) > 1 or any(theirs[1] for theirs in offers):
            return None
        self._offered[number], self._mapped[number] = list(arrays), []
        problem, found = "", []
        try:
            for rank, (_, _, _, theirs) in enumerate(offers):
                mine = rank == self._base.rank
                found.append(list(arrays) if mine else self._seen(number, theirs))
        except cuda.errors() as error:
            problem = str(error)
        if any(self._of_all(problem)):
            self._end(number)
            return None
        made = MappedArrays(found)
        weakref.finalize(made, self._end, number).atexit = False  # CUDA may have ended by then
        return made

    def _of_all(self, thing: Any) -> list[Any]:
        return [pickle.loads(each) for each in self._base.raw_bytes(pickle.dumps(thing))]

    def _handle(self, array: Any) -> tuple[bytes, int]:
        return self._cuda.exported(array) if array.size else (b"", 0)  # empty: has no memory

    def _seen(self, number: int, offered: list[Any]) -> list[Any]:
        """The arrays of another rank; an allocation that holds several is mapped once."""
        begins: dict[bytes, int] = {}
        found = []
        for handle, offset, size, dtype in offered:
            if size == 0:
                found.append(self._cuda.empty(0, dtype))
                continue
            if handle not in begins:
                begins[handle] = self._cuda.mapped(handle)
                self._mapped[number].append(begins[handle])
            found.append(self._cuda.array_at(begins[handle] + offset, size, dtype))
        return found

    def _end(self, number: int) -> None:
        """Unmap the arrays of the other ranks."""
        pointers = self._mapped.pop(number, [])
        if pointers:
            self._cuda.synchronize()  # nothing reads them any more
        for pointer in pointers:
            self._cuda.unmapped(pointer)

    def close(self) -> None:
        """End all mappings; all ranks call this together."""
        for number in list(self._mapped):
            self._end(number)
        if self._number:
            self._base.raw_barrier()  # nobody has own arrays mapped any more
        self._offered.clear()


def _true() -> bool:
    return True


class Ipc(OnDevice):
    """A rank that shares a GPU, or at least a host, with all others."""

    kind = "ipc"
    transport = "ipc"

    def __init__(
        self,
        base: Communicator,
        cuda: Cuda,
        windows: Callable[[Communicator], Any] = Windows,
        largest: int = WINDOW_BYTES,
    ) -> None:
        super().__init__(base, cuda)
        self._make = windows
        self._windows = windows(base)
        self._largest = largest
        self._half = 0  # bytes of half a window
        self._turn = 0  # the half that was written last
        self._has_read = _true  # whether this rank's GPU has read the last step
        self._mappings = Mappings(base, cuda)

    @collective
    def lend(self, arrays: Sequence[Any]) -> MappedArrays | None:
        self.raw_compare("lend")
        return self._mappings.lend(arrays)

    # Steps

    def _show(self, array: Any) -> int:
        """Copy `array` into the next half of the own window; the byte where that half begins.

        When this returns, the GPU has copied it and has read all it had to read before.  An array
        that is too large is not copied; the half is the next one all the same, as on all ranks.
        """
        self._turn = 1 - self._turn
        start = self._turn * self._half
        if 0 < array.nbytes <= self._half:
            self._windows.view(self.rank, start, array.size, array.dtype)[:] = array
        self.cuda.synchronize()
        while not self._has_read():  # if it was asked for on another stream
            pass
        self._has_read = _true
        return start

    def _steps(self, array: Any, longest: int, show: bool = True) -> Iterator[tuple[int, int, int]]:
        """Show `array` to the others piece by piece; the longest of a rank has `longest` elements.

        Yields the first visible element, the end, and the byte of the window where they begin.  A
        rank that does not `show` its array only reads.
        """
        self._fit(longest * array.itemsize)
        piece = max(self._half // array.itemsize, 1)
        for lo in range(0, longest, piece):
            start = self._show(array[lo : lo + piece] if show else array[:0])
            self.base.raw_barrier()
            yield lo, lo + piece, start
            self._has_read = self.cuda.finished()

    def _fit(self, nbytes: int) -> None:
        """Make windows for `nbytes` bytes, or the largest: the same decision on all ranks."""
        wanted = min(max(nbytes, FIRST_BYTES), self._largest)
        if wanted > self._half:
            self.cuda.synchronize()  # nothing reads the windows that are closed now
            self._windows.grow(2 * min(1 << (wanted - 1).bit_length(), self._largest))
            self._half = self._windows.capacity // 2 // ALIGNED * ALIGNED

    def _fits(self, nbytes: int) -> bool:
        """Whether `nbytes` bytes fit into one step with the present windows."""
        return 0 < nbytes <= self._half

    # Collectives

    def _gather_there(self, array: Any, counts: Counts) -> Any:
        result = self.cuda.empty(int(counts.sum()), array.dtype)
        for lo, hi, start in self._steps(array, int(counts.max())):
            self._read_all(result, counts, lo, hi, start)
        return result

    def _gatherv_there(self, array: Any) -> tuple[Any, Counts]:
        # lengths are exchanged after the window is written, which is the meeting
        start = self._show(array)
        counts = self.base.raw_lengths(array.size)
        if not self._fits(int(counts.max()) * array.itemsize):
            return self._gather_there(array, counts), counts
        result = self.cuda.empty(int(counts.sum()), array.dtype)
        self._read_all(result, counts, 0, int(counts.max()), start)
        self._has_read = self.cuda.finished()
        return result, counts

    def _read_all(self, result: Any, counts: Counts, lo: int, hi: int, start: int) -> None:
        """Copy the visible elements of all ranks to where they belong."""
        place = 0
        for k, length in enumerate(counts.tolist()):
            end = min(hi, length)
            if end > lo:
                seen = self._windows.view(k, start, end - lo, result.dtype)
                result[place + lo : place + end] = seen
            place += length

    def _exchange_there(self, array: Any, sends: Counts, receives: Counts) -> Any:
        return self._exchanged_in_steps(array, self._table(sends))

    def _alltoallv_there(self, array: Any, sends: Counts) -> tuple[Any, Counts]:
        start = self._show(array)
        table = self._table(sends)
        receives = table[:, self.rank].copy()
        longest = int(table.sum(axis=1).max())
        if not self._fits(longest * array.itemsize):
            return self._exchanged_in_steps(array, table), receives
        result = self.cuda.empty(int(receives.sum()), array.dtype)
        self._read_runs(result, table, 0, longest, start)
        self._has_read = self.cuda.finished()
        return result, receives

    def _table(self, sends: Counts) -> Counts:
        """table[a, b]: how many elements rank a sends to rank b."""
        table = self.base.raw_gather(sends, np.full(self.size, self.size, np.int64))
        found: Counts = table.reshape(self.size, self.size)
        return found

    def _exchanged_in_steps(self, array: Any, table: Counts) -> Any:
        result = self.cuda.empty(int(table[:, self.rank].sum()), array.dtype)
        for lo, hi, start in self._steps(array, int(table.sum(axis=1).max())):
            self._read_runs(result, table, lo, hi, start)
        return result

    def _read_runs(self, result: Any, table: Counts, lo: int, hi: int, start: int) -> None:
        """Copy the visible part of the runs for this rank."""
        place, item = 0, result.itemsize
        for k in range(self.size):
            begin, length = int(table[k, : self.rank].sum()), int(table[k, self.rank])
            first, last = max(lo, begin), min(hi, begin + length)
            if last > first:
                at = start + (first - lo) * item
                into = place + first - begin
                seen = self._windows.view(k, at, last - first, result.dtype)
                result[into : into + last - first] = seen
            place += length

    def _reduce_scatter_there(self, array: Any, counts: Counts, op: str) -> Any:
        begin, own = int(counts[: self.rank].sum()), int(counts[self.rank])
        result = self.cuda.empty(own, array.dtype)
        for lo, hi, start in self._steps(array, array.size):
            first, last = max(lo, begin), min(hi, begin + own)
            if last > first:
                place = start + (first - lo) * array.itemsize
                seen = [
                    self._windows.view(k, place, last - first, array.dtype)
                    for k in range(self.size)
                ]
                reduced(seen, op, result[first - begin : last - begin])
        return result

    def _cast_there(self, array: Any, root: int) -> None:
        for lo, hi, start in self._steps(array, array.size, self.rank == root):
            end = min(hi, array.size)
            if self.rank != root and end > lo:
                array[lo:end] = self._windows.view(root, start, end - lo, array.dtype)

    def _split_there(
        self, color: int | None, ranks: Sequence[int], base: Communicator | None
    ) -> OnDevice | None:
        return None if base is None else Ipc(base, self.cuda, self._make, self._largest)

    def _release(self) -> None:
        self.cuda.synchronize()  # nothing reads the windows any more
        self._mappings.close()
        self._windows.close()
        self._half = 0

    def _abort(self) -> None:
        """Nothing: others may still read the window, so it stays until the process ends."""


def open_ipc(comm: Communicator, tolerant: bool) -> Communicator:
    """IPC beside a host's communicator; if `tolerant`, `comm` itself where IPC fails on a rank."""
    made = Ipc(comm, Cuda())
    try:
        made._fit(FIRST_BYTES)
    except EngineUnavailable:
        made._release()
        if tolerant:
            return comm
        raise
    return made
