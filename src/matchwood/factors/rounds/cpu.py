"""Rounds of proposals on a team.  The idea and the paper: __init__.py.

Each thread owns a range of rows and a list of those among them that may still propose.  A round
has two halves with a barrier between them:

    propose   reads a row of the matrix and the states of its columns, writes the row's own places
    confirm   reads the places of those that were proposed to, writes the row's own weights

so no thread reads what another may be writing.  A proposal that is not answered gets a negative
weight, and its place is free again when its row proposes next.

Rows are sorted by column, so by ``ties="index"`` an entry displaces another only when it is
heavier: most entries cost one comparison with the weakest, and their column is not read.

Weights are positive, so their bits, read as integers, have the same order.  The kernels of the
rounds take them so, because integers are compared and selected in fewer instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Team,
    barrier,
    crew,
    device,
    interrupted,
    kernel,
    share_rows,
    stopping,
)
from matchwood.engines.cpu.hints import natural
from matchwood.factors.result import Found, Plan
from matchwood.factors.rounds.cpu_few import (
    ANY,
    FULL,
    MOST,
    Places,
    Rows,
    confirm_two,
    propose_four,
    propose_one,
    propose_two,
    sort_pairs,
)
from matchwood.primitives.edge_order.cpu import prefers, prefers_tied
from matchwood.primitives.hashing.cpu import hash2, random_bit

Array = np.ndarray[Any, Any]

VERTICES_PER_STOP_TEST = 1 << 14  # charged between two tests of the stop word
VERTICES_PER_ALONE = 16  # charged by vector instructions in the time of one vertex charged alone

# Words of a member's tally; the cache lines of a processor have 8 words, or 16 by pairs.
PROPOSED = 0  # proposals of this round
REJECTED = 16  # those that were not answered
TALLY_WORDS = 32


class Rule(NamedTuple):
    """The numbers of a `Plan` that the kernels of the rounds need."""

    n: int
    limit: int
    period: int
    uncharged: int
    barrier: Any  # of random_bit
    seed: Any
    by_hash: bool
    directed: bool


@device
def _is_listed(v: Any, first: int, end: int, neighbours: Array) -> bool:
    found = False
    for place in range(natural(first), end):
        found |= neighbours[place] == v
    return found


@device
def _propose(
    team: Team, mine: Array, charged: bool, rule: Rule, rows: Rows, places: Places
) -> tuple[int, int]:
    """Each vertex of `mine` fills its free places with those it prefers.

    Returns how many proposals there are, and how many vertices stay in `mine`.
    """
    n, seed, by_hash = rule.n, rule.seed, rule.by_hash
    indptr, indices, data = rows
    state, neighbours, weights = places
    proposed, left = 0, 0
    for i in range(mine.size):
        if interrupted(team, i):
            break
        v = natural(np.int64(mine[i]))
        wanted = np.uint8(ANY - state[v] if charged else ANY)
        start, last = natural(v * n), natural(v * n + n - 1)
        first = start  # of the free places, when those of unanswered proposals are given back
        for place in range(start, last + 1):
            if weights[place] > 0:
                if first < place:
                    neighbours[first] = neighbours[place]
                    weights[first] = weights[place]
                first += 1
        for place in range(first, last + 1):
            neighbours[place] = -1
            weights[place] = 0
        weakest = weights[last]
        for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
            w = data[k]
            if w < weakest or (w == weakest and not by_hash):
                continue
            j = natural(np.int64(indices[k]))
            if state[j] & wanted == 0:
                continue
            if first > start and _is_listed(j, start, first, neighbours):
                continue
            if w == weakest and not prefers_tied(
                v, j, v, np.int64(neighbours[last]), seed, by_hash
            ):
                continue
            place = last
            while place > first:
                before = weights[place - 1]
                if w < before or (w == before and not by_hash):
                    break
                if w == before and not prefers_tied(
                    v, j, v, np.int64(neighbours[place - 1]), seed, by_hash
                ):
                    break
                neighbours[place] = neighbours[place - 1]
                weights[place] = before
                place -= 1
            neighbours[place] = j
            weights[place] = w
            weakest = weights[last]
        proposals = 0
        while first + proposals <= last and neighbours[first + proposals] >= 0:
            proposals += 1
        proposed += proposals
        if charged or proposals > 0:  # else no neighbour has room, now and later
            mine[natural(left)] = v
            left += 1
    return proposed, left


@device
def _propose_by(
    team: Team, mine: Array, fresh: bool, charged: bool, rule: Rule, rows: Rows, places: Places
) -> tuple[int, int]:
    """`_propose` by the quickest loop for n; `fresh`: nothing is confirmed yet."""
    if rule.by_hash or rule.n > MOST:
        return _propose(team, mine, charged, rule, rows, places)
    if rule.n == 1:
        return propose_one(team, mine, charged, rows, places)
    if rule.n == 2:
        return propose_two(team, mine, fresh, charged, rows, places)
    return propose_four(team, mine, fresh, charged, rule.n, rows, places)


@device
def _confirm(team: Team, mine: Array, n: int, places: Places) -> tuple[int, int]:
    """Unanswered proposals get negative weights, vertices without room the state FULL.

    Returns how many proposals were not answered, and how many vertices stay in `mine`.
    """
    state, neighbours, weights = places
    rejected, left = 0, 0
    for i in range(mine.size):
        if interrupted(team, i):
            break
        v = natural(np.int64(mine[i]))
        answered = 0
        for place in range(natural(v * n), v * n + n):
            j = np.int64(neighbours[place])
            if j < 0:
                break
            if _is_listed(v, j * n, j * n + n, neighbours):
                answered += 1
            else:
                weights[place] = -weights[place]
                rejected += 1
        if answered == n:
            state[v] = FULL
        else:
            mine[natural(left)] = v
            left += 1
    return rejected, left


@device
def _sort_rows(team: Team, lo: int, hi: int, rule: Rule, places: Places) -> None:
    """Take out what was not answered, and put the preferred neighbours first."""
    n, seed, by_hash = rule.n, rule.seed, rule.by_hash
    neighbours, weights = places.neighbours, places.weights
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        start, kept = natural(v * n), natural(v * n)
        for i in range(start, start + n):
            j, w = np.int64(neighbours[i]), weights[i]
            if w > 0:
                place = kept
                while place > start and prefers(
                    w, v, j, weights[place - 1], v, np.int64(neighbours[place - 1]), seed, by_hash
                ):
                    neighbours[place] = neighbours[place - 1]
                    weights[place] = weights[place - 1]
                    place -= 1
                neighbours[place] = j
                weights[place] = w
                kept += 1
        for i in range(kept, start + n):
            neighbours[i] = -1
            weights[i] = 0


@device
def _charge(
    team: Team, lo: int, hi: int, listed: Array, directed: bool, r: Any, limit: Any, state: Array
) -> bool:
    """Charge this member's vertices that are not full.  True: the team stops.

    A vertex that is no longer listed has only full neighbours, so its charge is not read, and may
    be an old one.  Not so with `directed`: another vertex may have an arc to it without an arc
    back, and proposes or not by the charge of this round.
    """
    if not directed and listed.size * VERTICES_PER_ALONE < hi - lo:
        for i in range(listed.size):
            v = np.int64(listed[i])
            state[v] = np.uint8(1 + random_bit(v, r, limit))
        return stopping(team)
    for start in range(natural(lo), hi, VERTICES_PER_STOP_TEST):
        if stopping(team):
            return True
        part = state[start : min(start + VERTICES_PER_STOP_TEST, hi)]
        for i in range(part.size):
            charge = np.uint8(random_bit(start + i, r, limit)) + np.uint8(1)
            part[i] = np.uint8(charge if part[i] != 0 else 0)
    return False


@device
def _total(tally: Array, word: int) -> int:
    total = 0
    for rank in range(tally.shape[0]):
        total += tally[rank, word]
    return total


@kernel
def _rounds(
    team: Team, rows: Rows, rule: Rule, places: Places, listed: Array, tally: Array, result: Array
) -> None:
    """All rounds.  `result` becomes (rounds, maximal)."""
    n, limit, state = rule.n, rule.limit, places.state
    pairs = n == 2 and not rule.by_hash
    lo, hi = share_rows(team, rows.indptr)
    mine = listed[lo:hi]  # the first `size` of them are this member's vertices with room left
    size = hi - lo
    for v in range(natural(lo), hi):
        mine[v - lo] = v
        state[v] = ANY
    k, idle, maximal = 0, 0, False
    while k != limit and not (limit < 0 and idle == rule.period):
        charged = k % rule.period != rule.uncharged
        if charged:
            r = np.uint32((hash2(0, k, rule.seed) >> np.uint64(32)) | np.uint64(1))
            if _charge(team, lo, hi, mine[:size], rule.directed, r, rule.barrier, state):
                return
        if barrier(team):
            return
        proposed, size = _propose_by(team, mine[:size], k == 0, charged, rule, rows, places)
        tally[team.rank, PROPOSED] = proposed
        if barrier(team):
            return
        k += 1
        proposed = _total(tally, PROPOSED)
        if proposed == 0 and not charged:
            maximal = True
            break
        if pairs:
            rejected, size = confirm_two(team, mine[:size], places)
        else:
            rejected, size = _confirm(team, mine[:size], n, places)
        tally[team.rank, REJECTED] = rejected
        if barrier(team):
            return
        idle = idle + 1 if _total(tally, REJECTED) == proposed else 0
    if barrier(team):
        return
    if pairs:
        sort_pairs(team, lo, hi, places)
    else:
        _sort_rows(team, lo, hi, rule, places)
    if team.rank == 0:
        result[0] = k
        result[1] = maximal


def _bits(weights: Array) -> Array:
    return weights.view(np.dtype(f"i{weights.dtype.itemsize}"))


def _rule(plan: Plan) -> Rule:
    return Rule(
        plan.n, plan.limit, plan.period, plan.uncharged, np.uint64(plan.barrier),
        np.uint64(plan.seed), plan.by_hash, plan.directed,
    )  # fmt: skip


def find(view: Any, plan: Plan, *, keep: Any = None, threads: int | None = None) -> Found:
    """See matchwood.factors.degree_factor."""
    n = plan.n
    team = crew(threads, work=view.nnz + view.n * n)
    neighbours = np.full((view.n, n), -1, view.indices.dtype)
    weights = np.zeros((view.n, n), view.data.dtype)
    result = np.zeros(2, np.int64)
    team.run(
        _rounds,
        Rows(view.indptr, view.indices, _bits(view.data)),
        _rule(plan),
        Places(np.empty(view.n, np.uint8), neighbours.reshape(-1), _bits(weights).reshape(-1)),
        np.empty(view.n, view.indices.dtype),
        np.zeros((team.size, TALLY_WORDS), np.int64),
        result,
    )
    return Found(neighbours, weights, int(result[0]), bool(result[1]))


@kernel
def _pass(team: Team, rows: Rows, rule: Rule, places: Places, listed: Array) -> None:
    lo, hi = share_rows(team, rows.indptr)
    _propose_by(team, listed[lo:hi], True, False, rule, rows, places)


class Pass:
    """The proposals of a first round without charges, again and again: for benchmarks."""

    def __init__(self, view: Any, n: int, threads: int | None = None) -> None:
        self.neighbours = np.full((view.n, n), -1, view.indices.dtype)
        self.weights = np.zeros((view.n, n), view.data.dtype)
        self._team = crew(threads, work=view.nnz + view.n * n)
        state = np.full(view.n, ANY, np.uint8)
        self._args = (
            Rows(view.indptr, view.indices, _bits(view.data)),
            _rule(Plan(n, 1, 1, 0, 0, 0, False)),
            Places(state, self.neighbours.reshape(-1), _bits(self.weights).reshape(-1)),
            np.arange(view.n, dtype=view.indices.dtype),
        )

    def __call__(self) -> tuple[Array, Array]:
        if self.weights.shape[1] > MOST:
            self.weights.fill(0)  # what is positive would count as confirmed
        self._team.run(_pass, *self._args)
        return self.neighbours, self.weights
