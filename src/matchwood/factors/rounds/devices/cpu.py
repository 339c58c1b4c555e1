"""Simulated devices: the steps of rounds.py in the memory of the host; what travels is counted."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew
from matchwood.engines.devices.plan import Batch, cut_rows
from matchwood.engines.devices.stats import RoundStats, Stats
from matchwood.engines.devices.workers import SimulatedWorkers
from matchwood.factors.rounds.devices.cpu_steps import (
    CHANGED,
    CONFIRMED,
    COUNTERS,
    PROPOSED,
    WANTED,
    Charges,
    Lists,
    Places,
    Rows,
    Rule,
    confirm,
    count_proposals,
    pack,
    propose,
    settle,
)
from matchwood.factors.rounds.devices.rounds import Charge, Problem

Array = np.ndarray[Any, Any]


class Workers(SimulatedWorkers):
    """The partitions of a call, one worker each."""

    def __init__(self, problem: Problem, machine: Any, stats: Stats) -> None:
        self._problem, count = problem, len(problem.layout.partitions)
        super().__init__([Worker(problem, p, machine.ledger(p)) for p in range(count)], stats)

    def end_round(self) -> None:
        self._round.pointed = sum(int(worker.counters[CHANGED]) for worker in self.workers)

    def proposed(self) -> int:
        """Proposals of this round."""
        return sum(worker.proposed() for worker in self.workers)

    def confirmed(self) -> int:
        """Proposals of this round that were answered; every worker knows them all."""
        return int(self.workers[0].counters[CONFIRMED])

    def exchange(self) -> None:
        """Every worker gets the proposals of the others, as they are."""
        n = self._problem.rule.n
        sent = [n * (worker.rule.hi - worker.rule.lo) for worker in self.workers]
        self._round.words_exchanged = max(sum(sent) - own for own in sent)
        for worker in self.workers:
            for other in self.workers:
                if other is not worker:
                    own = slice(other.rule.lo * n, other.rule.hi * n)
                    worker.places.proposals[own] = other.places.proposals[own]

    def result(self) -> tuple[Array, Array]:
        """The neighbours of all vertices, and the weights of their edges."""
        tables = [worker.table() for worker in self.workers]
        neighbours = np.concatenate([table[0] for table in tables])
        weights = np.concatenate([table[1] for table in tables])
        self._round.bytes_down += neighbours.nbytes + weights.nbytes
        return neighbours, weights


class Worker:
    """One partition: its arrays and the steps on them."""

    def __init__(self, problem: Problem, p: int, ledger: Any) -> None:
        self._problem, self.ledger, layout = problem, ledger, problem.layout
        view, kind, take, n = problem.view, problem.kind, ledger.take, problem.rule.n
        self._part, self._buffer = layout.partitions[p], layout.buffer[p]
        self._batches, self._resident = layout.batches[p], layout.resident
        part, weight, vertices = self._part, view.data.dtype, self._part.vertices
        self.rule = Rule(n, part.lo, part.hi, np.uint64(problem.rule.seed), problem.rule.by_hash)
        self.round = RoundStats()
        start = take(vertices + 1, view.indptr.dtype)
        start[0] = 0
        degrees = np.diff(view.indptr[part.lo : part.hi + 1])
        np.cumsum(np.minimum(degrees, layout.length), out=start[1:])
        listed = layout.listed[p]
        self.lists = Lists(
            start, take(vertices, np.uint8), take(listed, kind), take(listed, weight)
        )
        self.places = Places(
            take(view.n, np.uint8), take(view.n * n, kind), take(vertices * n, weight),
            take(vertices * n, kind), take(vertices * n, weight),
        )  # fmt: skip
        self.lists.size[:] = 0
        self.places.taken[:] = 0
        self.places.proposals[:] = -1
        self._wanted = take(vertices, kind)
        self.counters = np.zeros(COUNTERS, np.int64)
        rows, entries = self._buffer.rows, self._buffer.entries
        self._buffers = [
            Rows(
                take(rows, kind), 0, take(2 * rows + 1, view.indptr.dtype), 0, 0,
                take(entries, kind), take(entries, weight),
            )
            for _ in range(layout.buffers[p])
        ]  # fmt: skip
        self._turn = 0

    def _next_buffer(self) -> Rows:
        self._turn += 1
        return self._buffers[self._turn % len(self._buffers)]

    def _alone(self, kernel: Any, *arguments: Any) -> None:
        crew(1, work=4 * self._problem.view.n).run(kernel, *arguments)

    def _pack(self, rows: Rows, charge: Charge) -> None:
        team = crew(self._problem.threads, work=4 * (rows.last - rows.first))
        team.run(pack, rows, Charges(*charge), self.rule, self.lists, self.places)

    def _count(self, entries: int, more: int) -> None:
        view = self._problem.view
        self.round.entries += entries
        self.round.bytes_up += entries * (self._problem.kind.itemsize + view.data.itemsize) + more

    def stream_all(self, charge: Charge) -> None:
        """All rows travel; lists and proposals are made anew."""
        own = slice(self.rule.lo * self.rule.n, self.rule.hi * self.rule.n)
        self.places.proposals[own] = -1
        self.lists.size[:] = 0
        for batch in self._batches:
            self._stream(batch, charge)
        self.counters[CHANGED] = self.rule.hi - self.rule.lo

    def _stream(self, batch: Batch, charge: Charge) -> None:
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
        self._pack(there, charge)

    def propose(self, charge: Charge) -> None:
        """Vertices with room propose from their lists."""
        self._alone(propose, Charges(*charge), self.rule, self.lists, self.places, self._wanted,
                    self.counters)  # fmt: skip

    def fetch(self, charge: Charge) -> None:
        """Rows of vertices whose list does not hold enough travel."""
        wanted = self._wanted[: int(self.counters[WANTED])]
        if wanted.size == 0:
            return
        self.round.rows += wanted.size
        self.round.bytes_down += wanted.nbytes
        self.counters[CHANGED] += wanted.size
        view = self._problem.view
        begin = view.indptr[wanted].astype(np.int64)
        length = view.indptr[wanted.astype(np.int64) + 1] - begin
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
        for row, stop, first, last in cut_rows(offsets, self._buffer):
            buffer, rows, entries = self._next_buffer(), stop - row, last - first
            cut = np.clip(offsets[row : stop + 1], first, last)
            starts = begin[row:stop] + np.maximum(first - offsets[row:stop], 0)
            at = np.arange(first, last) + np.repeat(starts - cut[:-1], np.diff(cut))
            buffer.ids[:rows] = wanted[row:stop]
            buffer.offsets[: rows + 1] = offsets[row : stop + 1]
            buffer.columns[:entries] = view.indices[at]
            buffer.weights[:entries] = view.data[at]
            if not self._resident:
                self._count(entries, buffer.ids[:rows].nbytes + buffer.offsets[: rows + 1].nbytes)
            there = buffer._replace(
                ids=buffer.ids[:rows], offsets=buffer.offsets[: rows + 1], first=first, last=last
            )
            self._pack(there, charge)

    def proposed(self) -> int:
        """Proposals of own vertices."""
        self._alone(count_proposals, self.rule, self.places.proposals, self.counters)
        return int(self.counters[PROPOSED])

    def confirm(self) -> None:
        """Edges that both ends propose are in the factor."""
        self._alone(confirm, self.rule, self.places, self.counters)

    def table(self) -> tuple[Array, Array]:
        """The neighbours of own vertices and the weights of their edges."""
        self._alone(settle, self.rule, self.places)
        shape = (self._part.vertices, self.rule.n)
        return self.places.chosen.reshape(shape), self.places.chosen_weights.reshape(shape)
