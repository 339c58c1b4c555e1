"""[0,n]-factors on a team.  The rule and the paper: __init__.py.

Each member owns a range of rows and a list of those among them that may still propose.  A round
has two halves with a barrier between them:

    propose   reads a row of the matrix and the states of its columns, writes the row's own places
    confirm   reads the places of those that were proposed to, writes the row's own weights

so nobody reads what another may be writing.  A proposal that is not answered gets a negative
weight, and its place is free again when its row proposes next.

Rows are sorted by column, so by ``ties="index"`` an entry displaces another only when it is
heavier: for most entries one comparison with the weakest is all, and the column is not looked at.

Weights are positive, so their bits, read as integers, compare as they do; the kernels of the rounds
get them so, because integers are compared and selected in fewer instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.factors.cpu_two import ANY, FULL, confirm_two, propose_two, sort_pairs
from matchwood.factors.result import Found, Plan
from matchwood.primitives.cpu_hints import natural
from matchwood.primitives.edge_order import order_edges
from matchwood.primitives.edge_order.cpu import prefers, prefers_tied
from matchwood.primitives.hashing.cpu import hash2, random_bit
from matchwood.teams import Team, barrier, crew, device, interrupted, kernel, share_rows, stopping

Array = np.ndarray[Any, Any]

BLOCK = 1 << 14  # vertices charged between two looks at the stop word
FEW = 16  # charging one vertex alone takes as long as that many side by side, on vectors

PROPOSED, REJECTED = 0, 16  # words of a member's tally, a cache line apart
TALLY = 32


@device
def _is_listed(v: Any, first: int, end: int, neighbours: Array) -> bool:
    found = False
    for place in range(natural(first), end):
        found |= neighbours[place] == v
    return found


@device
def _propose(
    team: Team,
    mine: Array,
    charged: bool,
    n: int,
    seed: Any,
    by_hash: bool,
    indptr: Array,
    indices: Array,
    data: Array,
    state: Array,
    neighbours: Array,
    weights: Array,
) -> tuple[int, int]:
    """Each vertex of `mine` fills its free places with those it prefers.

    Returns how many proposals there are, and how many vertices stay in `mine`.
    """
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
def _confirm(
    team: Team, mine: Array, n: int, state: Array, neighbours: Array, weights: Array
) -> tuple[int, int]:
    """Unanswered proposals get negative weights, vertices without room the state FULL.

    Returns how many proposals were not answered, and how many vertices stay in `mine`.
    """
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
def _sort_rows(
    team: Team, lo: int, hi: int, n: int, seed: Any, by_hash: bool, neighbours: Array,
    weights: Array,
) -> None:  # fmt: skip
    """Take out what was not answered, and put the preferred neighbours first."""
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

    A vertex that is no longer listed has only full neighbours, so nobody asks for its charge and
    it may keep an old one.  Not so where `directed`: somebody may have an arc to it that has no
    counterpart, and proposes or not by the charge of this round.
    """
    if not directed and listed.size * FEW < hi - lo:
        for i in range(listed.size):
            v = np.int64(listed[i])
            state[v] = np.uint8(1 + random_bit(v, r, limit))
        return stopping(team)
    for start in range(natural(lo), hi, BLOCK):
        if stopping(team):
            return True
        part = state[start : min(start + BLOCK, hi)]
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
    team: Team,
    indptr: Array,
    indices: Array,
    data: Array,
    n: int,
    limit: int,
    m: int,
    k_m: int,
    bit_limit: Any,
    seed: Any,
    by_hash: bool,
    directed: bool,
    state: Array,
    listed: Array,
    neighbours: Array,
    weights: Array,
    tally: Array,
    result: Array,
) -> None:
    """All rounds.  `result` becomes (rounds, maximal)."""
    pairs = n == 2 and not by_hash
    lo, hi = share_rows(team, indptr)
    mine = listed[lo:hi]  # the first `size` of them are this member's vertices with room left
    size = hi - lo
    for v in range(natural(lo), hi):
        mine[v - lo] = v
        state[v] = ANY
    k, idle, maximal = 0, 0, False
    while k != limit and not (limit < 0 and idle == m):
        charged = k % m != k_m
        if charged:
            r = np.uint32((hash2(0, k, seed) >> np.uint64(32)) | np.uint64(1))
            if _charge(team, lo, hi, mine[:size], directed, r, bit_limit, state):
                return
        if barrier(team):
            return
        if pairs:
            proposed, size = propose_two(
                team, mine[:size], k == 0, charged,
                indptr, indices, data, state, neighbours, weights,
            )  # fmt: skip
        else:
            proposed, size = _propose(
                team, mine[:size], charged, n, seed, by_hash,
                indptr, indices, data, state, neighbours, weights,
            )  # fmt: skip
        tally[team.rank, PROPOSED] = proposed
        if barrier(team):
            return
        k += 1
        proposed = _total(tally, PROPOSED)
        if proposed == 0 and not charged:
            maximal = True
            break
        if pairs:
            rejected, size = confirm_two(team, mine[:size], state, neighbours, weights)
        else:
            rejected, size = _confirm(team, mine[:size], n, state, neighbours, weights)
        tally[team.rank, REJECTED] = rejected
        if barrier(team):
            return
        idle = idle + 1 if _total(tally, REJECTED) == proposed else 0
    if barrier(team):
        return
    if pairs:
        sort_pairs(team, lo, hi, neighbours, weights)
    else:
        _sort_rows(team, lo, hi, n, seed, by_hash, neighbours, weights)
    if team.rank == 0:
        result[0] = k
        result[1] = maximal


def _bits(weights: Array) -> Array:
    return weights.view(np.dtype(f"i{weights.dtype.itemsize}"))


def parallel(view: Any, plan: Plan, *, threads: int | None = None) -> Found:
    """See matchwood.factors.factor."""
    rows, n = view.n, plan.n
    team = crew(threads, work=view.nnz + rows * n)
    neighbours = np.full((rows, n), -1, view.indices.dtype)
    weights = np.zeros((rows, n), view.data.dtype)
    result = np.zeros(2, np.int64)
    team.run(
        _rounds,
        view.indptr,
        view.indices,
        _bits(view.data),
        n,
        plan.limit,
        plan.m,
        plan.k_m,
        np.uint64(plan.barrier),
        np.uint64(plan.seed),
        plan.by_hash,
        plan.directed,
        np.empty(rows, np.uint8),
        np.empty(rows, view.indices.dtype),
        neighbours.reshape(-1),
        _bits(weights).reshape(-1),
        np.zeros((team.size, TALLY), np.int64),
        result,
    )
    return Found(neighbours, weights, int(result[0]), bool(result[1]))


@kernel
def _pass(
    team: Team, indptr: Array, indices: Array, data: Array, n: int, seed: Any, by_hash: bool,
    state: Array, listed: Array, neighbours: Array, weights: Array,
) -> None:  # fmt: skip
    lo, hi = share_rows(team, indptr)
    if n == 2:
        propose_two(
            team, listed[lo:hi], True, False,
            indptr, indices, data, state, neighbours, weights,
        )  # fmt: skip
    else:
        _propose(
            team, listed[lo:hi], False, n, seed, by_hash,
            indptr, indices, data, state, neighbours, weights,
        )  # fmt: skip


class Pass:
    """The proposals of a first round without charges, again and again: for benchmarks."""

    def __init__(self, view: Any, n: int, threads: int | None = None) -> None:
        rows = view.n
        self.neighbours = np.full((rows, n), -1, view.indices.dtype)
        self.weights = np.zeros((rows, n), view.data.dtype)
        self._team = crew(threads, work=view.nnz + rows * n)
        state = np.full(rows, ANY, np.uint8)
        listed = np.arange(rows, dtype=view.indices.dtype)
        flat = self.neighbours.reshape(-1), _bits(self.weights).reshape(-1)
        graph = view.indptr, view.indices, _bits(view.data)
        self._args = (*graph, n, np.uint64(0), False, state, listed, *flat)

    def __call__(self) -> tuple[Array, Array]:
        if self.weights.shape[1] != 2:
            self.weights.fill(0)  # what is positive would count as confirmed
        self._team.run(_pass, *self._args)
        return self.neighbours, self.weights


# Greedy: sorted on the team, taken by one member.


@kernel
def _list_edges(team: Team, indptr: Array, indices: Array, data: Array, starts: Array,
                fill: bool, u: Array, v: Array, w: Array) -> None:  # fmt: skip
    """Count (into starts[rank + 1]), then write, the entries above the diagonal."""
    lo, hi = share_rows(team, indptr)
    at = starts[team.rank] if fill else 0
    for i in range(natural(lo), hi):
        if interrupted(team, i):
            return
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if indices[k] > i:
                if fill:
                    u[at] = i
                    v[at] = indices[k]
                    w[at] = data[k]
                at += 1
    if not fill:
        starts[team.rank + 1] = at


@kernel
def _take(
    team: Team, perm: Array, u: Array, v: Array, w: Array, n: int, degree: Array,
    neighbours: Array, weights: Array,
) -> None:  # fmt: skip
    """Algorithm 1: each edge in turn, if both ends have room."""
    for i in range(perm.size):
        if interrupted(team, i):
            return
        e = natural(np.int64(perm[i]))
        a, b = natural(np.int64(u[e])), natural(np.int64(v[e]))
        if degree[a] < n and degree[b] < n:
            at, back = natural(a * n + degree[a]), natural(b * n + degree[b])
            neighbours[at], neighbours[back] = b, a
            weights[at] = weights[back] = w[e]
            degree[a] += 1
            degree[b] += 1


def greedy(view: Any, plan: Plan, *, threads: int | None = None) -> Found:
    """See matchwood.factors.factor."""
    rows, n = view.n, plan.n
    neighbours = np.full((rows, n), -1, view.indices.dtype)
    weights = np.zeros((rows, n), view.data.dtype)
    team = crew(threads, work=view.nnz + rows)
    starts = np.zeros(team.size + 1, np.int64)
    u, v, w = _edge_arrays(view, 0)
    team.run(_list_edges, *view, starts, False, u, v, w)
    np.cumsum(starts, out=starts)
    u, v, w = _edge_arrays(view, int(starts[-1]))
    team.run(_list_edges, *view, starts, True, u, v, w)
    ties = "hash" if plan.by_hash else "index"
    perm = order_edges(u, v, w, seed=plan.seed, ties=ties, engine="cpu", threads=threads)
    degree = np.zeros(rows, np.int64)
    crew(1, work=perm.size).run(
        _take, perm, u, v, w, n, degree, neighbours.reshape(-1), weights.reshape(-1)
    )
    return Found(neighbours, weights, 0, True)


def _edge_arrays(view: Any, m: int) -> tuple[Array, Array, Array]:
    kind = view.indices.dtype
    return np.empty(m, kind), np.empty(m, kind), np.empty(m, view.data.dtype)
