"""Simulated devices: the steps of rounds.py in the memory of the host; what travels is counted.

Rows are copied into buffers, as they are to a device, and the steps read the buffers alone.  The
kernels: cpu_steps.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew
from matchwood.engines.devices.plan import Batch, cut_rows
from matchwood.engines.devices.stats import RoundStats, Stats
from matchwood.engines.devices.workers import SimulatedWorkers, words_received
from matchwood.matching.dominant.devices.cpu_steps import (
    COUNTERS,
    INCOMPLETE,
    MATCHED,
    NOBODY,
    POINTED,
    QUEUED,
    WANTED,
    Lists,
    Own,
    Rows,
    pack,
    point,
    queue_own,
    settle,
)
from matchwood.matching.dominant.devices.rounds import Problem, staged_pairs
from matchwood.primitives.wide_sums import total

Array = np.ndarray[Any, Any]


class Workers(SimulatedWorkers):
    """The partitions of a call, one worker each."""

    def __init__(self, problem: Problem, machine: Any, stats: Stats) -> None:
        self._problem, count = problem, len(problem.plan.partitions)
        super().__init__(
            [Worker(problem, p, machine.ledger(p), count > 1) for p in range(count)], stats
        )

    def begin_round(self, stats: Stats) -> None:
        super().begin_round(stats)
        for worker in self.workers:
            worker.counters[MATCHED] = 0

    def end_round(self) -> None:
        self._round.pointed = sum(int(worker.counters[POINTED]) for worker in self.workers)

    def matched(self) -> int:
        """Edges matched in this round; every worker knows them all."""
        return int(self.workers[0].counters[MATCHED])

    def any_queued(self) -> bool:
        return any(worker.counters[QUEUED] for worker in self.workers)

    def exchange(self, whole: bool) -> None:
        """Every worker learns the changed pointers of the others."""
        changed = [int(worker.counters[POINTED]) for worker in self.workers]
        vertices = [part.vertices for part in self._problem.plan.partitions]
        sent = vertices if whole else changed
        self._round.words_exchanged = max(words_received(sent, vertices))
        for worker in self.workers:
            worker.remote = []
            for other in self.workers:
                if other is not worker:
                    worker.learn(other.changed(whole), other.own.state)

    def share_all(self) -> None:
        """Every worker gets the words of all vertices of the others, changed or not."""
        for worker in self.workers:
            worker.remote = []
            for other in self.workers:
                if other is not worker:
                    worker.learn(slice(other.own.lo, other.own.hi), other.own.state)
        vertices = [part.vertices for part in self._problem.plan.partitions]
        self._round.words_exchanged += max(words_received(vertices, vertices))

    def result(self) -> tuple[Array, float]:
        """The mates of all vertices, and the weight of the matching."""
        mate = self.workers[0].own.state.copy()
        mate[mate < 0] = -1
        self._round.bytes_down += mate.nbytes
        return mate, sum(worker.weight() for worker in self.workers) / 2


class Worker:
    """One partition: its arrays and the steps on them."""

    def __init__(self, problem: Problem, p: int, ledger: Any, several: bool) -> None:
        self._problem, self.ledger = problem, ledger
        plan, view, kind = problem.plan, problem.view, problem.kind
        self._part, self._buffer, self._resident = plan.partitions[p], plan.buffer[p], plan.resident
        self.round = RoundStats()
        vertices, n, take = self._part.vertices, view.n, ledger.take
        start = take(vertices + 1, view.indptr.dtype)
        degrees = np.diff(view.indptr[self._part.lo : self._part.hi + 1])
        start[0] = 0
        np.cumsum(np.minimum(degrees, plan.length), out=start[1:])
        self.lists = Lists(
            start, take(vertices, np.uint8), take(vertices, np.uint8),
            take(plan.listed[p], kind), take(plan.listed[p], view.data.dtype),
        )  # fmt: skip
        self.lists.size[:] = 0
        self.lists.head[:] = 0
        self.own = Own(
            self._part.lo, self._part.hi, take(n, kind), take(n, kind), take(vertices, kind)
        )
        self.own.state[:] = ~np.arange(n, dtype=kind)
        self.own.waiting[:] = NOBODY
        self._queue, self._spare = take(vertices, kind), take(vertices, kind)
        self.counters = np.zeros(COUNTERS, np.int64)
        self.remote: list[Array] = []  # vertices of others whose pointers have changed
        self._staged = take(2 * staged_pairs(n), kind) if several else None
        self._buffers = [self._new_buffer() for _ in range(plan.buffers[p])]
        self._turn = 0

    def _new_buffer(self) -> Rows:
        view, take = self._problem.view, self.ledger.take
        return Rows(
            take(self._buffer.rows, self._problem.kind), 0,
            take(2 * self._buffer.rows + 1, view.indptr.dtype), 0, 0,
            take(self._buffer.entries, self._problem.kind),
            take(self._buffer.entries, view.data.dtype),
        )  # fmt: skip

    def _next_buffer(self) -> Rows:
        """The two buffers in turn: a device fills one while it reads the other."""
        self._turn += 1
        return self._buffers[self._turn % len(self._buffers)]

    def _pack(self, rows: Rows, only_free: bool) -> None:
        entries = rows.last - rows.first
        problem, team = self._problem, crew(self._problem.threads, work=4 * entries)
        seed = np.uint64(problem.seed)
        team.run(pack, rows, only_free, self.own, self.lists, seed, problem.by_hash)

    def foresee(self, batches: list[Batch]) -> None:
        """Nothing is gained."""

    def stream(self, batch: Batch, only_free: bool) -> None:
        """A batch travels, and its rows are packed."""
        view, buffer = self._problem.view, self._next_buffer()
        entries, rows = batch.last - batch.first, batch.hi - batch.lo
        buffer.columns[:entries] = view.indices[batch.first : batch.last]
        buffer.weights[:entries] = view.data[batch.first : batch.last]
        buffer.offsets[: rows + 1] = view.indptr[batch.lo : batch.hi + 1]
        self._count(entries, buffer.offsets[: rows + 1].nbytes)
        there = buffer._replace(
            ids=buffer.ids[:0], base=batch.lo, offsets=buffer.offsets[: rows + 1],
            first=batch.first, last=batch.last,
        )  # fmt: skip
        self._pack(there, only_free)

    def _count(self, entries: int, more: int) -> None:
        each = self._problem.kind.itemsize + self._problem.view.data.dtype.itemsize
        self.round.entries += entries
        self.round.bytes_up += entries * each + more

    def queue_own(self, only_free: bool) -> None:
        """The vertices of the partition, or those that are free, point next."""
        crew(1, work=self._part.vertices).run(
            queue_own, self.own, only_free, self._spare, self.counters
        )

    def point(self) -> None:
        """The next queue becomes the queue, and its vertices point."""
        self._queue, self._spare = self._spare, self._queue
        size = int(self.counters[QUEUED])
        self.counters[:MATCHED] = 0
        self._point(self._queue[:size])

    def _point(self, source: Array) -> None:
        crew(1, work=4 * source.size).run(
            point, source, self.own, self.lists, self._queue, self._spare, self.counters
        )

    def fetch(self) -> None:
        """Rows whose lists have run out travel; their new lists have free neighbours alone."""
        count = int(self.counters[WANTED])
        if count == 0:
            return
        wanted = np.sort(self._spare[:count])
        self.round.rows += count
        self.round.bytes_down += wanted.nbytes
        own = wanted - self._part.lo
        self.lists.size[own] = 0
        self.lists.head[own] = 0
        view = self._problem.view
        begin = view.indptr[wanted].astype(np.int64)
        length = view.indptr[wanted.astype(np.int64) + 1] - begin
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
        for row, stop, first, last in cut_rows(offsets, self._buffer):
            self._fetch_group(
                wanted[row:stop], begin[row:stop], offsets[row : stop + 1], first, last
            )
        self.counters[WANTED] = 0
        self._point(wanted)

    def fetched(self) -> None:
        """`fetch` has done all of it."""

    def _fetch_group(self, ids: Array, begin: Array, offsets: Array, first: int, last: int) -> None:
        """Entries first to last - 1 of rows that lie one after the other, through a buffer."""
        view, buffer = self._problem.view, self._next_buffer() if not self._resident else None
        at = np.arange(first, last) - np.repeat(
            np.maximum(offsets[:-1], first), np.diff(np.clip(offsets, first, last))
        )
        shift = begin + np.maximum(first - offsets[:-1], 0)
        at += np.repeat(shift, np.diff(np.clip(offsets, first, last)))
        if buffer is None:  # the rows are there: read them where they lie
            there = Rows(
                ids, 0, offsets.astype(view.indptr.dtype), first, last,
                view.indices[at].astype(self._problem.kind), view.data[at],
            )  # fmt: skip
            return self._pack(there, True)
        entries, rows = last - first, ids.size
        buffer.ids[:rows] = ids
        buffer.offsets[: rows + 1] = offsets
        buffer.columns[:entries] = view.indices[at]
        buffer.weights[:entries] = view.data[at]
        self._count(entries, buffer.ids[:rows].nbytes + buffer.offsets[: rows + 1].nbytes)
        there = buffer._replace(
            ids=buffer.ids[:rows], offsets=buffer.offsets[: rows + 1], first=first, last=last
        )
        self._pack(there, True)

    def forget_lists(self) -> None:
        """For rounds in which all rows pass again."""
        self.lists.size[:] = 0
        self.lists.head[:] = 0
        self.own.waiting[:] = NOBODY

    def changed(self, whole: bool) -> Any:
        """The vertices of the partition whose pointers have changed in this round."""
        if whole:
            return slice(self.own.lo, self.own.hi)
        return self._queue[: int(self.counters[POINTED])]

    def learn(self, changed: Any, state: Array) -> None:
        """Take the pointers of vertices of another partition."""
        self.own.state[changed] = state[changed]
        if not isinstance(changed, slice):
            self.remote.append(changed)

    def settle(self, everyone: bool) -> None:
        """Match those that point at each other; their neighbours here are the next queue."""
        own = self._queue[: int(self.counters[POINTED])]
        for changed in [own] if everyone else [own, *self.remote]:
            crew(1, work=4 * self._problem.view.n).run(
                settle, everyone, changed, self.own, self._spare, self.counters
            )

    def expect_answer(self) -> None:
        """The mates are on the host."""

    def settled(self) -> None:
        """`settle` has counted already."""

    def weight(self) -> float:
        """Twice the weight of the edges that this partition sees one end of."""
        own = self.own.state[self._part.lo : self._part.hi] >= 0
        at = self.lists.start[:-1][own] + self.lists.head[own]
        return total(self.lists.weights[at])


assert int(INCOMPLETE) > 2 * 32  # lists of up to LONGEST_LIST edges
