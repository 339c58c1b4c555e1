"""Connected components on simulated devices; what is sent is counted.  Races: union_find."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.connected.devices import SENT_NEIGHBOURS, Problem
from matchwood.components.connected.devices.cpu import gather_two, no_vertex
from matchwood.engines.cpu import Team, barrier, crew, interrupted, kernel, share
from matchwood.engines.devices.stats import RoundStats, Stats
from matchwood.primitives.union_find.cpu import compress, link

from . import SimulatedWorkers, groups

Array = np.ndarray[Any, Any]

SAMPLES = 1024  # vertices whose component is read


@kernel
def join_forest(team: Team, other: Array, parent: Array) -> None:
    """Join each vertex with its parent in the forest of another partition."""
    lo, hi = share(team, parent.size)
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        if other[v] != v:
            link(parent, parent.dtype.type(v), other[v])


@kernel
def join_two(team: Team, base: int, none: Any, ends: Array, more: Array, parent: Array) -> None:
    """Join base + i with the neighbours that `gather_two` wrote; more[i] = 1 if there are more."""
    lo, hi = share(team, ends.size // 2)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        u = parent.dtype.type(base + i)
        first, last = ends[2 * i], ends[2 * i + 1]
        if first >= 0:
            link(parent, u, first)
        more[i] = last < 0 and last != none
        if more[i]:
            last = ~last
        if last >= 0:
            link(parent, u, last)


@kernel
def join_rows(
    team: Team, ids: Array, base: int, offsets: Array, first: int, last: int, columns: Array,
    parent: Array,
) -> None:  # fmt: skip
    """Join the rows of a buffer: of ids, or of base, base + 1, ... where there are none."""
    lo, hi = share(team, offsets.size - 1)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        begin = max(np.int64(offsets[i]), np.int64(first)) - first
        end = min(np.int64(offsets[i + 1]), np.int64(last)) - first
        u = ids[i] if ids.size else parent.dtype.type(base + i)
        for k in range(begin, end):
            link(parent, u, columns[k])


@kernel
def flatten(team: Team, parent: Array) -> None:
    """Hook every vertex directly under its root."""
    lo, hi = share(team, parent.size)
    compress(parent, lo, hi)
    if barrier(team):
        return


@kernel
def most_frequent(team: Team, parent: Array, found: Array) -> None:
    """found[0] = the root of most of a sample, by one member; a wrong guess costs traffic only."""
    if team.me > 0:
        return
    champion, votes = parent[0], 0
    for i in range(0, parent.size, max(1, parent.size // SAMPLES)):
        if votes == 0:
            champion = parent[i]
        votes += 1 if parent[i] == champion else -1
    found[0] = champion


class Workers(SimulatedWorkers):
    """The partitions of a call, one worker each."""

    def __init__(self, problem: Problem, machine: Any, stats: Stats) -> None:
        self._problem, count = problem, len(problem.plan.partitions)
        super().__init__([Worker(problem, p, machine.ledger(p)) for p in range(count)], stats)

    def exchange(self) -> None:
        """Every worker joins the forests of the others, which it receives as they are."""
        self._round.words_exchanged = self._problem.view.n * (len(self.workers) - 1)
        forests = [worker.flat().copy() for worker in self.workers]
        for worker in self.workers:
            for other, forest in zip(self.workers, forests, strict=True):
                if other is not worker:
                    worker.join(forest)

    def result(self) -> tuple[int, Array]:
        """The number of components, and the labels."""
        parent = self.workers[0].flat()
        is_root = parent == np.arange(parent.size, dtype=parent.dtype)
        numbers = np.cumsum(is_root, dtype=parent.dtype) - 1
        labels = numbers[parent]
        self._round.bytes_down += labels.nbytes
        return int(is_root.sum()), labels


class Worker:
    """One partition: a forest of all vertices, in which its own rows are joined."""

    def __init__(self, problem: Problem, p: int, ledger: Any) -> None:
        self._problem, self.ledger = problem, ledger
        plan, view, take, kind = problem.plan, problem.view, ledger.take, problem.kind
        self._part, self._buffer = plan.partitions[p], plan.buffer[p]
        self._batches = plan.batches[p]
        self.round = RoundStats()
        self.parent = take(view.n, kind)
        self.parent[:] = np.arange(view.n, dtype=kind)
        self._numbers, self._labels = take(view.n, kind), take(view.n, kind)
        self._rest = take(self._part.vertices, kind)
        self._more = take(self._part.vertices, np.uint8)
        self._more[:] = 0
        self._buffers = [
            (
                take(self._buffer.rows, kind),
                take(2 * self._buffer.rows + 1, view.indptr.dtype),
                take(max(SENT_NEIGHBOURS, self._buffer.entries), kind),
            )
            for _ in range(plan.buffers[p])
        ]
        self._turn = 0

    def _next_buffer(self) -> tuple[Array, Array, Array]:
        self._turn += 1
        return self._buffers[self._turn % len(self._buffers)]

    def _run(self, work: int, kernel: Any, *arguments: Any) -> None:
        crew(self._problem.threads, work=4 * work).run(kernel, *arguments)

    def join_first(self) -> None:
        """Send and join the first two neighbours of each row."""
        view, part = self._problem.view, self._part
        step = max(1, self._buffer.entries // SENT_NEIGHBOURS)
        for lo in range(part.lo, part.hi, step):
            rows = min(step, part.hi - lo)
            two = self._next_buffer()[2][: SENT_NEIGHBOURS * rows]
            self.round.entries += gather_two(
                view, lo, two, crew(self._problem.threads, work=2 * two.size)
            )
            self.round.bytes_up += two.nbytes
            more = self._more[lo - part.lo : lo - part.lo + rows]
            none = two.dtype.type(no_vertex(two.dtype))
            self._run(two.size, join_two, lo, none, two, more, self.parent)

    def join_all(self) -> None:
        """Send and join all rows."""
        view = self._problem.view
        for batch in self._batches:
            ids, places, columns = self._next_buffer()
            rows, entries = batch.hi - batch.lo, batch.last - batch.first
            places[: rows + 1] = view.indptr[batch.lo : batch.hi + 1]
            columns[:entries] = view.indices[batch.first : batch.last]
            self._count(entries, places[: rows + 1].nbytes)
            self._run(
                entries, join_rows, ids[:0], batch.lo, places[: rows + 1], batch.first,
                batch.last, columns, self.parent,
            )  # fmt: skip

    def _count(self, entries: int, more: int) -> None:
        self.round.entries += entries
        self.round.bytes_up += entries * self._problem.kind.itemsize + more

    def expect_answer(self) -> None:
        """Nothing to do: the labels are on the host."""

    def first_joined(self) -> None:
        """Nothing to do: `join_first` has counted already."""

    def largest(self) -> int:
        """The root of the component that is probably the largest."""
        found = np.zeros(1, self._problem.kind)
        crew(1, work=1024).run(most_frequent, self.flat(), found)
        return int(found[0])

    def join_rest(self, largest: int) -> None:
        """Send and join the rows outside the largest component that have more than two entries."""
        view, part = self._problem.view, self._part
        outside = self.flat()[part.lo : part.hi] != largest
        rest = (np.flatnonzero(outside & (self._more > 0)) + part.lo).astype(self._problem.kind)
        self.round.rows += rest.size
        self.round.bytes_down += rest.nbytes
        if rest.size == 0:
            return
        for group in groups(view, rest, self._buffer):
            ids, places, columns = self._next_buffer()
            rows, entries = group.ids.size, group.at.size
            ids[:rows] = group.ids
            places[: rows + 1] = group.offsets
            columns[:entries] = view.indices[group.at]
            self._count(entries, ids[:rows].nbytes + places[: rows + 1].nbytes)
            self._run(
                entries, join_rows, ids[:rows], 0, places[: rows + 1], group.first, group.last,
                columns, self.parent,
            )  # fmt: skip

    def flat(self) -> Array:
        """The forest with every vertex directly under its root."""
        self._run(self.parent.size, flatten, self.parent)
        parent: Array = self.parent
        return parent

    def join(self, forest: Array) -> None:
        """Join the forest of another partition."""
        self._run(forest.size, join_forest, forest, self.parent)
