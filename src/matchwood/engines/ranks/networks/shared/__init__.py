"""Arrays of the host between ranks of one host: through memory that all of them have mapped.

    flags    for each rank the number of the last meeting that it entered
    heads    for each rank a few numbers: the operation it calls, lengths, where runs begin
    rows     for each rank a row of bytes: data

A meeting is a step that all ranks enter.  A rank writes its head and its row and raises its flag.
When all flags are up, each rank reads what it needs where it lies: lengths, data of others, or the
parts of a sum.  No library copies anything in between, and one meeting does what takes MPI two
(lengths, then data).  What is too large for a row takes several meetings: of a sum or an exchange
each rank shows a piece for every rank at a time, so that all have something to read.

Heads and rows exist twice and alternate from one meeting to the next, so nobody waits until all
have read.  A row is written again two meetings later: all ranks entered the meeting in between, and
each of them had read what it wanted of the first one by then.

The memory is an anonymous file, which has no name in any folder.  The first rank makes it, and the
others open it through the first one's entry in /proc.  It is gone with the last process that has it
mapped, however that ends.  Read on in cpu.py: flags, and copies by the threads of a rank.
"""

from __future__ import annotations

import mmap
import os
import pickle
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matchwood.engines.cpu.native import bound
from matchwood.engines.ranks import checks
from matchwood.engines.ranks.checks import Counts
from matchwood.engines.ranks.faults import difference
from matchwood.engines.ranks.networks.polled import Polled
from matchwood.engines.ranks.networks.shared.cpu import (
    ABSENT,
    DIFFERENT,
    FLAG_WORDS,
    come,
    copy,
    present,
)
from matchwood.engines.ranks.networks.staging import NUMBERS, described, header
from matchwood.engines.ranks.protocol import Communicator, collective
from matchwood.errors import RankFailed

NAME = "matchwood"
ROW_BYTES = 1 << 23  # only what is used takes memory; more data takes several meetings
LEAST_SLOT_BYTES = 1 << 12  # of a row for each rank; with more ranks the steps are too small
HEAD_WORDS = 72  # the least words of a head, which broadcasts need
LOOKS = 50  # at a flag that is not up, one after the other: some 2 us
ALIGNED = 64  # bytes
TOKEN_BYTES = 16
EXCHANGED_BYTES = 1 << 20  # of a row that an exchange uses: what was used stays in memory, and
# larger steps gain nothing
READ_BY_ALL_BYTES = 1 << 16  # of all ranks: up to this, each rank reduces all, in one meeting

CALLS = ("barrier", "lengths", "gather", "gatherv", "exchange", "reduce_scatter", "allreduce",
         "broadcast", "more")  # fmt: skip
CODES = {name: code for code, name in enumerate(CALLS)}
CODE_BITS = 4

Array = np.ndarray[Any, Any]


class SharedRegion:
    """The memory of one communicator, on one rank.

    `heads`, (ranks, words) of int64, and `rows`, (ranks, `room`) bytes, are those of the meeting
    that `begin` was called for; `whole` is all rows in one array.
    """

    def __init__(self, memory: mmap.mmap, rank: int, size: int, room: int) -> None:
        self.rank, self.size, self.room = rank, size, room
        flags, heads, rows = layout(size, room)
        whole = np.frombuffer(memory, np.uint8)
        self._flags = whole[:flags].view(np.int64)
        self._heads = list(whole[flags : flags + heads].view(np.int64).reshape(2, size, -1))
        self._rows = list(whole[flags + heads : flags + heads + rows].reshape(2, size, room))
        self._wholes = [side.reshape(-1) for side in self._rows]
        self._number = 0
        self._come, self._present = bound(come), bound(present)  # compiled before a meeting
        words = self._heads[0].shape[1]
        flags_at = self._flags.ctypes.data
        self._places = [(flags_at, side.ctypes.data, size, words) for side in self._heads]
        self.begin()
        self._number = 0

    def begin(self) -> None:
        """Go on to the heads and rows of the next meeting: they may be written now."""
        self._number += 1
        side = self._number & 1
        self.heads, self.rows, self.whole = self._heads[side], self._rows[side], self._wholes[side]

    def meet(self, looks: int, wait: Callable[[Callable[[], Any]], None]) -> bool:
        """Enter the meeting, and return when all have; True if all called the same operation.

        This rank has written its head and its row.  It tests the flags `looks` times before it
        calls `wait`.
        """
        number = self._number
        places = self._places[number & 1]
        found = self._come(*places, number, looks, self.rank)
        if found == ABSENT:

            def done() -> bool:
                nonlocal found
                found = self._present(*places, number, looks)
                return bool(found != ABSENT)

            wait(done)
        return bool(found != DIFFERENT)


def layout(size: int, room: int) -> tuple[int, int, int]:
    """Bytes of all flags, of both sides' heads, and of both sides' rows."""
    words = -(-max(HEAD_WORDS, size + 4) // FLAG_WORDS) * FLAG_WORDS
    return size * FLAG_WORDS * 8, 2 * size * words * 8, 2 * size * room


def room_for(size: int) -> int:
    """Bytes of a row in a communicator of that size; 0 where there are too many ranks."""
    return ROW_BYTES if ROW_BYTES // size >= LEAST_SLOT_BYTES else 0


def open_region(base: Any, room: int) -> SharedRegion | None:
    """The region of a communicator whose ranks are on one host; None on all where one fails.

    All ranks call this; they agree by messages of `base`.
    """
    memory = mapped(base, sum(layout(base.size, room)))
    return None if memory is None else SharedRegion(memory, base.rank, base.size, room)


def mapped(base: Any, size: int) -> mmap.mmap | None:
    """`size` bytes, 0 at first, and a token, which all ranks have mapped; None on all if not."""
    memory, descriptor, address = None, -1, b""
    try:
        if base.rank == 0:
            memory, descriptor, address = _made(size)
        first = base.raw_bytes(address)[0]
        if base.rank > 0 and first:
            memory = _opened(first, size)
        # when all have answered they have opened it, or never will
        answers = base.raw_bytes(b"" if memory is None else b"mapped")
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return memory if all(answers) else None


def _made(size: int) -> tuple[mmap.mmap | None, int, bytes]:
    """(memory, its descriptor, how others find it); (None, -1, b"") without memfd_create."""
    if not hasattr(os, "memfd_create"):
        return None, -1, b""
    descriptor = -1
    try:
        descriptor = os.memfd_create(NAME, os.MFD_CLOEXEC)
        os.ftruncate(descriptor, size + TOKEN_BYTES)
        memory = mmap.mmap(descriptor, size + TOKEN_BYTES)
    except OSError:
        return None, descriptor, b""
    token = secrets.token_bytes(TOKEN_BYTES)
    memory[size:] = token
    return memory, descriptor, pickle.dumps((os.getpid(), descriptor, token))


def _opened(address: bytes, size: int) -> mmap.mmap | None:
    """The memory of the first rank; None where it cannot be reached, or is another one.

    Processes in containers of one host may have the same numbers, but not the same token.
    """
    process, number, token = pickle.loads(address)
    path = f"/proc/{process}/fd/{number}"
    try:
        if not os.readlink(path).startswith(f"/memfd:{NAME}"):
            return None
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        memory = mmap.mmap(descriptor, size + TOKEN_BYTES)
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
    return memory if memory[size:] == token else None


# The operations: each begins a meeting, writes, meets, and reads


class Shared(Communicator):
    """A rank whose communicator `base` has all its ranks on one host.

    `base` still does what shared memory cannot: arrays of GPUs, notices, splits, and waiting.
    """

    shared_memory = True

    def __init__(self, base: Polled, region: SharedRegion) -> None:
        super().__init__(base.rank, base.size, base.threads, base.session, base.traffic)
        self.base = base
        self.kind = base.kind
        self.cuda_aware = getattr(base, "cuda_aware", None)
        self._region = region
        self._scratch: Array | None = None
        self._exchanged = min(EXCHANGED_BYTES, region.room)
        self._read_by_all = min(READ_BY_ALL_BYTES // base.size, region.room)

    # Meetings

    def _begin(self, call: str, nbytes: int) -> Array:
        """The head of this rank in a meeting that begins; word 0 must be the same on all."""
        if self._scratch is None:
            self._region.begin()
        self._scratch = None
        head: Array = self._region.heads[self.rank]
        head[0] = CODES[call] | nbytes << CODE_BITS
        return head

    def _meet(self) -> None:
        looks = 0 if self.session.crowded else LOOKS
        if not self._region.meet(looks, self.base.wait_until):
            raise self._differing()

    def _differing(self) -> RankFailed:
        """The failure that names who called something else; the same on all ranks."""
        calls = [
            (CALLS[word & (1 << CODE_BITS) - 1], f"{word >> CODE_BITS} bytes")
            for word in self._region.heads[:, 0].tolist()
        ]
        found = difference(calls)
        assert found is not None
        return RankFailed(self.base.members[found[0]], "ValueError", found[1])

    def _write(self, array: Array, at: int = 0) -> None:
        """Copy the array into the row of this rank, `at` bytes from its beginning."""
        copy(self.threads, array, self._region.rows[self.rank, at : at + array.nbytes])

    def wait_until(self, done: Callable[[], Any]) -> None:
        self.base.wait_until(done)

    def look(self) -> None:
        self.base.look()

    @collective
    def shared_array(self, nbytes: int) -> Any:
        self.raw_compare("shared_array", nbytes)
        memory = mapped(self.base, nbytes)
        return None if memory is None else np.frombuffer(memory, np.uint8, nbytes)

    def scratch(self, size: int, dtype: Any) -> Any:
        nbytes = size * np.dtype(dtype).itemsize
        if nbytes > self._region.room:
            return super().scratch(size, dtype)
        if self._scratch is None:
            self._region.begin()
        self._scratch = self._region.rows[self.rank, :nbytes].view(dtype)
        return self._scratch

    # What protocol.py asks for

    def raw_compare(self, operation: str, *details: Any) -> None:
        self.base.raw_compare(operation, *details)

    def raw_barrier(self) -> None:
        self._begin("barrier", 0)
        self._meet()

    def raw_lengths(self, length: int) -> Counts:
        self._begin("lengths", 0)[1] = length
        self._meet()
        return self._region.heads[:, 1].copy()

    def raw_bytes(self, text: bytes) -> Sequence[bytes]:
        joined, counts = self.raw_allgatherv(np.frombuffer(text, np.uint8))
        whole, ends = joined.tobytes(), np.cumsum(counts).tolist()
        return [whole[lo:hi] for lo, hi in zip([0, *ends], ends, strict=False)]

    def raw_allgather(self, array: Any, borrowed: bool = False) -> Any:
        if type(array) is not np.ndarray or array.nbytes > self._region.room:
            return super().raw_allgather(array, borrowed)
        return self._joined(array, self.rank * array.nbytes, self.size * array.nbytes, borrowed)

    def raw_gather(self, array: Any, counts: Counts) -> Any:
        if type(array) is not np.ndarray:
            return self.base.raw_gather(array, counts)
        item, total = array.itemsize, int(counts.sum())
        if total * item <= self._region.whole.size:
            return self._joined(array, int(counts[: self.rank].sum()) * item, total * item)
        result = np.empty(total, array.dtype)
        for lo, hi in self._pieces(int(counts.max()), item):
            self._begin("more", item)
            self._write(array[lo:hi])
            self._meet()
            self._read_all(result, counts, lo, hi)
        return result

    def _joined(self, array: Array, at: int, nbytes: int, borrowed: bool = False) -> Array:
        """The arrays of all ranks, `nbytes` together; each rank writes its own at byte `at`."""
        self._begin("gather", nbytes)
        copy(self.threads, array, self._region.whole[at : at + array.nbytes])
        self._meet()
        found: Array = self._region.whole[:nbytes].view(array.dtype)
        if borrowed:
            return found
        result = np.empty_like(found)
        copy(self.threads, found, result.view(np.uint8))
        return result

    def _pieces(self, longest: int, itemsize: int) -> list[tuple[int, int]]:
        """Ranges of elements that fit into a row."""
        piece = self._region.room // itemsize
        return [(lo, lo + piece) for lo in range(0, longest, piece)]

    def _read_all(self, result: Array, counts: Counts, lo: int, hi: int) -> None:
        """Copy elements lo to hi of all ranks to where they belong in `result`."""
        rows, item = self._region.rows, result.itemsize
        into, place = result.view(np.uint8), 0
        for rank, length in enumerate(counts.tolist()):
            nbytes = (min(hi, length) - lo) * item
            if nbytes > 0:
                start = place + lo * item
                into[start : start + nbytes] = rows[rank, :nbytes]
            place += length * item

    def raw_allgatherv(self, array: Any) -> tuple[Any, Counts]:
        if type(array) is not np.ndarray:
            return self.base.raw_allgatherv(array)
        head = self._begin("gatherv", array.itemsize)
        head[1] = array.size
        if array.nbytes <= self._region.room:
            self._write(array)
        self._meet()
        counts: Counts = self._region.heads[:, 1].copy()
        longest = int(counts.max())
        if longest * array.itemsize > self._region.room:
            return self.raw_gather(array, counts), counts
        result = np.empty(int(counts.sum()), array.dtype)
        self._read_all(result, counts, 0, longest)
        return result, counts

    def raw_table(self, sends: Counts) -> tuple[Counts, int]:
        return self.base.raw_table(sends)

    def raw_exchange(self, array: Any, sends: Counts, receives: Counts, total: int) -> Any:
        return self.base.raw_exchange(array, sends, receives, total)

    def raw_alltoallv(self, array: Any, sends: Counts) -> tuple[Any, Counts]:
        if type(array) is not np.ndarray:
            return self.base.raw_alltoallv(array, sends)
        head = self._begin("exchange", array.itemsize)
        ends = head[1 : self.size + 2]  # where the run for each rank begins, and the end of all
        ends[0] = 0
        np.cumsum(sends, out=ends[1:])
        if array.nbytes <= self._exchanged:
            self._write(array)
        self._meet()
        table = self._region.heads[:, 1 : self.size + 2].copy()
        begins, stops = table[:, self.rank], table[:, self.rank + 1]
        receives = stops - begins
        result = np.empty(int(receives.sum()), array.dtype)
        if int(table[:, -1].max()) * array.itemsize > self._exchanged:
            longest = int(np.diff(table).max())
            self._exchange_in_steps(array, table[self.rank].tolist(), result, receives, longest)
        else:
            self._read_runs(result, begins, stops)
        return result, receives

    def _read_runs(self, result: Array, begins: Counts, stops: Counts) -> None:
        rows, item, into, place = self._region.rows, result.itemsize, result.view(np.uint8), 0
        for rank, (lo, hi) in enumerate(zip(begins.tolist(), stops.tolist(), strict=True)):
            if hi > lo:
                nbytes = (hi - lo) * item
                into[place : place + nbytes] = rows[rank, lo * item : hi * item]
                place += nbytes

    def _exchange_in_steps(
        self, array: Array, ends: list[int], result: Array, receives: Counts, longest: int
    ) -> None:
        """Exchange a piece of every run at a time; `ends` bound the runs that this rank sends."""
        slot, item, into = self._slot(self._exchanged), array.itemsize, result.view(np.uint8)
        piece, at = slot // item, self.rank * slot
        for lo in range(0, longest, piece):
            self._show_pieces(array, ends, lo, slot)
            place = 0
            for rank, length in enumerate(receives.tolist()):
                nbytes = (min(lo + piece, length) - lo) * item
                if nbytes > 0:
                    start = place + lo * item
                    row = self._region.rows[rank, at : at + nbytes]
                    into[start : start + nbytes] = row
                place += length * item

    def _slot(self, nbytes: int) -> int:
        """The bytes of each rank's slot when `nbytes` bytes of a row are shared by all ranks."""
        return nbytes // self.size // ALIGNED * ALIGNED

    def _show_pieces(self, array: Array, ends: list[int], lo: int, slot: int) -> None:
        """Write elements of each rank's run, from `lo` on, into the slots of this rank's row."""
        piece = slot // array.itemsize
        self._begin("more", array.itemsize)
        for rank in range(self.size):
            begin, end = ends[rank] + lo, min(ends[rank] + lo + piece, ends[rank + 1])
            if end > begin:
                self._write(array[begin:end], rank * slot)
        self._meet()

    def raw_reduce_scatter(self, array: Any, counts: Counts, op: str) -> Any:
        if type(array) is not np.ndarray:
            return self.base.raw_reduce_scatter(array, counts, op)
        ends = [0, *np.cumsum(counts).tolist()]
        begin, own, item = ends[self.rank], int(counts[self.rank]), array.itemsize
        result = np.empty(own, array.dtype)
        if array.nbytes <= self._region.room:
            in_place = array is self._scratch
            self._begin("reduce_scatter", array.nbytes)
            if not in_place:
                self._write(array)
            self._meet()
            self._reduce(result, begin * item, op)
            return result
        slot = self._slot(self._region.room)
        piece = slot // item
        for lo in range(0, int(counts.max()), piece):
            self._show_pieces(array, ends, lo, slot)
            self._reduce(result[lo : lo + piece], self.rank * slot, op)
        return result

    def _reduce(self, result: Array, at: int, op: str) -> None:
        """What all rows hold from byte `at` on, reduced in the order of the ranks."""
        if result.size:
            parts = self._region.rows[:, at : at + result.nbytes].view(result.dtype)
            checks.reduced(parts, op, result)

    def raw_allreduce(self, array: Any, op: str) -> Any:
        if type(array) is not np.ndarray:
            return self.base.raw_allreduce(array, op)
        if array.nbytes > self._read_by_all:
            return super().raw_allreduce(array, op)
        self._begin("allreduce", array.nbytes)
        self._write(array)
        self._meet()
        result = np.empty(array.size, array.dtype)
        self._reduce(result, 0, op)
        return result

    def raw_broadcast(self, array: Any, root: int) -> Any:
        mine, room = self.rank == root, self._region.room
        head = self._begin("broadcast", root)
        host = mine and type(array) is np.ndarray
        if mine:
            head[1 : NUMBERS + 1] = header(array)
        if host and array.nbytes <= room:
            self._write(array.reshape(-1))
        self._meet()
        on_gpu, dtype, shape = described(self._region.heads[root, 1 : NUMBERS + 1])
        if on_gpu:
            return self.base.raw_broadcast(array, root)
        result = array.copy() if mine else np.empty(shape, dtype)
        flat = result.reshape(-1)
        if flat.nbytes <= room:
            self._read_one(flat, root)
            return result
        for lo, hi in self._pieces(flat.size, dtype.itemsize):
            self._begin("more", dtype.itemsize)
            if mine:
                self._write(flat[lo:hi])
            self._meet()
            self._read_one(flat[lo:hi], root)
        return result

    def _read_one(self, into: Array, root: int) -> None:
        if self.rank != root:
            into.view(np.uint8)[:] = self._region.rows[root, : into.nbytes]

    def raw_split(self, color: int | None, ranks: Sequence[int]) -> Communicator | None:
        return self.base.raw_split(color, ranks)

    def raw_close(self) -> None:
        self.base.raw_close()

    def raw_fail(self, error: BaseException) -> None:
        self.base.raw_fail(error)


def among_neighbours(base: Polled) -> Communicator:
    """`base`, or a `Shared` where its ranks, which all call this, can share memory of one host."""
    hosts, room = base.session.hosts, room_for(base.size)
    if base.size == 1 or room == 0 or len({hosts[rank] for rank in base.members}) != 1:
        return base
    region = open_region(base, room)
    return base if region is None else Shared(base, region)
