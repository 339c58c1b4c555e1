"""The operations of ranks that share memory.  Read board.py first.

Each begins a meeting, writes, meets, and reads.  What is too large for a row goes in several
meetings: of a sum or an exchange each rank shows a piece for every rank at a time, so that all have
something to read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matchwood.engines.ranks import checks
from matchwood.engines.ranks.checks import Counts
from matchwood.engines.ranks.faults import difference
from matchwood.engines.ranks.networks.headers import NUMBERS, described, header
from matchwood.engines.ranks.networks.polled import Polled
from matchwood.engines.ranks.networks.shared.board import (
    ALIGNED,
    LOOKS,
    Board,
    open_board,
    room_for,
)
from matchwood.engines.ranks.networks.shared.cpu_copies import copy
from matchwood.engines.ranks.protocol import Communicator
from matchwood.errors import RankFailed

EXCHANGED_BYTES = 1 << 20  # of a row that an exchange uses: graphs are made of large ones, and
# what was used stays in memory; larger steps gain nothing
READ_BY_ALL_BYTES = 1 << 16  # of all ranks: so few are reduced by each, without another meeting

CALLS = ("barrier", "lengths", "gather", "gatherv", "exchange", "reduce_scatter", "allreduce",
         "broadcast", "more")  # fmt: skip
CODES = {name: code for code, name in enumerate(CALLS)}
CODE_BITS = 4

Array = np.ndarray[Any, Any]


class Shared(Communicator):
    """A rank whose communicator `base` has all its ranks on one host.

    That carries arrays of GPUs, notices and splits, and waits.
    """

    shared_memory = True

    def __init__(self, base: Polled, board: Board) -> None:
        super().__init__(base.rank, base.size, base.threads, base.session, base.traffic)
        self.base = base
        self.kind = base.kind
        self.cuda_aware = getattr(base, "cuda_aware", None)
        self._board = board
        self._lent: Array | None = None
        self._exchanged = min(EXCHANGED_BYTES, board.room)
        self._read_by_all = min(READ_BY_ALL_BYTES // base.size, board.room)

    # Meetings

    def _begin(self, call: str, nbytes: int) -> Array:
        """The head of this rank in a meeting that begins; word 0 must be the same on all."""
        if self._lent is None:
            self._board.begin()
        self._lent = None
        head: Array = self._board.heads[self.rank]
        head[0] = CODES[call] | nbytes << CODE_BITS
        return head

    def _meet(self) -> None:
        looks = 0 if self.session.crowded else LOOKS
        if not self._board.meet(looks, self.base.wait_until):
            raise self._differing()

    def _differing(self) -> RankFailed:
        """The failure that names who called something else; the same on all ranks."""
        calls = [
            (CALLS[word & (1 << CODE_BITS) - 1], f"{word >> CODE_BITS} bytes")
            for word in self._board.heads[:, 0].tolist()
        ]
        found = difference(calls)
        assert found is not None
        return RankFailed(self.base.members[found[0]], "ValueError", found[1])

    def _write(self, array: Array, at: int = 0) -> None:
        """The array into the row of this rank, `at` bytes from its beginning."""
        copy(self.threads, array, self._board.rows[self.rank, at : at + array.nbytes])

    def wait_until(self, done: Callable[[], Any]) -> None:
        """As `Polled.wait_until`."""
        self.base.wait_until(done)

    def scratch(self, size: int, dtype: Any) -> Any:
        nbytes = size * np.dtype(dtype).itemsize
        if nbytes > self._board.room:
            return super().scratch(size, dtype)
        if self._lent is None:
            self._board.begin()
        self._lent = self._board.rows[self.rank, :nbytes].view(dtype)
        return self._lent

    # What protocol.py asks for

    def raw_compare(self, operation: str, *details: Any) -> None:
        self.base.raw_compare(operation, *details)

    def raw_barrier(self) -> None:
        self._begin("barrier", 0)
        self._meet()

    def raw_lengths(self, length: int) -> Counts:
        self._begin("lengths", 0)[1] = length
        self._meet()
        return self._board.heads[:, 1].copy()

    def raw_bytes(self, text: bytes) -> Sequence[bytes]:
        joined, counts = self.raw_allgatherv(np.frombuffer(text, np.uint8))
        whole, ends = joined.tobytes(), np.cumsum(counts).tolist()
        return [whole[lo:hi] for lo, hi in zip([0, *ends], ends, strict=False)]

    def raw_allgather(self, array: Any, borrowed: bool = False) -> Any:
        if type(array) is not np.ndarray or array.nbytes > self._board.room:
            return super().raw_allgather(array, borrowed)
        return self._joined(array, self.rank * array.nbytes, self.size * array.nbytes, borrowed)

    def raw_gather(self, array: Any, counts: Counts) -> Any:
        if type(array) is not np.ndarray:
            return self.base.raw_gather(array, counts)
        item, total = array.itemsize, int(counts.sum())
        if total * item <= self._board.whole.size:
            return self._joined(array, int(counts[: self.rank].sum()) * item, total * item)
        result = np.empty(total, array.dtype)
        for lo, hi in self._pieces(int(counts.max()), item):
            self._begin("more", item)
            self._write(array[lo:hi])
            self._meet()
            self._read_all(result, counts, lo, hi)
        return result

    def _joined(self, array: Array, at: int, nbytes: int, borrowed: bool = False) -> Array:
        """Arrays that all write to where they belong; `nbytes` of all ranks."""
        self._begin("gather", nbytes)
        copy(self.threads, array, self._board.whole[at : at + array.nbytes])
        self._meet()
        found: Array = self._board.whole[:nbytes].view(array.dtype)
        if borrowed:
            return found
        result = np.empty_like(found)
        copy(self.threads, found, result.view(np.uint8))
        return result

    def _pieces(self, longest: int, itemsize: int) -> list[tuple[int, int]]:
        """Ranges of elements that fit into a row."""
        piece = self._board.room // itemsize
        return [(lo, lo + piece) for lo in range(0, longest, piece)]

    def _read_all(self, result: Array, counts: Counts, lo: int, hi: int) -> None:
        """Elements lo to hi of all ranks, to where they belong."""
        rows, item = self._board.rows, result.itemsize
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
        if array.nbytes <= self._board.room:
            self._write(array)
        self._meet()
        counts: Counts = self._board.heads[:, 1].copy()
        longest = int(counts.max())
        if longest * array.itemsize > self._board.room:
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
        table = self._board.heads[:, 1 : self.size + 2].copy()
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
        rows, item, into, place = self._board.rows, result.itemsize, result.view(np.uint8), 0
        for rank, (lo, hi) in enumerate(zip(begins.tolist(), stops.tolist(), strict=True)):
            if hi > lo:
                nbytes = (hi - lo) * item
                into[place : place + nbytes] = rows[rank, lo * item : hi * item]
                place += nbytes

    def _exchange_in_steps(
        self, array: Array, ends: list[int], result: Array, receives: Counts, longest: int
    ) -> None:
        """A piece of every run at a time; `ends` are those of the runs that this rank sends."""
        slot, item, into = self._slot(self._exchanged), array.itemsize, result.view(np.uint8)
        piece, at = slot // item, self.rank * slot
        for lo in range(0, longest, piece):
            self._show_pieces(array, ends, lo, slot)
            place = 0
            for rank, length in enumerate(receives.tolist()):
                nbytes = (min(lo + piece, length) - lo) * item
                if nbytes > 0:
                    start = place + lo * item
                    row = self._board.rows[rank, at : at + nbytes]
                    into[start : start + nbytes] = row
                place += length * item

    def _slot(self, nbytes: int) -> int:
        """Bytes for each rank of so many in a row."""
        return nbytes // self.size // ALIGNED * ALIGNED

    def _show_pieces(self, array: Array, ends: list[int], lo: int, slot: int) -> None:
        """Elements from `lo` on of the run for each rank, into the slots of this rank's row."""
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
        if array.nbytes <= self._board.room:
            lent = array is self._lent
            self._begin("reduce_scatter", array.nbytes)
            if not lent:
                self._write(array)
            self._meet()
            self._reduce(result, begin * item, op)
            return result
        slot = self._slot(self._board.room)
        piece = slot // item
        for lo in range(0, int(counts.max()), piece):
            self._show_pieces(array, ends, lo, slot)
            self._reduce(result[lo : lo + piece], self.rank * slot, op)
        return result

    def _reduce(self, result: Array, at: int, op: str) -> None:
        """What all rows hold from byte `at` on, reduced in the order of the ranks."""
        if result.size:
            parts = self._board.rows[:, at : at + result.nbytes].view(result.dtype)
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
        mine, room = self.rank == root, self._board.room
        head = self._begin("broadcast", root)
        host = mine and type(array) is np.ndarray
        if mine:
            head[1 : NUMBERS + 1] = header(array)
        if host and array.nbytes <= room:
            self._write(array.reshape(-1))
        self._meet()
        on_gpu, dtype, shape = described(self._board.heads[root, 1 : NUMBERS + 1])
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
            into.view(np.uint8)[:] = self._board.rows[root, : into.nbytes]

    def raw_split(self, color: int | None, ranks: Sequence[int]) -> Communicator | None:
        return self.base.raw_split(color, ranks)

    def raw_close(self) -> None:
        self.base.raw_close()

    def raw_fail(self, error: BaseException) -> None:
        self.base.raw_fail(error)


def among_neighbours(base: Polled) -> Communicator:
    """`base`, or a communicator beside it where its ranks are on one host and can share memory.

    All ranks of it call this.
    """
    hosts, room = base.session.hosts, room_for(base.size)
    if base.size == 1 or room == 0 or len({hosts[rank] for rank in base.members}) != 1:
        return base
    board = open_board(base, room)
    return base if board is None else Shared(base, board)
