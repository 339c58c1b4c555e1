"""Dominant matching on simulated devices: the steps of a round on the host.

Rows are copied into buffers, as they are to a device, and the steps read the buffers alone.  The
rounds and the idea: matchwood/matching/dominant/devices.

A vertex's word in `state` is its mate; or ~v while it is free and points at v; or ~itself while it
points at no vertex.  So a vertex is free while its word is negative.

The lower bits of `size[v]` count the edges in v's list.  INCOMPLETE is set where the list lacks
some edge of the row: only then may the row have to travel again.  `head[v]` is the place in the
list of the edge that v points along.

The vertices of the partition that point at x are a linked list: `waiting[x]` is the first of them,
`following` links them.  When x is matched they are the next queue.  A vertex is in one such list at
a time: it enters another one only after its old neighbour was matched.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, crew, device, interrupted, kernel, share
from matchwood.engines.devices.plan import Batch
from matchwood.engines.devices.stats import RoundStats, Stats
from matchwood.engines.devices.workers import words_received
from matchwood.matching.dominant.devices import Problem, staged_pairs
from matchwood.primitives.edge_order.cpu import prefers
from matchwood.primitives.wide_sums import total

from . import Group, SimulatedWorkers, filled, groups

Array = np.ndarray[Any, Any]
INCOMPLETE = np.uint8(128)
LENGTH = np.uint8(127)  # the bits of `size` that count
NOBODY = -1  # the end of a list of waiting vertices

# Words of `counters`.
POINTED = 0  # vertices in the queue that point at a vertex now
WANTED = 1  # vertices whose row must travel
QUEUED = 2  # vertices in the next queue
MATCHED = 3  # edges matched in this round
COUNTERS = 4


class EdgeLists(NamedTuple):
    """The first edges of the rows of a partition."""

    start: Array  # (vertices + 1) where the list of each vertex begins
    size: Array  # uint8: edges in it, and INCOMPLETE
    head: Array  # uint8: the place of the edge that its vertex points along
    columns: Array
    weights: Array


class BufferedRows(NamedTuple):
    ids: Array  # their vertices; empty: base, base + 1, ...
    base: int
    offsets: Array  # (rows + 1) where they begin
    first: int  # the part of them that lies in the buffer: entries first to last - 1
    last: int
    columns: Array
    weights: Array


class Partition(NamedTuple):
    """What a partition knows: of all vertices, and of its own, which are lo to hi - 1."""

    lo: int
    hi: int
    state: Array
    waiting: Array
    following: Array


@device
def _pack_row(
    u: Any, begin: int, end: int, rows: BufferedRows, only_free: bool, state: Array,
    lists: EdgeLists, at: int, seed: Any, by_hash: bool,
) -> None:  # fmt: skip
    """Insert the entries begin to end - 1 of the buffer into the list of u, best first."""
    start = np.int64(lists.start[at])
    room = np.int64(lists.start[at + 1]) - start
    size = np.int64(lists.size[at] & LENGTH)
    left_out = (lists.size[at] & INCOMPLETE) != 0
    for k in range(begin, end):
        v = rows.columns[k]
        if only_free and state[v] >= 0:
            continue
        w = rows.weights[k]
        if size == room:
            left_out = True
            last = start + size - 1
            if not prefers(w, u, v, lists.weights[last], u, lists.columns[last], seed, by_hash):
                continue
            place = last
        else:
            place = start + size
            size += 1
        while place > start and prefers(
            w, u, v, lists.weights[place - 1], u, lists.columns[place - 1], seed, by_hash
        ):
            lists.weights[place] = lists.weights[place - 1]
            lists.columns[place] = lists.columns[place - 1]
            place -= 1
        lists.weights[place] = w
        lists.columns[place] = v
    lists.size[at] = np.uint8(size) | (INCOMPLETE if left_out else np.uint8(0))


@kernel
def pack(
    team: Team, rows: BufferedRows, only_free: bool, own: Partition, lists: EdgeLists, seed: Any,
    by_hash: bool,
) -> None:  # fmt: skip
    """Pack the rows of the buffer into the lists of their vertices, which may hold edges already.

    With `only_free`, matched neighbours and the rows of matched vertices are left out.
    """
    lo, hi = share(team, rows.offsets.size - 1)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        begin = max(np.int64(rows.offsets[i]), np.int64(rows.first)) - rows.first
        end = min(np.int64(rows.offsets[i + 1]), np.int64(rows.last)) - rows.first
        if begin >= end:
            continue
        u = np.int64(rows.ids[i]) if rows.ids.size else np.int64(rows.base + i)
        if only_free and own.state[u] >= 0:
            continue
        _pack_row(u, begin, end, rows, only_free, own.state, lists, u - own.lo, seed, by_hash)


@kernel
def queue_own(team: Team, own: Partition, only_free: bool, queue: Array, counters: Array) -> None:
    """Queue the vertices of the partition whose lists are not empty.  One member works."""
    if team.me > 0:
        return
    count = 0
    for u in range(own.lo, own.hi):
        if interrupted(team, u):
            return
        if not only_free or own.state[u] < 0:
            queue[count] = u
            count += 1
    counters[QUEUED] = count


@kernel
def point(
    team: Team, source: Array, own: Partition, lists: EdgeLists, queue: Array, wanted: Array,
    counters: Array,
) -> None:  # fmt: skip
    """The vertices of `source` take the next free edge of their list, and wait for its other end.

    Those that point now are appended to `queue`, which may be the same memory as `source`; those
    whose rows must travel to `wanted`.  One member works.
    """
    if team.me > 0:
        return
    state, lo = own.state, own.lo
    pointed, missing = counters[POINTED], counters[WANTED]
    for i in range(source.size):
        if interrupted(team, i):
            return
        u = np.int64(source[i])
        at = u - lo
        start, size = np.int64(lists.start[at]), lists.size[at]
        head, length = np.int64(lists.head[at]), np.int64(size & LENGTH)
        while head < length and state[lists.columns[start + head]] >= 0:
            head += 1
        lists.head[at] = head
        if head < length:
            v = lists.columns[start + head]
            state[u] = ~v
            own.following[at] = own.waiting[v]
            own.waiting[v] = u
            queue[pointed] = u
            pointed += 1
        elif size & INCOMPLETE:
            state[u] = ~u
            wanted[missing] = u
            missing += 1
        else:
            state[u] = ~u
    counters[POINTED], counters[WANTED] = pointed, missing


@device
def _requeue(x: Any, own: Partition, queue: Array, count: int) -> int:
    """Append the vertices that wait for x, which is matched now, to the queue."""
    y = np.int64(own.waiting[x])
    while y >= 0:
        if own.state[y] == ~x:  # not so for x's mate
            queue[count] = y
            count += 1
        y = np.int64(own.following[y - own.lo])
    return count


@kernel
def settle(
    team: Team, everyone: bool, changed: Array, own: Partition, queue: Array, counters: Array
) -> None:
    """Match those of `changed`, or of all vertices, that point at each other.  One member works."""
    if team.me > 0:
        return
    state = own.state
    count, matched = counters[QUEUED], counters[MATCHED]
    for i in range(state.size if everyone else changed.size):
        if interrupted(team, i):
            return
        u = np.int64(i) if everyone else np.int64(changed[i])
        if state[u] >= 0:
            continue
        v = np.int64(~state[u])
        if v == u or state[v] != ~u:
            continue
        state[u], state[v] = v, u
        matched += 1
        count = _requeue(u, own, queue, count)
        count = _requeue(v, own, queue, count)
    counters[QUEUED], counters[MATCHED] = count, matched


class Workers(SimulatedWorkers):
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
        return int(self.workers[0].counters[MATCHED])

    def any_queued(self) -> bool:
        return any(worker.counters[QUEUED] for worker in self.workers)

    def exchange(self, whole: bool) -> None:
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
        for worker in self.workers:
            worker.remote = []
            for other in self.workers:
                if other is not worker:
                    worker.learn(slice(other.own.lo, other.own.hi), other.own.state)
        vertices = [part.vertices for part in self._problem.plan.partitions]
        self._round.words_exchanged += max(words_received(vertices, vertices))

    def result(self) -> tuple[Array, float]:
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
        self.lists = EdgeLists(
            start, take(vertices, np.uint8), take(vertices, np.uint8),
            take(plan.listed[p], kind), take(plan.listed[p], view.data.dtype),
        )  # fmt: skip
        self.lists.size[:] = 0
        self.lists.head[:] = 0
        self.own = Partition(
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

    def _new_buffer(self) -> BufferedRows:
        view, take = self._problem.view, self.ledger.take
        return BufferedRows(
            take(self._buffer.rows, self._problem.kind), 0,
            take(2 * self._buffer.rows + 1, view.indptr.dtype), 0, 0,
            take(self._buffer.entries, self._problem.kind),
            take(self._buffer.entries, view.data.dtype),
        )  # fmt: skip

    def _next_buffer(self) -> BufferedRows:
        """The two buffers in turn: a device fills one while it reads the other."""
        self._turn += 1
        return self._buffers[self._turn % len(self._buffers)]

    def _pack(self, rows: BufferedRows, only_free: bool) -> None:
        entries = rows.last - rows.first
        problem, team = self._problem, crew(self._problem.threads, work=4 * entries)
        seed = np.uint64(problem.seed)
        team.run(pack, rows, only_free, self.own, self.lists, seed, problem.by_hash)

    def foresee(self, batches: list[Batch]) -> None:
        """Nothing to prepare."""

    def stream(self, batch: Batch, only_free: bool) -> None:
        """A batch travels, and its rows are packed."""
        there = filled(self._next_buffer(), self._problem.view, batch)
        self._count(batch.last - batch.first, there.offsets.nbytes)
        self._pack(there, only_free)

    def _count(self, entries: int, more: int) -> None:
        each = self._problem.kind.itemsize + self._problem.view.data.dtype.itemsize
        self.round.entries += entries
        self.round.bytes_up += entries * each + more

    def queue_own(self, only_free: bool) -> None:
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
        count = int(self.counters[WANTED])
        if count == 0:
            return
        wanted = np.sort(self._spare[:count])
        self.round.rows += count
        self.round.bytes_down += wanted.nbytes
        own = wanted - self._part.lo
        self.lists.size[own] = 0
        self.lists.head[own] = 0
        for group in groups(self._problem.view, wanted, self._buffer):
            self._fetch_group(group)
        self.counters[WANTED] = 0
        self._point(wanted)

    def fetched(self) -> None:
        """Nothing to wait for: `fetch` has done all of it."""

    def _fetch_group(self, group: Group) -> None:
        """Copy the rows through a buffer, and pack them."""
        view, (ids, offsets, first, last, at) = self._problem.view, group
        if self._resident:  # the rows are there: read them where they lie
            there = BufferedRows(
                ids, 0, offsets.astype(view.indptr.dtype), first, last,
                view.indices[at].astype(self._problem.kind), view.data[at],
            )  # fmt: skip
            return self._pack(there, True)
        buffer, entries, rows = self._next_buffer(), last - first, ids.size
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
        self.lists.size[:] = 0
        self.lists.head[:] = 0
        self.own.waiting[:] = NOBODY

    def changed(self, whole: bool) -> Any:
        if whole:
            return slice(self.own.lo, self.own.hi)
        return self._queue[: int(self.counters[POINTED])]

    def learn(self, changed: Any, state: Array) -> None:
        self.own.state[changed] = state[changed]
        if not isinstance(changed, slice):
            self.remote.append(changed)

    def settle(self, everyone: bool) -> None:
        own = self._queue[: int(self.counters[POINTED])]
        for changed in [own] if everyone else [own, *self.remote]:
            crew(1, work=4 * self._problem.view.n).run(
                settle, everyone, changed, self.own, self._spare, self.counters
            )

    def expect_answer(self) -> None:
        """Nothing to prepare: the mates are on the host."""

    def settled(self) -> None:
        """Nothing to wait for: `settle` has counted already."""

    def weight(self) -> float:
        """The sum over own vertices of the weights of their matched edges."""
        own = self.own.state[self._part.lo : self._part.hi] >= 0
        at = self.lists.start[:-1][own] + self.lists.head[own]
        return total(self.lists.weights[at])


assert int(INCOMPLETE) > 2 * 32  # lists of up to LONGEST_LIST edges
