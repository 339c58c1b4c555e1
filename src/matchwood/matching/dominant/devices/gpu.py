"""The steps of a round on CUDA devices, for one partition and for all.  Kernels: gpu.cu.

Rows are sent by engines/devices/sending.py.  The host only queues work; it waits where it needs a
count, once or twice a round.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.engines.devices import cpu as cpu_copies
from matchwood.engines.devices.pinned import mapped, rings_of
from matchwood.engines.devices.plan import Batch, cut_pieces, cut_rows
from matchwood.engines.devices.sending import Counters, Lane, Sender
from matchwood.engines.devices.stats import Stats
from matchwood.engines.devices.workers import DeviceWorkers, as_pairs, words_received
from matchwood.matching.dominant.devices import Problem, staged_pairs
from matchwood.primitives.wide_sums import total

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "list_rooms<P>", "pack_rows<I,P,W>", "list_wanted<I>", "take_wanted<I>", "queue_own<I>",
        "point_first<I,P>", "point_on<I,P>", "point_next<I,P>", "settle_mutual<I>",
        "requeue_own<I>", "settle_rounds<I,P,W>", "write_pairs<I>", "read_pairs<I>",
        "begin_state<I>", "add_weights<I,P,W>", "finish_state<I>",
    ),
    types={"P": (np.int32, np.int64)},
)  # fmt: skip
POINTED, WANTED, QUEUED, MATCHED, TOO_LONG = SOURCE.constants(
    "POINTED", "WANTED", "QUEUED", "MATCHED", "TOO_LONG"
)
ROUNDS, ALL_POINTED, LEFT, FETCHED, CHAINED, ROWS_READ, SETTLED, CONTROL_WORDS = SOURCE.constants(
    "ROUNDS", "ALL_POINTED", "LEFT", "FETCHED", "CHAINED", "ROWS_READ", "SETTLED", "CONTROL_WORDS"
)
WALK_PART, WORTH_ORDER, PACK_BLOCK = SOURCE.constants("WALK_PART", "WORTH_ORDER", "PACK_BLOCK")
SUM_BLOCKS = 512  # blocks that add up the weight; their sums are part of the fixed memory
PACK_THREADS = 1 << 20  # threads of pack_rows at most; a warp takes one row after the other
PIECE_ENTRIES = 1 << 23  # entries of a batch sent at once: 1.2 ms on a bus of 55 GB/s
LAST_PIECES = 4  # the pieces of the last batch are smaller by this factor
ROUNDS_PER_LAUNCH = 4096  # some 50 ms; Ctrl-C works between launches


# Memory through which the rows of a partition pass, or in which they stay


def new_buffer(problem: Problem, p: int, ledger: Any) -> Any:
    view, kind, take = problem.view, problem.kind, ledger.take
    room = problem.plan.buffer[p]
    return SimpleNamespace(
        ids=take(room.rows, kind),
        places=take(2 * room.rows + 1, view.indptr.dtype),
        columns=take(room.entries, kind),
        weights=take(room.entries, view.data.dtype),
        free=None,  # an event: the kernel that read the buffer has ended
        filled=False,  # whether a completed call has left all rows of the partition in it
        nbytes=room.entries * (kind.itemsize + view.data.dtype.itemsize),
    )


def kept_rows(problem: Problem, p: int, ledger: Any, device: int) -> Any:
    """The buffer in which all rows of the partition stay; a prepared Graph keeps it."""
    key = (device, p, len(problem.plan.partitions))
    found = problem.rows.get(key)
    if found is None:
        return problem.rows.setdefault(key, new_buffer(problem, p, ledger))
    for array in (found.ids, found.places, found.columns, found.weights):
        ledger.hold(array)
    return found


class Worker:
    """One partition: its arrays on the device and the steps on them."""

    def __init__(self, problem: Problem, p: int, ledger: Any, lane: Lane, pinned: Any) -> None:
        plan, view, kind = problem.plan, problem.view, problem.kind
        self._problem, self.ledger, self.lane = problem, ledger, lane
        self._p, self._part, self._buffer = p, plan.partitions[p], plan.buffer[p]
        self._kernels = SOURCE.kernels(I=kind, P=view.indptr.dtype, W=view.data.dtype)
        self.goes_on = self._walked = False
        self.settles_early = False  # while rows pass
        self._looked_at = 0  # entries that had passed when all vertices were looked at
        self._places_kept = False  # where rows begin is in `following`, until vertices wait there
        self.words = np.zeros(CONTROL_WORDS, np.uint64)
        self.staged_pairs: int | None = 0
        take, vertices = ledger.take, self._part.vertices
        self.state, self._waiting = take(view.n, kind), take(view.n, kind)
        self._following = take(vertices + 1, kind)
        self._queue, self._pointed = take(vertices, kind), take(vertices, kind)
        self._start = take(vertices + 1, view.indptr.dtype)
        self._size, self._head = take(vertices, np.uint8), take(vertices, np.uint8)
        self._columns = take(plan.listed[p], kind)
        self._weights = take(plan.listed[p], view.data.dtype)
        self._counters = Counters(lane, take(CONTROL_WORDS, np.uint64))
        self._control = self._counters.there
        self._barrier = take(2, np.uint32)
        several = len(plan.partitions) > 1
        self.staged: Any = take(2 * staged_pairs(view.n), kind) if several else None
        self.table = self.staged  # where the pairs of the last exchange are
        self._resident = kept_rows(problem, p, ledger, lane.number) if plan.resident else None
        buffers = (
            [new_buffer(problem, p, ledger) for _ in range(plan.buffers[p])]
            if self._resident is None
            else [self._resident]
        )
        self._roomed = self._part.lo  # the first vertex whose list has no place yet
        self._pointing = self._part.lo  # the first vertex that has not pointed while rows pass
        rings = rings_of(problem.keep)
        self.sender = Sender(lane, pinned, rings, problem.threads, buffers)
        self._begin()

    def _begin(self) -> None:
        n = self._problem.view.n
        self._kernels.begin_state(n, (n, self.state))
        for array, byte in (
            (self._waiting, 0xFF), (self._size, 0), (self._head, 0), (self._control, 0),
            (self._barrier, 0), (self._start, 0),
        ):  # fmt: skip
            array.data.memset_async(byte, array.nbytes)

    def _make_room(self, lo: int, hi: int, places: Any) -> None:
        """Set where the lists of rows up to hi - 1 begin; `places` is where rows from lo begin."""
        first, part = max(lo, self._roomed), self._part
        if first >= hi:
            return
        rooms = self._start[1 + first - part.lo : 1 + hi - part.lo]
        arguments = (hi - first, places[first - lo :], self._problem.plan.length, rooms)
        self._kernels.list_rooms(hi - first, arguments)
        sums = self._start[self._roomed - part.lo : 1 + hi - part.lo]
        engines.cupy().cumsum(sums, out=sums)
        self._roomed = hi

    def _pack(self, rows: int, ids: Any, base: int, begins: Any, ends: Any, first: int, last: int,
              columns: Any, weights: Any, only_free: bool,
              by_vertex: bool = False) -> None:  # fmt: skip
        threads = min(32 * rows, PACK_THREADS)
        self._kernels.pack_rows(
            threads,
            (
                rows, ids, base, begins, ends, first, last, columns, weights, only_free,
                by_vertex, self.state, self._part.lo, self._start, self._size, self._columns,
                self._weights, self._problem.seed, self._problem.by_hash, self._control,
            ),
            block=PACK_BLOCK,
        )  # fmt: skip

    def settle_early(self) -> None:
        """From now on vertices are matched while rows pass; `run_on` goes on from there."""
        self.settles_early = True
        same = self._following.dtype == self._problem.view.indptr.dtype
        self._places_kept = same and self._resident is None
        words = np.zeros(CONTROL_WORDS, np.uint64)
        words[SETTLED], words[LEFT] = 1, ROUNDS_PER_LAUNCH
        with self.lane.here():
            self._control.set(words, stream=self.lane.kernels)

    def foresee(self, batches: list[Batch]) -> None:
        """Announce the batches to be sent, so that host threads can prepare copies ahead."""
        view, sends, resident = self._problem.view, [], self._resident
        there = resident is not None and resident.filled
        if there or not self.sender.pinned.reason or view.indices.dtype != self._problem.kind:
            return
        for batch in batches:
            sends.append([view.indptr[batch.lo : batch.hi + 1]])
            for piece in self._pieces(batch):
                here = slice(piece.first, piece.last)
                sends.append([view.indices[here], view.data[here]])
        partitions = len(self._problem.plan.partitions)
        self.sender.foresee(sends, cpu_copies.fill_threads(self._problem.threads, partitions))

    def _pieces(self, batch: Batch) -> list[Batch]:
        entries = PIECE_ENTRIES
        if batch.last == self._part.last:  # nothing travels while the last piece is packed
            entries = PIECE_ENTRIES // LAST_PIECES
        return cut_pieces(self._problem.view.indptr, batch, entries)

    def stream(self, batch: Batch, only_free: bool) -> None:
        """A batch travels in pieces, and their rows are packed while the next piece travels."""
        view, rows = self._problem.view, batch.hi - batch.lo
        with self.lane.here():
            buffer = self.sender.next_buffer()
            places, travels = buffer.places[: rows + 1], not buffer.filled
            if travels:
                with self.lane.phase("transfer", self.lane.copies):
                    self.sender.send((places, view.indptr[batch.lo : batch.hi + 1]))
            for piece in self._pieces(batch) if travels else [batch]:
                there = slice(piece.first - batch.first, piece.last - batch.first)
                columns, weights = buffer.columns[there], buffer.weights[there]
                if travels:
                    here = slice(piece.first, piece.last)
                    with self.lane.phase("transfer", self.lane.copies):
                        self.sender.send((columns, view.indices[here]), (weights, view.data[here]))
                    self.sender.round.entries += piece.last - piece.first
                with self.sender.reading(buffer), self.lane.phase("pointing"):
                    if self._places_kept and piece.first == batch.first:
                        kept = self._following[batch.lo : batch.hi + 1]
                        kept.data.copy_from_device_async(places.data, places.nbytes)
                    self._make_room(batch.lo, batch.hi, places)
                    own = places[piece.lo - batch.lo : piece.hi - batch.lo + 1]
                    self._pack(piece.hi - piece.lo, None, piece.lo, own[:-1], own[1:], piece.first,
                               piece.last, columns, weights, only_free)  # fmt: skip
                    if self.settles_early:
                        self._settle_early(piece)

    def _settle_early(self, piece: Batch) -> None:
        """While rows pass: vertices of the piece, at times others, point and are matched."""
        first = self._pointing
        cut = int(self._problem.view.indptr[piece.hi]) > piece.last  # its last row goes on
        last = self._pointing = piece.hi - cut
        if first >= last:
            return
        lo, hi, lists = self._part.lo, self._part.hi, (self._start, self._size)
        self._kernels.point_first(
            last - first, (first, last, lo, *lists, self._columns, self.state, self._control)
        )
        self._settle_range(first, last)
        if piece.last - self._looked_at < PIECE_ENTRIES:
            return
        self._looked_at = piece.last
        self._kernels.point_on(
            last - lo,
            (lo, hi, last, self.state, *lists, self._head, self._columns, self._pointed,
             self._control),
        )  # fmt: skip
        self._settle_range(lo, last)

    def _settle_range(self, first: int, last: int) -> None:
        n, part = self._problem.view.n, self._part
        chains = (self._waiting, self._following, None, first, last - first, 1, False)
        arguments = (n, part.lo, part.hi, self.state, *chains, self._queue, self._control)
        self._kernels.settle_mutual(last - first, arguments)

    def _read_control(self) -> None:
        self._counters.ask()
        self.words = self._counters.told()

    def queue_own(self, only_free: bool) -> None:
        """Queue the vertices of the partition, or its free ones, to point next."""
        with self.lane.here():
            self._counters.clear()
            lo, hi = self._part.lo, self._part.hi
            arguments = (lo, hi, only_free, self.state, self._queue, self._control)
            self._kernels.queue_own(hi - lo, arguments)
            if only_free:
                self._read_control()
            else:
                self.words[QUEUED] = hi - lo

    def point(self) -> None:
        """The vertices of the queue point.  Not after `run_on`, which has done that."""
        if self.goes_on:
            return
        with self.lane.here(), self.lane.phase("pointing"):
            self._counters.clear()
            self._point(self._queue, int(self.words[QUEUED]))
            self._counters.ask()

    def _point(self, source: Any, count: int, chained: bool = True) -> None:
        n, part = self._problem.view.n, self._part
        self._kernels.point_next(
            count,
            (
                n, part.lo, part.hi, self.state, self._waiting, self._following, self._start,
                self._size, self._head, self._columns, source, count, chained, self._pointed,
                self._control,
            ),
        )  # fmt: skip

    def fetch(self) -> None:
        """Send again the rows whose lists have run out; new lists hold free neighbours only."""
        with self.lane.here():
            if not self.goes_on:
                self.words = self._counters.told()
            count = int(self.words[WANTED])
            if count == 0:
                return
            self._list_wanted(count)
            self.sender.round.rows += count
            self._fetch_rows(count)
            with self.lane.phase("pointing"):
                self._counters.clear(WANTED)
                self._point(self._queue, count, bool(self.words[CHAINED]) or not self.goes_on)
            self._counters.ask()

    def fetched(self) -> None:
        """Read the counts of `fetch`, which is queued for all partitions by now."""
        if self.words[WANTED]:
            self.words = self._counters.told()
            self._count_fetched(int(self.words[FETCHED]))

    def _list_wanted(self, count: int) -> None:
        """List the vertices whose rows must travel at the front of the queue; empty their lists."""
        k, part, vertices = self._kernels, self._part, self._part.vertices
        lists = (self._size, self._head, self._queue)
        with self.lane.phase("pointing"):
            if count >= WORTH_ORDER:
                k.list_wanted(vertices, (part.lo, part.hi, self.state, *lists, self._control))
            else:
                k.take_wanted(count, (count, self._pointed[vertices - count :], part.lo, *lists))

    def _fetch_rows(self, count: int) -> None:
        """Send and pack the rows of the `count` vertices at the front of the queue."""
        rows = self._readable_rows()
        if rows is None:
            self._gather_rows(self._queue[:count].get(stream=self.lane.kernels))
            return
        with self.lane.phase("transfer" if self._resident is None else "pointing"):
            arguments = (count, self._queue, *rows, True, True)  # only free ones, by vertex
            self._pack(*arguments)

    def _readable_rows(self) -> Any:
        """The rows as kernels can read them directly; None where the host has to gather them.

        (first vertex, begins, ends, first entry, entry after the last, columns, weights)
        """
        view, part, kept = self._problem.view, self._part, self._resident
        if kept is not None:
            base, places = self._problem.plan.batches[self._p][0].lo, kept.places
            return base, places[:-1], places[1:], part.first, part.last, kept.columns, kept.weights
        pinned = self.sender.pinned
        if view.indices.dtype != self._problem.kind or not all(pinned.holds(one) for one in view):
            return None
        places = mapped(view.indptr)
        ends = places[1:]
        return 0, places[:-1], ends, 0, view.nnz, mapped(view.indices), mapped(view.data)

    def _count_fetched(self, entries: int) -> None:
        """Add entries that the kernel read by itself to the statistics."""
        if self._resident is None and entries:
            self.sender.round.entries += entries
            each = self._columns.itemsize + self._weights.itemsize
            self.sender.round.bytes_up += entries * each

    def _gather_rows(self, wanted: Any) -> None:
        view = self._problem.view
        begin, offsets = cpu_copies.find_rows(view.indptr, wanted, self._problem.threads)
        self.sender.round.entries += int(offsets[-1])
        self.sender.round.bytes_down += wanted.nbytes
        for row, stop, first, last in cut_rows(offsets, self._buffer):
            buffer = self.sender.next_buffer()
            self._gather(buffer, wanted[row:stop], begin[row:stop], offsets[row : stop + 1],
                         first, last)  # fmt: skip

    def _gather(
        self, buffer: Any, ids: Any, begin: Any, offsets: Any, first: int, last: int
    ) -> None:
        """Gather rows, or parts of them, in pinned memory, and send them through a buffer."""
        view, rows, entries = self._problem.view, ids.size, last - first
        places = buffer.places[: rows + 1]
        with self.lane.phase("transfer", self.lane.copies):
            self.sender.send((buffer.ids[:rows], ids), (places, offsets))
            self.sender.gather(
                begin, offsets, first,
                (buffer.columns[:entries], view.indices), (buffer.weights[:entries], view.data),
            )  # fmt: skip
        with self.sender.reading(buffer), self.lane.phase("pointing"):
            self._pack(rows, buffer.ids, 0, places[:-1], places[1:], first, last,
                       buffer.columns, buffer.weights, True)  # fmt: skip

    def forget_lists(self) -> None:
        """Empty all lists, before a round in which all rows pass again."""
        with self.lane.here():
            for array, byte in ((self._size, 0), (self._head, 0), (self._waiting, 0xFF)):
                array.data.memset_async(byte, array.nbytes)

    def write_pairs(self, begin: int, size: int, table: Any) -> None:
        """Write (vertex, pointer) of vertices that have changed, for other devices."""
        with self.lane.here():
            self._kernels.write_pairs(size, (size, self._pointed[begin:], self.state, table))

    def read_pairs(self, size: int, table: Any) -> None:
        with self.lane.here():
            self._kernels.read_pairs(size, (size, table, self.state))

    def expect_answer(self) -> None:
        """While the rows travel, the host makes room for the mates."""
        if not self._problem.stays:
            self.sender.expect(self.state)

    def settle(self, everyone: bool) -> None:
        """Match those that point at each other; their neighbours here are the next queue."""
        n, pointed = self._problem.view.n, int(self.words[POINTED])
        source, count, step = self._pointed, pointed, 1
        if self.staged is not None:
            source, count, step = self.table, self.staged_pairs or 0, 2
            everyone = everyone or self.staged_pairs is None
        if everyone:
            source, count, step = None, n, 1
        self._walked = not everyone and count <= n // WALK_PART
        with self.lane.here(), self.lane.phase("matching"):
            chains = (self._waiting, self._following, source, 0, count, step, self._walked)
            self._kernels.settle_mutual(
                count,
                (n, self._part.lo, self._part.hi, self.state, *chains, self._queue, self._control),
            )
            if not self._walked:
                self._requeue()
            self._counters.ask()

    def _requeue(self) -> None:
        n, part = self._problem.view.n, self._part
        self._counters.clear(QUEUED)
        arguments = (n, part.lo, part.hi, self.state, self._queue, self._control)
        self._kernels.requeue_own(part.vertices, arguments)

    def settled(self) -> None:
        """Read the counts of `settle`, which is queued for all partitions by now."""
        self.words = self._counters.told()
        if self._walked and self.words[TOO_LONG]:
            with self.lane.here(), self.lane.phase("matching"):
                self._requeue()
                self._read_control()

    def run_on(self) -> int:
        """Rounds of the only partition in one launch, until the host has to send rows."""
        problem, rows = self._problem, self._readable_rows()
        base, *where = (0, None, None, 0, 0, None, None) if rows is None else rows
        arguments = (
            problem.view.n, self.state, self._waiting, self._following, self._start, self._size,
            self._head, self._columns, self._weights, self._queue, self._pointed,
            self._places_kept, base, *where,
            problem.seed, problem.by_hash, self._control, self._barrier,
        )  # fmt: skip
        with self.lane.here():
            if self.goes_on:
                words = np.zeros(CONTROL_WORDS, np.uint64)
                words[POINTED], words[LEFT] = self.words[POINTED], ROUNDS_PER_LAUNCH
                words[CHAINED] = self.words[CHAINED]
                self._control.set(words, stream=self.lane.kernels)
            threads = max(PACK_BLOCK, problem.view.n)
            self._kernels.settle_rounds(threads, arguments, block=PACK_BLOCK, cooperative=True)
            self._read_control()
        self.sender.round.rows += int(self.words[ROWS_READ])
        self._count_fetched(int(self.words[FETCHED]))
        return int(self.words[ROUNDS])

    def add_weights(self) -> None:
        with self.lane.here():
            self._sums = engines.cupy().empty(SUM_BLOCKS, np.float64)
            vertices, lists = self._part.vertices, (self._start, self._head, self._weights)
            self._kernels.add_weights(
                None, (vertices, self._part.lo, self.state, *lists, self._sums), grid=SUM_BLOCKS
            )

    def weight(self) -> float:
        """The sum over own vertices of the weights of their matched edges, after `add_weights`."""
        with self.lane.here():
            self.lane.wait()
            if self._resident is not None:
                self._resident.filled = True
            return total(self._sums.get(stream=self.lane.kernels))

    def mates(self) -> Any:
        """The mates of all vertices, on the host; on the device where the graph is there."""
        n = self._problem.view.n
        with self.lane.here():
            self._kernels.finish_state(n, (n, self.state))
            if self._problem.stays:
                self.lane.wait()
                return self.state
            return self.sender.receive(self.state)


class Workers(DeviceWorkers):
    """The partitions of a call, one worker each."""

    def __init__(self, problem: Problem, machine: Any, stats: Stats) -> None:
        self._problem, devices, view = problem, machine.devices, problem.view
        self._finished = self._ran_on = False
        self.alone = devices.size == 1 and not devices.stats and devices.transport != "nccl"
        self._one_device = len(set(devices.devices)) == 1
        super().__init__(
            functools.partial(Worker, problem), machine, stats, "weighted_matching",
            () if problem.stays else (view.indptr, view.indices, view.data), problem.keep,
            "pinned weights",
        )  # fmt: skip
        if problem.stays:
            stats.pinned = "none"

    def end_round(self) -> None:
        if not self._ran_on:
            self._round.pointed += sum(int(worker.words[POINTED]) for worker in self.workers)
        super().end_round()

    def matched(self) -> int:
        """Edges matched in this round; every worker knows them all."""
        return int(self.workers[0].words[MATCHED])

    def any_queued(self) -> bool:
        return any(worker.words[QUEUED] for worker in self.workers)

    def run_on(self) -> int:
        """Run rounds until a row is needed; returns how many matched a vertex."""
        worker = self.workers[0]
        self._ran_on = True
        rounds = worker.run_on()
        self._round.pointed += int(worker.words[ALL_POINTED])
        self._finished = not worker.words[POINTED] and not worker.words[WANTED]
        worker.goes_on = not self._finished
        return rounds

    def finished(self) -> bool:
        """Whether `run_on` has completed the matching."""
        return self._finished

    def exchange(self, whole: bool) -> None:
        """Send the changed pointers of every device to the others."""
        if self._transport is None or (len(self.workers) == 1 and not whole):
            return
        vertices = [part.vertices for part in self._problem.plan.partitions]
        changed = vertices if whole else [int(one.words[POINTED]) for one in self.workers]
        with self._exchanging():
            if whole:
                self._share_words(range(len(self.workers)))
            else:
                self._share_changed(changed, vertices)
        self._round.words_exchanged += max(words_received(changed, vertices))

    def share_all(self) -> None:
        """Every device gets the words of all vertices of the others, changed or not."""
        if self._transport is None:
            return
        vertices = [part.vertices for part in self._problem.plan.partitions]
        with self._exchanging():
            self._share_words(range(len(self.workers)))
        self._round.words_exchanged += max(words_received(vertices, vertices))

    @contextlib.contextmanager
    def _exchanging(self) -> Iterator[None]:
        """Time what is queued within, on any device, as the exchange."""
        with contextlib.ExitStack() as stack:
            for worker in self.workers:
                stack.enter_context(worker.lane.phase("exchange"))
            yield

    def _share_words(self, senders: Any) -> None:
        for sender in senders:
            part = self._problem.plan.partitions[sender]
            slices = [worker.state[part.lo : part.hi] for worker in self.workers]
            self._transport.share(sender, slices)

    def _share_changed(self, changed: list[int], vertices: list[int]) -> None:
        """Exchange the pairs of all partitions in one table where they fit, else in pieces."""
        room, total = staged_pairs(self._problem.view.n), sum(changed)
        fits = total <= room
        for worker in self.workers:
            worker.staged_pairs = total if fits else None
            worker.table = worker.staged
        if fits and self._one_device:
            return self._share_table(changed)
        at = 0
        for sender, count in enumerate(changed):
            if not fits and not as_pairs(count, vertices[sender]):
                self._share_words([sender])
                continue
            for begin in range(0, count, room):
                size = min(room, count - begin)
                self._share_pairs(sender, begin, size, at if fits else 0)
                at += size
        return None

    def _share_table(self, changed: list[int]) -> None:
        """On one device all write into the table of the first partition, and all read that."""
        table, at, written = self.workers[0].staged, 0, {}
        for worker, count in zip(self.workers, changed, strict=True):
            worker.table = table
            if count:
                worker.write_pairs(0, count, table[2 * at : 2 * (at + count)])
                written[worker] = worker.lane.event(worker.lane.kernels)
            at += count
        for worker in self.workers:
            for other, event in written.items():
                if other is not worker:
                    worker.lane.kernels.wait_event(event)
            worker.read_pairs(at, table)

    def _share_pairs(self, sender: int, begin: int, size: int, at: int) -> None:
        tables = [worker.staged[2 * at : 2 * (at + size)] for worker in self.workers]
        self.workers[sender].write_pairs(begin, size, tables[sender])
        self._transport.share(sender, tables)
        for worker, table in zip(self.workers, tables, strict=True):
            if worker is not self.workers[sender]:
                worker.read_pairs(size, table)

    def result(self) -> tuple[Any, float]:
        """The mates of all vertices, on the host, and the weight of the matching."""
        for worker in self.workers:
            worker.add_weights()
        mates = self.workers[0].mates()
        return mates, sum(worker.weight() for worker in self.workers) / 2
