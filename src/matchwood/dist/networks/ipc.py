"""GPU arrays between processes of one host that share GPUs, by CUDA IPC.  Read device.py first.

Each rank has a window: memory of its GPU that the others have mapped.  A rank copies what it sends
into its window, all ranks meet, each reads what it needs from the windows of the others, and all
meet again.  An array larger than the window goes in rounds.  A reduction reads the windows where
they lie, in the order of the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.dist.checks import Counts, reduced
from matchwood.dist.networks.device import Cuda, OnDevice
from matchwood.dist.protocol import Communicator
from matchwood.errors import EngineUnavailable

WINDOW_BYTES = 1 << 28  # of the largest window; 256 MiB go in 0.1 ms, so a round costs little
FIRST_BYTES = 1 << 20  # of the first window
ALIGNED = 16  # bytes; every type of number begins at a multiple of its size


class Windows:
    """The windows of all ranks of a communicator, mapped into this process."""

    def __init__(self, base: Communicator) -> None:
        self._base = base
        self._runtime = engines.cupy().cuda.runtime
        self._own = 0
        self._open = False
        self._mapped: list[int] = []
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
        told = [_unpacked(text) for text in base.raw_bytes(_packed(problem, handle))]
        self._agree([each for each, _ in told])
        try:
            for rank, (_, theirs) in enumerate(told):
                mine = rank == base.rank
                self._mapped.append(self._own if mine else runtime.ipcOpenMemHandle(theirs))
        except runtime.CUDARuntimeError as error:
            problem = str(error)
        self._agree([_unpacked(text)[0] for text in base.raw_bytes(_packed(problem, b""))])
        self.capacity = nbytes

    def _agree(self, problems: Sequence[str]) -> None:
        """Raise on all ranks where one of them has a problem."""
        found = [(rank, text) for rank, text in enumerate(problems) if text]
        if found:
            rank, text = found[0]
            raise EngineUnavailable(f"world: CUDA IPC does not work on rank {rank}: {text}")

    def view(self, rank: int, offset: int, size: int, dtype: Any) -> Any:
        """Elements of a rank's window, `offset` bytes from its beginning."""
        cupy = engines.cupy()
        memory = cupy.cuda.UnownedMemory(
            self._mapped[rank], self.capacity, self, cupy.cuda.Device().id
        )
        return cupy.ndarray(size, dtype, cupy.cuda.MemoryPointer(memory, offset))

    def close(self) -> None:
        """Give the memory back; all ranks call this together."""
        if not self._open:
            return
        for rank, pointer in enumerate(self._mapped):
            if rank != self._base.rank:
                self._runtime.ipcCloseMemHandle(pointer)
        self._mapped.clear()
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

    def _rounds(
        self, array: Any, lengths: Sequence[int], show: bool = True
    ) -> Iterator[tuple[int, int]]:
        """Show `array` to the others piece by piece: yields the elements that are visible now.

        `lengths` are those of all ranks; one that does not `show` its array only reads.  The caller
        reads the windows; nobody changes them before all have read.
        """
        item = array.itemsize
        longest = max(lengths) * item
        self._fit(longest)
        piece = self._windows.capacity // ALIGNED * ALIGNED // item
        for lo in range(0, max(lengths), max(piece, 1)):
            hi = min(lo + piece, array.size)
            if show and hi > lo:
                self._windows.view(self.rank, 0, hi - lo, array.dtype)[:] = array[lo:hi]
            self.cuda.synchronize()
            self.base.raw_barrier()
            yield lo, lo + piece
            self.cuda.synchronize()
            self.base.raw_barrier()

    def _fit(self, nbytes: int) -> None:
        """Windows large enough, or the largest: the same decision on all ranks."""
        wanted = min(max(nbytes, FIRST_BYTES), self._largest)
        if wanted > self._windows.capacity:
            self._windows.grow(min(1 << (wanted - 1).bit_length(), self._largest))

    def _gather_there(self, array: Any, counts: Counts) -> Any:
        result = self.cuda.empty(int(counts.sum()), array.dtype)
        starts = (np.cumsum(counts) - counts).tolist()
        lengths = counts.tolist()
        for lo, hi in self._rounds(array, lengths):
            for k in range(self.size):
                end = min(hi, lengths[k])
                if end > lo:
                    seen = self._windows.view(k, 0, end - lo, array.dtype)
                    result[starts[k] + lo : starts[k] + end] = seen
        return result

    def _exchange_there(self, array: Any, sends: Counts, receives: Counts) -> Any:
        # where the runs for this rank begin in the arrays of the others, and how long those are
        froms, _ = self.base.raw_table(np.cumsum(sends) - sends)
        lengths = self.base.raw_lengths(array.size).tolist()
        result = self.cuda.empty(int(receives.sum()), array.dtype)
        intos = np.cumsum(receives) - receives
        for lo, hi in self._rounds(array, lengths):
            for k in range(self.size):
                start, end = int(froms[k]), int(froms[k] + receives[k])
                first, last = max(lo, start), min(hi, end)
                if last > first:
                    item = array.itemsize
                    seen = self._windows.view(k, (first - lo) * item, last - first, array.dtype)
                    place = int(intos[k]) + first - start
                    result[place : place + last - first] = seen
        return result

    def _reduce_scatter_there(self, array: Any, counts: Counts, op: str) -> Any:
        start, own = int(counts[: self.rank].sum()), int(counts[self.rank])
        result = self.cuda.empty(own, array.dtype)
        item = array.itemsize
        for lo, hi in self._rounds(array, [array.size]):
            first, last = max(lo, start), min(hi, start + own)
            if last > first:
                place = (first - lo) * item
                seen = [
                    self._windows.view(k, place, last - first, array.dtype)
                    for k in range(self.size)
                ]
                result[first - start : last - start] = reduced(seen, op)
        return result

    def _cast_there(self, array: Any, root: int) -> None:
        for lo, hi in self._rounds(array, [array.size], self.rank == root):
            end = min(hi, array.size)
            if self.rank != root and end > lo:
                array[lo:end] = self._windows.view(root, 0, end - lo, array.dtype)

    def _split_there(
        self, color: int | None, ranks: Sequence[int], base: Communicator | None
    ) -> OnDevice | None:
        return None if base is None else Ipc(base, self.cuda, self._make, self._largest)

    def _release(self) -> None:
        self._windows.close()

    def _abort(self) -> None:
        """Nothing: others may still read the window, so it stays until the process ends."""


def open_ipc(comm: Communicator, tolerant: bool) -> Communicator:
    """IPC beside a communicator of the host.

    Where it does not work on some rank the host's memory is used if `tolerant`; all ranks agree.
    """
    made = Ipc(comm, Cuda())
    try:
        made._fit(FIRST_BYTES)
    except EngineUnavailable:
        made._release()
        if tolerant:
            return comm
        raise
    return made
