"""One partition on a CUDA device: its arrays, copies and launches.  Kernels: gpu.cu.

Rows come by beyond/sending.py.  The host only queues; it waits where it must know a number, once or
twice a round.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.beyond.pinned import mapped
from matchwood.beyond.plan import Batch, cut_rows
from matchwood.beyond.sending import Sender
from matchwood.beyond.streams import Lane
from matchwood.matching.dominant.devices.rounds import Problem, staged_pairs
from matchwood.primitives.wide_sums import total

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "list_rooms<P>",
        "pack_rows<I,P,W>",
        "clear_lists<I>",
        "queue_own<I>",
        "point_next<I,P>",
        "settle_mutual<I>",
        "requeue_own<I>",
        "settle_rounds<I,P>",
        "write_pairs<I>",
        "read_pairs<I>",
        "begin_state<I>",
        "add_weights<I,P,W>",
        "finish_state<I>",
    ),
    types={"P": (np.int32, np.int64)},
)
POINTED, WANTED, QUEUED, MATCHED, TOO_LONG, ROUNDS, ALL_POINTED, LEFT, CONTROL_WORDS = (
    SOURCE.constants(
        "POINTED", "WANTED", "QUEUED", "MATCHED", "TOO_LONG", "ROUNDS", "ALL_POINTED", "LEFT",
        "CONTROL_WORDS",
    )
)  # fmt: skip
ROUND_BLOCK = SOURCE.constant("ROUND_BLOCK")
SUM_BLOCKS = 64  # blocks that add up the weight; their sums are part of the fixed memory
PACK_THREADS = 1 << 20  # of pack_rows at most; a warp takes one row after the other
ROUNDS_PER_LAUNCH = 4096  # some 50 ms; Ctrl-C works between launches


class Worker:
    """One partition: its arrays on the device and the steps on them."""

    def __init__(self, problem: Problem, p: int, ledger: Any, lane: Lane, pinned: Any) -> None:
        plan, view, kind = problem.plan, problem.view, problem.kind
        self._problem, self.ledger, self.lane = problem, ledger, lane
        self._part, self._buffer = plan.partitions[p], plan.buffer[p]
        self._kernels = SOURCE.kernels(I=kind, P=view.indptr.dtype, W=view.data.dtype)
        self.goes_on = False
        self.words = np.zeros(CONTROL_WORDS, np.uint64)
        self.staged_pairs: int | None = 0
        take, vertices = ledger.take, self._part.vertices
        self.state, self._waiting = take(view.n, kind), take(view.n, kind)
        self._following = take(vertices, kind)
        self._queue, self._pointed = take(vertices, kind), take(vertices, kind)
        self._start = take(vertices + 1, view.indptr.dtype)
        self._size, self._head = take(vertices, np.uint8), take(vertices, np.uint8)
        self._columns = take(plan.listed[p], kind)
        self._weights = take(plan.listed[p], view.data.dtype)
        self._control = take(CONTROL_WORDS, np.uint64)
        self._barrier = take(2, np.uint32)
        several = len(plan.partitions) > 1
        self.staged: Any = take(2 * staged_pairs(view.n), kind) if several else None
        buffers = [self._new_buffer() for _ in range(plan.buffers[p])]
        self.sender = Sender(lane, pinned, problem.threads, buffers)
        self._begin()

    def _new_buffer(self) -> Any:
        view, take = self._problem.view, self.ledger.take
        return SimpleNamespace(
            ids=take(self._buffer.rows, self._problem.kind),
            places=take(2 * self._buffer.rows + 1, view.indptr.dtype),
            columns=take(self._buffer.entries, self._problem.kind),
            weights=take(self._buffer.entries, view.data.dtype),
            free=None,  # comes when the kernel that read it has ended
        )

    def _begin(self) -> None:
        k, n, vertices = self._kernels, self._problem.view.n, self._part.vertices
        k.begin_state(n, (n, self.state))
        for array, byte in (
            (self._waiting, 0xFF), (self._size, 0), (self._head, 0), (self._control, 0),
            (self._barrier, 0), (self._start, 0),
        ):  # fmt: skip
            array.data.memset_async(byte, array.nbytes)
        offsets = self._problem.view.indptr[self._part.lo : self._part.hi + 1]
        begun = self.lane.event(self.lane.kernels)
        self.lane.copies.wait_event(begun)
        for first in range(0, vertices, max(1, self._buffer.rows)):
            rows = min(self._buffer.rows, vertices - first)
            buffer = self.sender.next_buffer()
            there = buffer.places[: rows + 1]
            self.sender.send(there, offsets[first : first + rows + 1])
            with self.sender.reading(buffer):
                rooms = self._start[1 + first : 1 + first + rows]
                k.list_rooms(rows, (rows, there, self._problem.plan.length, rooms))
        if vertices:
            engines.cupy().cumsum(self._start, out=self._start)

    # Copies

    def _pack(self, rows: int, ids: Any, base: int, begins: Any, ends: Any, first: int, last: int,
              columns: Any, weights: Any, only_free: bool) -> None:  # fmt: skip
        threads = min(32 * rows, PACK_THREADS)
        self._kernels.pack_rows(
            threads,
            (
                rows, ids, base, begins, ends, first, last, columns, weights, only_free,
                self.state, self._part.lo, self._start, self._size, self._columns, self._weights,
                self._problem.seed, self._problem.by_hash,
            ),
        )  # fmt: skip

    def stream(self, batch: Batch, only_free: bool) -> None:
        """A batch travels, and its rows are packed."""
        view, entries, rows = self._problem.view, batch.last - batch.first, batch.hi - batch.lo
        with self.lane.here():
            buffer = self.sender.next_buffer()
            places = buffer.places[: rows + 1]
            with self.lane.phase("transfer", self.lane.copies):
                self.sender.send(places, view.indptr[batch.lo : batch.hi + 1])
                self.sender.send(buffer.columns[:entries], view.indices[batch.first : batch.last])
                self.sender.send(buffer.weights[:entries], view.data[batch.first : batch.last])
            self.sender.round.entries += entries
            with self.sender.reading(buffer), self.lane.phase("pointing"):
                self._pack(rows, None, batch.lo, places[:-1], places[1:], batch.first, batch.last,
                           buffer.columns, buffer.weights, only_free)  # fmt: skip

    # Steps

    def _read_control(self) -> None:
        self.lane.wait()
        self.words = self._control.get(stream=self.lane.kernels)

    def queue_all(self) -> None:
        self._queue_own(False)

    def queue_free(self) -> None:
        self._queue_own(True)

    def _queue_own(self, only_free: bool) -> None:
        with self.lane.here():
            self._control.data.memset_async(0, self._control.nbytes)
            lo, hi = self._part.lo, self._part.hi
            arguments = (lo, hi, only_free, self.state, self._queue, self._control)
            self._kernels.queue_own(hi - lo, arguments)
            self._read_control()

    def point(self) -> None:
        """The vertices of the queue point.  Not after `run_on`, which has done that."""
        if self.goes_on:
            return
        with self.lane.here(), self.lane.phase("pointing"):
            self._control.data.memset_async(0, self._control.nbytes)
            self._point(self._queue, int(self.words[QUEUED]))

    def _point(self, source: Any, count: int) -> None:
        n, part = self._problem.view.n, self._part
        self._kernels.point_next(
            count,
            (
                n, part.lo, part.hi, self.state, self._waiting, self._following, self._start,
                self._size, self._head, self._columns, source, count, self._pointed, self._control,
            ),
        )  # fmt: skip

    def fetch(self) -> None:
        """Rows whose lists have run out travel; their new lists have free neighbours alone."""
        with self.lane.here():
            self._read_control()
            count = int(self.words[WANTED])
            if count == 0:
                return
            back = self._pointed[self._part.vertices - count :]
            with self.lane.phase("pointing"):
                self._kernels.clear_lists(
                    count, (count, back, self._part.lo, self._size, self._head)
                )
                self._queue[:count] = back  # `pointed` grows from its front
            wanted = np.sort(back.get(stream=self.lane.kernels))
            self.sender.round.rows += count
            self.sender.round.bytes_down += wanted.nbytes
            self._fetch_rows(wanted)
            with self.lane.phase("pointing"):
                self._control[WANTED] = 0
                self._point(self._queue, count)
            self._read_control()

    def _fetch_rows(self, wanted: Any) -> None:
        view = self._problem.view
        begin = view.indptr[wanted].astype(np.int64)
        length = view.indptr[wanted.astype(np.int64) + 1] - begin
        self.sender.round.entries += int(length.sum())
        same = view.indices.dtype == self._problem.kind
        if same and self.sender.pinned.holds(view.indices) and self.sender.pinned.holds(view.data):
            for first in range(0, wanted.size, self._buffer.rows):
                some = slice(first, first + self._buffer.rows)
                self._read_from_host(wanted[some], begin[some], begin[some] + length[some])
            return
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
        for row, stop, first, last in cut_rows(offsets, self._buffer):
            cut = np.clip(offsets[row : stop + 1], first, last)
            starts = begin[row:stop] + np.maximum(first - offsets[row:stop], 0)
            self._gather(
                wanted[row:stop], starts, offsets[row : stop + 1], np.diff(cut), first, last
            )

    def _read_from_host(self, ids: Any, begins: Any, ends: Any) -> None:
        """The kernel reads the rows where they are registered."""
        view, rows, buffer = self._problem.view, ids.size, self.sender.next_buffer()
        kind = view.indptr.dtype
        self.sender.send(buffer.ids[:rows], ids)
        there = buffer.places[:rows], buffer.places[rows : 2 * rows]
        for target, source in zip(there, (begins, ends), strict=True):
            self.sender.send(target, source.astype(kind))
        each = view.indices.dtype.itemsize + view.data.dtype.itemsize
        self.sender.round.bytes_up += int((ends - begins).sum()) * each
        with self.sender.reading(buffer), self.lane.phase("transfer"):
            self._pack(rows, buffer.ids, 0, *there, 0, view.nnz,
                       mapped(view.indices), mapped(view.data), True)  # fmt: skip

    def _gather(
        self, ids: Any, starts: Any, offsets: Any, length: Any, first: int, last: int
    ) -> None:
        """Rows, or parts of them, are gathered into pinned memory, and travel through a buffer."""
        view, rows, entries, buffer = (
            self._problem.view,
            ids.size,
            last - first,
            self.sender.next_buffer(),
        )
        self.sender.send(buffer.ids[:rows], ids)
        places = buffer.places[: rows + 1]
        self.sender.send(places, offsets.astype(view.indptr.dtype))
        with self.lane.phase("transfer", self.lane.copies):
            self.sender.gather(buffer.columns[:entries], view.indices, starts, length)
            self.sender.gather(buffer.weights[:entries], view.data, starts, length)
        with self.sender.reading(buffer), self.lane.phase("pointing"):
            self._pack(rows, buffer.ids, 0, places[:-1], places[1:], first, last,
                       buffer.columns, buffer.weights, True)  # fmt: skip

    def forget_lists(self) -> None:
        """For rounds in which all rows pass again."""
        with self.lane.here():
            for array, byte in ((self._size, 0), (self._head, 0), (self._waiting, 0xFF)):
                array.data.memset_async(byte, array.nbytes)

    def write_pairs(self, begin: int, size: int, table: Any) -> None:
        """(vertex, pointer) of vertices that have changed, for other devices."""
        with self.lane.here():
            self._kernels.write_pairs(size, (size, self._pointed[begin:], self.state, table))

    def read_pairs(self, size: int, table: Any) -> None:
        """Take the pointers of vertices of another partition."""
        with self.lane.here():
            self._kernels.read_pairs(size, (size, table, self.state))

    def settle(self, everyone: bool) -> None:
        """Match those that point at each other; their neighbours here are the next queue."""
        n, pointed = self._problem.view.n, int(self.words[POINTED])
        source, count, step = self._pointed, pointed, 1
        if self.staged is not None:
            source, count, step = self.staged, self.staged_pairs or 0, 2
            everyone = everyone or self.staged_pairs is None
        if everyone:
            source, count, step = None, n, 1
        walk = not everyone and count <= n // 8
        part = (n, self._part.lo, self._part.hi, self.state)
        with self.lane.here(), self.lane.phase("matching"):
            chains = (self._waiting, self._following)
            self._kernels.settle_mutual(
                count, (*part, *chains, source, count, step, walk, self._queue, self._control)
            )
            self._read_control()
            if not walk or self.words[TOO_LONG]:
                self._control[QUEUED] = 0
                self._kernels.requeue_own(self._part.vertices, (*part, self._queue, self._control))
                self._read_control()

    def run_on(self) -> int:
        """Rounds of the only partition in one launch, until a row is needed."""
        k, n = self._kernels, self._problem.view.n
        arguments = (
            n, self.state, self._waiting, self._following, self._start, self._size, self._head,
            self._columns, self._queue, self._pointed, self._control, self._barrier,
        )  # fmt: skip
        words = np.zeros(CONTROL_WORDS, np.uint64)
        words[POINTED], words[LEFT] = self.words[POINTED], ROUNDS_PER_LAUNCH
        with self.lane.here():
            self._control.set(words, stream=self.lane.kernels)
            threads = max(ROUND_BLOCK, int(words[POINTED]))
            k.settle_rounds(threads, arguments, block=ROUND_BLOCK, cooperative=True)
            self._read_control()
        return int(self.words[ROUNDS])

    # The ends

    def weight(self) -> float:
        """Twice the weight of the edges that this partition sees one end of."""
        with self.lane.here():
            sums = engines.cupy().empty(SUM_BLOCKS, np.float64)
            vertices, lists = self._part.vertices, (self._start, self._head, self._weights)
            self._kernels.add_weights(
                None, (vertices, self._part.lo, self.state, *lists, sums), grid=SUM_BLOCKS
            )
            self.lane.wait()
            return total(sums.get(stream=self.lane.kernels))

    def mates(self) -> Any:
        """The mates of all vertices, on the host."""
        n = self._problem.view.n
        with self.lane.here():
            self._kernels.finish_state(n, (n, self.state))
            self.lane.wait()
            return self.state.get(stream=self.lane.kernels)
