"""Large arrays between processes of one host, by memory that they share.  Read device.py first.

A library moves a large array between two processes piece by piece while both ask it to, which is
slow where it may not read the memory of another process, as in most containers.  So every rank has
a window that the others have mapped too.  A rank copies what it sends into its window, all ranks
meet, and each reads what is for it.  An array larger than the window goes in rounds.

A window has two sides, which rounds take in turn.  A rank that writes one side again has met the
others since they read it: they meet after each writing.  So a round needs one meeting.

Small arrays, and all lengths, objects and notices, go by the library.
"""

from __future__ import annotations

import mmap
import os
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.dist.checks import Counts, reduced
from matchwood.dist.networks.device import Cuda, OnDevice
from matchwood.dist.protocol import Communicator
from matchwood.errors import EngineUnavailable

FOLDER = Path("/dev/shm")
WINDOW_BYTES = 1 << 20  # of a rank, for each communicator: a round costs a meeting, about 20 us
LARGE_BYTES = 1 << 15  # of a rank, on average: from there on windows are quicker
ALIGNED = 16  # bytes; every type of number begins at a multiple of its size


class Windows:
    """The windows of all ranks of a communicator, mapped into this process."""

    def __init__(self, base: Communicator, nbytes: int) -> None:
        """All ranks call this together; EngineUnavailable on all of them if one has no room."""
        path = FOLDER / f"matchwood-{uuid.uuid4().hex}"
        problem = _attempt(lambda: _make(path, nbytes))
        try:
            names = _agreed(base, problem, str(path))
            problem = _attempt(lambda: self._map(names))
            _agreed(base, problem, "")
        finally:
            path.unlink(missing_ok=True)

    def _map(self, names: Sequence[str]) -> None:
        self._mapped = []
        for name in names:
            descriptor = os.open(name, os.O_RDWR)
            try:
                self._mapped.append(np.frombuffer(mmap.mmap(descriptor, 0), np.uint8))
            finally:
                os.close(descriptor)

    def view(self, rank: int, offset: int, size: int, dtype: Any) -> Any:
        """Elements of a rank's window, `offset` bytes from its beginning."""
        end = offset + size * np.dtype(dtype).itemsize
        return self._mapped[rank][offset:end].view(dtype)


def _attempt(work: Callable[[], None]) -> str:
    """What went wrong, or nothing."""
    try:
        work()
    except OSError as error:
        return str(error) or type(error).__name__
    return ""


def _make(path: Path, nbytes: int) -> None:
    """A file of that size, with memory behind it: a write never fails later."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, nbytes)
    finally:
        os.close(descriptor)


def _agreed(base: Communicator, problem: str, thing: str) -> list[str]:
    """The things of all ranks; EngineUnavailable on all where one of them has a problem."""
    told = [text.decode().split("\0") for text in base.raw_bytes(f"{problem}\0{thing}".encode())]
    for rank, (text, _) in enumerate(told):
        if text:
            raise EngineUnavailable(f"world: no shared memory on rank {rank}: {text}")
    return [each for _, each in told]


class Near(OnDevice):
    """A rank whose host has all others too."""

    kind = "mpi"
    shares_memory = True

    def __init__(
        self, base: Communicator, nbytes: int = WINDOW_BYTES, large: int = LARGE_BYTES
    ) -> None:
        super().__init__(base, Cuda())
        self._nbytes, self._large = nbytes, large
        self._windows: Windows | None = None
        self._tried = False
        self._side = 0

    @property
    def cuda_aware(self) -> bool | None:
        """What the library says of GPU memory."""
        return getattr(self.base, "cuda_aware", None)

    def _pays(self, array: Any, total: int) -> bool:
        """Whether so many elements of all ranks go by windows: the same decision on all ranks."""
        if self.size == 1 or total * array.itemsize < self._large * self.size:
            return False
        if engines.location(array) == "gpu":
            return False
        if not self._tried:
            self._tried = True
            try:
                self._windows = Windows(self.base, self._nbytes)
            except EngineUnavailable:
                self._windows = None
        return self._windows is not None

    # Which way

    def raw_gather(self, array: Any, counts: Counts) -> Any:
        if not self._pays(array, int(counts.sum())):
            return self.base.raw_gather(array, counts)
        return self._gather_there(array, counts)

    def raw_exchange(self, array: Any, sends: Counts, receives: Counts, total: int) -> Any:
        if not self._pays(array, total):
            return self.base.raw_exchange(array, sends, receives, total)
        return self._exchange_there(array, sends, receives)

    def raw_reduce_scatter(self, array: Any, counts: Counts, op: str) -> Any:
        if not self._pays(array, self.size * array.size):
            return self.base.raw_reduce_scatter(array, counts, op)
        return self._reduce_scatter_there(array, counts, op)

    def raw_allreduce(self, array: Any, op: str) -> Any:
        if not self._pays(array, self.size * array.size):
            return self.base.raw_allreduce(array, op)
        return self._allreduce_there(array, op)

    def raw_broadcast(self, array: Any, root: int) -> Any:
        return self.base.raw_broadcast(array, root)

    # By windows

    def _view(self, rank: int, offset: int, size: int, dtype: Any) -> Any:
        """Elements on the side that this round uses."""
        assert self._windows is not None
        return self._windows.view(rank, self._side * (self._nbytes // 2) + offset, size, dtype)

    def _section(self, parts: int, itemsize: int) -> int:
        """Elements of each of so many sections of a side."""
        return self._nbytes // 2 // parts // ALIGNED * ALIGNED // itemsize

    def _gather_there(self, array: Any, counts: Counts) -> Any:
        result = np.empty(int(counts.sum()), array.dtype)
        starts, lengths = (np.cumsum(counts) - counts).tolist(), counts.tolist()
        step = self._section(1, array.itemsize)
        for lo in range(0, max(lengths), step):
            mine = array[lo : lo + step]
            self._view(self.rank, 0, mine.size, array.dtype)[:] = mine
            self.base.raw_barrier()
            for k in range(self.size):
                size = min(step, lengths[k] - lo)
                if size > 0:
                    place = starts[k] + lo
                    seen = self._view(k, 0, size, array.dtype) if k != self.rank else mine
                    result[place : place + size] = seen
            self._side ^= 1
        return result

    def _exchange_there(self, array: Any, sends: Counts, receives: Counts) -> Any:
        longest = int(self.base.raw_lengths(int(sends.max())).max())
        result = np.empty(int(receives.sum()), array.dtype)
        intos = (np.cumsum(receives) - receives).tolist()
        sizes = receives.tolist()

        def take(k: int, lo: int, seen: Any) -> None:
            result[intos[k] + lo : intos[k] + lo + seen.size] = seen

        self._deal(array, sends, longest, lambda k, lo: sizes[k] - lo, take)
        return result

    def _reduce_scatter_there(self, array: Any, counts: Counts, op: str) -> Any:
        own = int(counts[self.rank])
        result = np.empty(own, array.dtype)
        pieces: list[Any] = []

        def take(k: int, lo: int, seen: Any) -> None:
            pieces.append(seen)
            if k == self.size - 1:
                result[lo : lo + seen.size] = reduced(pieces, op)
                pieces.clear()

        self._deal(array, counts, int(counts.max()), lambda k, lo: own - lo, take)
        return result

    def _deal(
        self, array: Any, sends: Counts, longest: int, left: Callable[[int, int], int],
        take: Callable[[int, int, Any], None],
    ) -> None:  # fmt: skip
        """Send a run of `array` to each rank, a section of the window for each of them.

        `longest` is the longest run of all ranks.  left(k, lo): how many elements are still to come
        from rank k when `lo` have come; take(k, lo, seen) reads them, rank by rank.
        """
        step = self._section(self.size, array.itemsize)
        width = step * array.itemsize
        froms, ends = (np.cumsum(sends) - sends).tolist(), np.cumsum(sends).tolist()
        for lo in range(0, longest, step):
            for k in range(self.size):
                run = array[froms[k] + lo : min(froms[k] + lo + step, ends[k])]
                if run.size and k != self.rank:
                    self._view(self.rank, k * width, run.size, array.dtype)[:] = run
            self.base.raw_barrier()
            for k in range(self.size):
                size = min(step, left(k, lo))
                if size > 0 and k == self.rank:
                    take(k, lo, array[froms[k] + lo : froms[k] + lo + size])
                elif size > 0:
                    take(k, lo, self._view(k, self.rank * width, size, array.dtype))
            self._side ^= 1

    def _cast_there(self, array: Any, root: int) -> None:
        raise AssertionError("broadcasts go by the library")

    def _split_there(
        self, color: int | None, ranks: Sequence[int], base: Communicator | None
    ) -> OnDevice | None:
        return None if base is None else Near(base, self._nbytes, self._large)

    def _release(self) -> None:
        self._windows = None

    def _abort(self) -> None:
        """Nothing: the memory goes with the process."""
