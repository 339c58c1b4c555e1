"""Factors on simulated devices: the steps of a round (matchwood/factors/rounds/devices).

`proposals[u * n : u * n + n]` are the vertices that u proposes to in this round, best first, then
-1, for all vertices; `weights` are for own ones alone.  `taken[u]` is the number of neighbours of
u; with n it has no room.  `chosen` are the neighbours of own vertices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, crew, device, interrupted, kernel, share
from matchwood.engines.devices.plan import Batch
from matchwood.engines.devices.stats import RoundStats, Stats
from matchwood.factors.rounds.devices import Charge, Problem
from matchwood.primitives.edge_order.cpu import prefers
from matchwood.primitives.hashing.cpu import random_bit

from . import SimulatedWorkers, filled, groups

Array = np.ndarray[Any, Any]

INCOMPLETE = np.uint8(128)  # in `size`: some neighbour with room is not in the list
LENGTH = np.uint8(127)  # the bits of `size` that count

# Words of `counters`.
PROPOSED = 0  # proposals of this round
WANTED = 1  # vertices whose row must travel
CONFIRMED = 2  # proposals of all vertices that were answered
CHANGED = 3  # own vertices whose proposals have changed
COUNTERS = 4


class Rule(NamedTuple):
    """Numbers that do not change during a call."""

    n: int
    lo: int  # own vertices: lo to hi - 1
    hi: int
    seed: Any
    by_hash: bool


class StrongestEdges(NamedTuple):
    start: Array
    size: Array
    columns: Array
    weights: Array


class ProposalState(NamedTuple):
    """The proposals of this round, and the neighbours confirmed so far."""

    taken: Array  # of all vertices
    proposals: Array  # of all vertices
    proposed_weights: Array  # of own vertices
    chosen: Array  # of own vertices
    chosen_weights: Array


class BufferedRows(NamedTuple):
    ids: Array  # their vertices; empty: base, base + 1, ...
    base: int
    offsets: Array
    first: int
    last: int
    columns: Array
    weights: Array


@device
def _is_chosen(at: int, v: Any, count: int, n: int, chosen: Array) -> bool:
    found = False
    for j in range(count):
        found |= chosen[at * n + j] == v
    return found


@device
def _insert(
    u: Any, v: Any, w: Any, first: int, held: int, room: int, columns: Array, weights: Array,
    other: int, rule: Rule,
) -> bool:  # fmt: skip
    """Insert (v, w) into the list of u at columns[first], weights[other], best first.

    False where it is too weak.  `held` edges are in the list, `room` fit.
    """
    if held == room:
        if room == 0:
            return False
        if not prefers(w, u, v, weights[other + room - 1], u, columns[first + room - 1], rule.seed,
                       rule.by_hash):  # fmt: skip
            return False
        place = room - 1
    else:
        place = held
    while place > 0 and prefers(
        w, u, v, weights[other + place - 1], u, columns[first + place - 1], rule.seed, rule.by_hash
    ):
        weights[other + place] = weights[other + place - 1]
        columns[first + place] = columns[first + place - 1]
        place -= 1
    weights[other + place] = w
    columns[first + place] = v
    return True


@device
def _held(proposals: Array, first: int, room: int) -> int:
    count = 0
    while count < room and proposals[first + count] >= 0:
        count += 1
    return count


@kernel
def _pack(
    team: Team,
    rows: BufferedRows,
    charges: Charge,
    rule: Rule,
    lists: StrongestEdges,
    places: ProposalState,
) -> None:
    """Pack the rows of the buffer into the lists and the proposals of their vertices.

    Neighbours without room, and those that a vertex has already, are left out; for the proposals
    also those of the same charge.
    """
    n, taken = rule.n, places.taken
    lo, hi = share(team, rows.offsets.size - 1)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        begin = max(np.int64(rows.offsets[i]), np.int64(rows.first)) - rows.first
        end = min(np.int64(rows.offsets[i + 1]), np.int64(rows.last)) - rows.first
        u = np.int64(rows.ids[i]) if rows.ids.size else np.int64(rows.base + i)
        have = np.int64(taken[u])
        if begin >= end or have == n:
            continue
        at = u - rule.lo
        start = np.int64(lists.start[at])
        room, size = np.int64(lists.start[at + 1]) - start, np.int64(lists.size[at] & LENGTH)
        left_out = (lists.size[at] & INCOMPLETE) != 0
        wanted = n - have
        held = _held(places.proposals, u * n, wanted)
        mine = charges.on and random_bit(u, charges.r, charges.barrier)
        for k in range(begin, end):
            v, w = rows.columns[k], rows.weights[k]
            if taken[v] == n or _is_chosen(at, v, have, n, places.chosen):
                continue
            full = size == room
            if full:
                left_out = True
            inside = _insert(u, v, w, start, size, room, lists.columns, lists.weights, start, rule)
            if inside and not full:
                size += 1
            if charges.on and random_bit(v, charges.r, charges.barrier) == mine:
                continue
            full = held == wanted
            inside = _insert(u, v, w, u * n, held, wanted, places.proposals,
                             places.proposed_weights, at * n, rule)  # fmt: skip
            if inside and not full:
                held += 1
        lists.size[at] = np.uint8(size) | (INCOMPLETE if left_out else np.uint8(0))


@kernel
def _propose(
    team: Team, charges: Charge, rule: Rule, lists: StrongestEdges, places: ProposalState,
    wanted: Array, counters: Array,
) -> None:  # fmt: skip
    """One member: own vertices propose from their lists; `wanted` gets those that lack some."""
    if team.me > 0:
        return
    n, missing, changed = rule.n, 0, 0
    for u in range(rule.lo, rule.hi):
        if interrupted(team, u):
            return
        at = u - rule.lo
        had = places.proposals[u * n] >= 0
        for j in range(n):
            places.proposals[u * n + j] = -1
        have = np.int64(places.taken[u])
        start, size = np.int64(lists.start[at]), lists.size[at]
        count = 0
        if have < n:
            mine = charges.on and random_bit(u, charges.r, charges.barrier)
            for k in range(start, start + np.int64(size & LENGTH)):
                v = lists.columns[k]
                if count == n - have:
                    break
                if places.taken[v] == n or _is_chosen(at, v, have, n, places.chosen):
                    continue
                if charges.on and random_bit(v, charges.r, charges.barrier) == mine:
                    continue
                places.proposals[u * n + count] = v
                places.proposed_weights[at * n + count] = lists.weights[k]
                count += 1
            if count < n - have and size & INCOMPLETE:
                for j in range(count):
                    places.proposals[u * n + j] = -1
                lists.size[at] = 0
                wanted[missing] = u
                missing += 1
        changed += had or count > 0
    counters[WANTED] = missing
    counters[CHANGED] = changed


@kernel
def _count_proposals(team: Team, rule: Rule, proposals: Array, counters: Array) -> None:
    """Count the proposals of own vertices in counters[PROPOSED].  One member works."""
    if team.me > 0:
        return
    count = 0
    for i in range(rule.lo * rule.n, rule.hi * rule.n):
        if interrupted(team, i):
            return
        count += proposals[i] >= 0
    counters[PROPOSED] = count


@kernel
def _confirm(team: Team, rule: Rule, places: ProposalState, counters: Array) -> None:
    """Confirm the proposals of all vertices that are answered.  One member works.

    First the neighbours of own vertices are stored, then all are counted; proposals do not change.
    """
    if team.me > 0:
        return
    n, vertices, confirmed = rule.n, places.taken.size, 0
    for u in range(vertices):
        if interrupted(team, u):
            return
        have = np.int64(places.taken[u])
        for j in range(n):
            v = np.int64(places.proposals[u * n + j])
            if v < 0:
                break
            answered = False
            for i in range(n):
                answered |= places.proposals[v * n + i] == u
            if not answered:
                continue
            confirmed += 1
            if rule.lo <= u < rule.hi:
                at = u - rule.lo
                places.chosen[at * n + have] = v
                places.chosen_weights[at * n + have] = places.proposed_weights[at * n + j]
            have += 1
        places.taken[u] = have
    counters[CONFIRMED] = confirmed


@kernel
def _settle(team: Team, rule: Rule, places: ProposalState) -> None:
    """Sort the neighbours of own vertices, preferred ones first, then -1 with weight 0."""
    n = rule.n
    lo, hi = share(team, rule.hi - rule.lo)
    for at in range(lo, hi):
        if interrupted(team, at):
            return
        u, count = np.int64(at + rule.lo), np.int64(places.taken[at + rule.lo])
        for j in range(1, count):
            v, w = places.chosen[at * n + j], places.chosen_weights[at * n + j]
            _insert(u, v, w, at * n, j, n, places.chosen, places.chosen_weights, at * n, rule)
        for j in range(count, n):
            places.chosen[at * n + j] = -1
            places.chosen_weights[at * n + j] = 0


# The partitions


class Workers(SimulatedWorkers):
    def __init__(self, problem: Problem, machine: Any, stats: Stats) -> None:
        self._problem, count = problem, len(problem.layout.partitions)
        super().__init__([Worker(problem, p, machine.ledger(p)) for p in range(count)], stats)

    def end_round(self) -> None:
        self._round.pointed = sum(int(worker.counters[CHANGED]) for worker in self.workers)

    def proposed(self) -> int:
        return sum(worker.proposed() for worker in self.workers)

    def confirmed(self) -> int:
        return int(self.workers[0].counters[CONFIRMED])

    def exchange(self) -> None:
        n = self._problem.rule.n
        sent = [n * (worker.rule.hi - worker.rule.lo) for worker in self.workers]
        self._round.words_exchanged = max(sum(sent) - own for own in sent)
        for worker in self.workers:
            for other in self.workers:
                if other is not worker:
                    own = slice(other.rule.lo * n, other.rule.hi * n)
                    worker.places.proposals[own] = other.places.proposals[own]

    def result(self) -> tuple[Array, Array]:
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
        self.lists = StrongestEdges(
            start, take(vertices, np.uint8), take(listed, kind), take(listed, weight)
        )
        self.places = ProposalState(
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
            BufferedRows(
                take(rows, kind), 0, take(2 * rows + 1, view.indptr.dtype), 0, 0,
                take(entries, kind), take(entries, weight),
            )
            for _ in range(layout.buffers[p])
        ]  # fmt: skip
        self._turn = 0

    def _next_buffer(self) -> BufferedRows:
        self._turn += 1
        return self._buffers[self._turn % len(self._buffers)]

    def _alone(self, kernel: Any, *arguments: Any) -> None:
        crew(1, work=4 * self._problem.view.n).run(kernel, *arguments)

    def _pack(self, rows: BufferedRows, charge: Charge) -> None:
        team = crew(self._problem.threads, work=4 * (rows.last - rows.first))
        team.run(_pack, rows, charge, self.rule, self.lists, self.places)

    def _count(self, entries: int, more: int) -> None:
        view = self._problem.view
        self.round.entries += entries
        self.round.bytes_up += entries * (self._problem.kind.itemsize + view.data.itemsize) + more

    def stream_all(self, charge: Charge) -> None:
        own = slice(self.rule.lo * self.rule.n, self.rule.hi * self.rule.n)
        self.places.proposals[own] = -1
        self.lists.size[:] = 0
        for batch in self._batches:
            self._stream(batch, charge)
        self.counters[CHANGED] = self.rule.hi - self.rule.lo

    def _stream(self, batch: Batch, charge: Charge) -> None:
        there = filled(self._next_buffer(), self._problem.view, batch)
        self._count(batch.last - batch.first, there.offsets.nbytes)
        self._pack(there, charge)

    def propose(self, charge: Charge) -> None:
        self._alone(_propose, charge, self.rule, self.lists, self.places, self._wanted,
                    self.counters)  # fmt: skip

    def fetch(self, charge: Charge) -> None:
        wanted = self._wanted[: int(self.counters[WANTED])]
        if wanted.size == 0:
            return
        self.round.rows += wanted.size
        self.round.bytes_down += wanted.nbytes
        self.counters[CHANGED] += wanted.size
        view = self._problem.view
        for group in groups(view, wanted, self._buffer):
            buffer, rows, entries = self._next_buffer(), group.ids.size, group.at.size
            buffer.ids[:rows] = group.ids
            buffer.offsets[: rows + 1] = group.offsets
            buffer.columns[:entries] = view.indices[group.at]
            buffer.weights[:entries] = view.data[group.at]
            if not self._resident:
                self._count(entries, buffer.ids[:rows].nbytes + buffer.offsets[: rows + 1].nbytes)
            there = buffer._replace(
                ids=buffer.ids[:rows],
                offsets=buffer.offsets[: rows + 1],
                first=group.first,
                last=group.last,
            )
            self._pack(there, charge)

    def proposed(self) -> int:
        self._alone(_count_proposals, self.rule, self.places.proposals, self.counters)
        return int(self.counters[PROPOSED])

    def confirm(self) -> None:
        self._alone(_confirm, self.rule, self.places, self.counters)

    def table(self) -> tuple[Array, Array]:
        self._alone(_settle, self.rule, self.places)
        shape = (self._part.vertices, self.rule.n)
        return self.places.chosen.reshape(shape), self.places.chosen_weights.reshape(shape)
