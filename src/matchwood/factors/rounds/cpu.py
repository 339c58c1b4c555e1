"""Rounds of proposals on a team.  The idea and the paper: __init__.py.

Each thread owns a range of rows and a list of those among them that may still propose.  A round
has two halves with a barrier between them:

    propose   reads a row of the matrix and the states of its columns, writes the row's own places
    confirm   reads the places of those that were proposed to, writes the row's own weights

so no thread reads what another may be writing.  A proposal that is not answered gets a negative
weight, and its place is free again when its row proposes next.

Rows are sorted by column, so with ``ties="index"`` an entry displaces another only when it is
heavier: most entries cost one comparison with the weakest, and their column is not read.  With
``ties="hash"`` the same scan is made, and entries are hashed only where one that was not taken
weighs as much as the lightest one that was.

Weights are positive, so their bits, read as integers, have the same order.  The kernels compare
these integers, which takes fewer instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Team,
    barrier,
    crew,
    device,
    expanded,
    interrupted,
    kernel,
    share_rows,
    stopping,
)
from matchwood.engines.cpu.hints import natural, select
from matchwood.factors.result import FactorArrays, Plan
from matchwood.primitives.edge_order.cpu import prefers, prefers_tied, tie_hash
from matchwood.primitives.hashing.cpu import hash2, random_bit

Array = np.ndarray[Any, Any]

VERTICES_PER_STOP_TEST = 1 << 14  # vertices charged between two tests of the stop word
VECTOR_GAIN = 16  # vertices charged by vector instructions in the time of one vertex charged alone

# State of a vertex: full, or the charge.  Without charges any state but FULL is admissible.
FULL, ANY = 0, 3  # the charges are 1 and 2

MOST_IN_VARIABLES = 4  # neighbours of a vertex that the loops below keep in variables
BRANCH_FREE_ENTRIES = 32  # first entries of a row, in which the heaviest two change unpredictably

# Words of a member's tally; the cache lines of a processor have 8 words, or 16 by pairs.
PROPOSED = 0  # proposals of this round
REJECTED = 16  # those that were not answered
TALLY_WORDS = 32


class Adjacency(NamedTuple):
    """The graph, row by row; the weights by their bits."""

    indptr: Any
    indices: Any
    data: Any


class Proposals(NamedTuple):
    """What rounds read and write: a state for each vertex, and n places for its neighbours."""

    state: Any  # (N,) FULL or a charge
    neighbours: Any  # (N n,) -1 for none
    weights: Any  # (N n,) bits; positive: confirmed or proposed, negative: not answered


class Rule(NamedTuple):
    """The numbers of a `Plan` that the kernels of the rounds need."""

    n: int
    limit: int
    period: int
    uncharged: int
    barrier: Any  # as in `Plan`
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
    team: Team, mine: Array, charged: bool, rule: Rule, rows: Adjacency, places: Proposals
) -> tuple[int, int]:
    """Each vertex of `mine` fills its free places with those it prefers.

    Returns the number of proposals, and of the vertices that stay in `mine`.
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
        first = start  # the first free place, after those of unanswered proposals are freed
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


# n = 1 to 4.  `_propose_two` does what `_propose` does for any n, etc.: for n = 2, the common case,
# all of a round, for the others the proposals.  The heaviest entries of a row are
# kept in variables, so no branch depends on weights or states, which the processor could not
# predict.  Time of a factor relative to the loops for any n, one thread, random weights: n = 1 0.79
# and n = 2 0.72 on a random graph of 16 entries a row; n = 3 and 4 0.72 to 0.78 on meshes of 48^3,
# but the same on the random graph and on R-MAT.


@expanded
def _inserted(best: Any, heaviest: Any, j: Any, w: Any) -> Any:
    """The four heaviest entries and their weights, with another one."""
    a, b, c, d = best
    w_a, w_b, w_c, w_d = heaviest
    heavier = w > w_d
    d, w_d = select(heavier, j, d), select(heavier, w, w_d)
    heavier = w > w_c
    d, w_d = select(heavier, c, d), select(heavier, w_c, w_d)
    c, w_c = select(heavier, j, c), select(heavier, w, w_c)
    heavier = w > w_b
    c, w_c = select(heavier, b, c), select(heavier, w_b, w_c)
    b, w_b = select(heavier, j, b), select(heavier, w, w_b)
    heavier = w > w_a
    b, w_b = select(heavier, a, b), select(heavier, w_a, w_b)
    a, w_a = select(heavier, j, a), select(heavier, w, w_a)
    return (a, b, c, d), (w_a, w_b, w_c, w_d)


@device
def _count(row: Array, weight: Any) -> int:
    """The entries of this weight."""
    found = 0
    for k in range(row.size):
        found += row[k] == weight
    return found


@device
def _tied(
    v: Any, wanted: Any, weight: Any, known: Any, seed: Any, rows: Adjacency, state: Array
) -> Any:
    """The first four by hash among the neighbours of this weight that v may propose to."""
    x, y, z = known
    nobody, none = np.int64(-1), np.uint64(0)
    best, hashes = (nobody, nobody, nobody, nobody), (none, none, none, none)
    for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])):
        if rows.data[k] == weight:
            j = np.int64(natural(np.int64(rows.indices[k])))
            if (state[j] & wanted != 0) and j != x and j != y and j != z:
                h = max(tie_hash(v, j, seed), np.uint64(1))  # 0 is nobody's
                best, hashes = _inserted(best, hashes, j, h)
    return best


@device
def _propose_two(
    team: Team, mine: Array, fresh: bool, charged: bool, rule: Rule, rows: Adjacency,
    places: Proposals,
) -> tuple[Any, Any]:  # fmt: skip
    """`_propose` for n = 2; `fresh`: nothing is confirmed yet, and places are not read."""
    by_hash = rule.by_hash
    indptr, indices, data = rows
    state, neighbours, weights = places
    proposed = left = np.int64(0)
    none, no_vertex = data.dtype.type(0), np.int64(-1)
    for i in range(mine.size):
        if interrupted(team, i):
            break
        v = natural(np.int64(mine[i]))
        wanted = np.uint8(ANY - state[v] if charged else ANY)
        start, last = natural(2 * v), natural(2 * v + 1)
        kept, w_kept = no_vertex, none
        if not fresh:
            in_first = weights[start] > 0
            w_kept = max(weights[start], weights[last], none)
            kept = select(in_first, np.int64(neighbours[start]), np.int64(neighbours[last]))
            kept = select(w_kept > 0, kept, no_vertex)
        a = b = no_vertex
        w_a = w_b = none
        begin, end = np.uint64(indptr[v]), np.uint64(indptr[v + 1])
        middle = min(end, begin + np.uint64(BRANCH_FREE_ENTRIES))
        for k in range(begin, middle):
            j = np.int64(natural(np.int64(indices[k])))
            w = select((state[j] & wanted != 0) & (j != kept), data[k], none)
            heavier = w > w_b
            b, w_b = select(heavier, j, b), select(heavier, w, w_b)
            heavier = w > w_a
            b, w_b = select(heavier, a, b), select(heavier, w_a, w_b)
            a, w_a = select(heavier, j, a), select(heavier, w, w_a)
        for k in range(middle, end):
            w = data[k]
            if w > w_b:
                j = np.int64(natural(np.int64(indices[k])))
                if state[j] & wanted != 0 and j != kept:
                    heavier = w > w_a
                    b, w_b = select(heavier, a, j), select(heavier, w_a, w)
                    a, w_a = select(heavier, j, a), select(heavier, w, w_a)
        free = kept < 0
        if by_hash and w_b > 0:
            taken = 1 + np.int64(w_a == w_b)
            if _count(data[begin:end], w_b) > taken if free else w_a == w_b:
                known = (kept, kept, kept)
                x, y, _, _ = _tied(v, wanted, w_b, known, rule.seed, rows, state)
                a, b = select(w_a > w_b, a, x), select(w_a > w_b, x, y)
        neighbours[start], weights[start] = select(free, a, kept), select(free, w_a, w_kept)
        neighbours[last], weights[last] = select(free, b, a), select(free, w_b, w_a)
        proposals = np.int64(a >= 0) + np.int64(free & (b >= 0))
        proposed += proposals
        mine[natural(left)] = v
        left += np.int64(charged | (proposals > 0))  # else no neighbour has room, now and later
    return proposed, left


@device
def _confirm_two(team: Team, mine: Array, places: Proposals) -> tuple[Any, Any]:
    state, neighbours, weights = places
    rejected = left = np.int64(0)
    for i in range(mine.size):
        if interrupted(team, i):
            break
        v = natural(np.int64(mine[i]))
        answered = np.int64(0)
        for place in range(natural(2 * v), 2 * v + 2):
            j = np.int64(neighbours[place])
            asked = j >= 0
            at = natural(2 * select(asked, j, np.int64(v)))
            listed = (neighbours[at] == v) | (neighbours[at + 1] == v)
            refused = asked & (not listed)
            answered += np.int64(asked & listed)
            rejected += np.int64(refused)
            w = weights[place]
            weights[place] = select(refused, -w, w)
        full = answered == 2
        state[v] = select(full, np.uint8(FULL), state[v])
        mine[natural(left)] = v
        left += np.int64(not full)
    return rejected, left


@device
def _sort_pairs(team: Team, lo: int, hi: int, rule: Rule, places: Proposals) -> None:
    """`_sort_rows` for n = 2."""
    neighbours, weights = places.neighbours, places.weights
    none, no_vertex = weights.dtype.type(0), np.int64(-1)
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        start, last = natural(2 * v), natural(2 * v + 1)
        w_a, w_b = max(weights[start], none), max(weights[last], none)
        a = select(w_a > 0, np.int64(neighbours[start]), no_vertex)
        b = select(w_b > 0, np.int64(neighbours[last]), no_vertex)
        swap = (w_b > w_a) | ((w_b == w_a) & (b < a))
        if rule.by_hash and w_b == w_a and w_a > 0:
            swap = prefers_tied(v, b, v, a, rule.seed, True)
        neighbours[start], weights[start] = select(swap, b, a), select(swap, w_b, w_a)
        neighbours[last], weights[last] = select(swap, a, b), select(swap, w_a, w_b)


@device
def _propose_one(
    team: Team, mine: Array, charged: bool, rule: Rule, rows: Adjacency, places: Proposals
) -> tuple[Any, Any]:
    """`_propose` for n = 1: a vertex that may propose has nothing confirmed."""
    by_hash, nobody = rule.by_hash, np.int64(-1)
    indptr, indices, data = rows
    state, neighbours, weights = places
    proposed = left = np.int64(0)
    none = data.dtype.type(0)
    for i in range(mine.size):
        if interrupted(team, i):
            break
        v = natural(np.int64(mine[i]))
        wanted = np.uint8(ANY - state[v] if charged else ANY)
        a, w_a = nobody, none
        begin, end = np.uint64(indptr[v]), np.uint64(indptr[v + 1])
        middle = min(end, begin + np.uint64(BRANCH_FREE_ENTRIES))
        for k in range(begin, middle):
            j = np.int64(natural(np.int64(indices[k])))
            w = select(state[j] & wanted != 0, data[k], none)
            heavier = w > w_a
            a, w_a = select(heavier, j, a), select(heavier, w, w_a)
        for k in range(middle, end):
            if data[k] > w_a:
                j = np.int64(natural(np.int64(indices[k])))
                heavier = state[j] & wanted != 0
                a, w_a = select(heavier, j, a), select(heavier, data[k], w_a)
        if by_hash and w_a > 0 and _count(data[begin:end], w_a) > 1:
            a, _, _, _ = _tied(v, wanted, w_a, (nobody, nobody, nobody), rule.seed, rows, state)
        neighbours[v], weights[v] = a, w_a
        proposed += np.int64(a >= 0)
        mine[natural(left)] = v
        left += np.int64(charged | (a >= 0))  # else no neighbour has room, now and later
    return proposed, left


@expanded
def _confirmed(start: int, n: int, neighbours: Array, weights: Array) -> int:
    """Put confirmed neighbours first; returns their number."""
    kept: Any = 0
    for place in range(natural(start), start + n):
        j, w = neighbours[place], weights[place]
        neighbours[natural(start + kept)], weights[natural(start + kept)] = j, w
        kept += np.int64(w > 0)
    return kept


@device
def _propose_four(
    team: Team, mine: Array, fresh: bool, charged: bool, rule: Rule, rows: Adjacency,
    places: Proposals,
) -> tuple[Any, Any]:  # fmt: skip
    """`_propose` for n = 3 and 4; `fresh`: nothing is confirmed yet, and places are not read."""
    n, by_hash = rule.n, rule.by_hash
    indptr, indices, data = rows
    state, neighbours, weights = places
    proposed = left = np.int64(0)
    none, nobody = data.dtype.type(0), np.int64(-1)
    for i in range(mine.size):
        if interrupted(team, i):
            break
        v = natural(np.int64(mine[i]))
        wanted = np.uint8(ANY - state[v] if charged else ANY)
        start = natural(v * n)
        kept = np.int64(0 if fresh else _confirmed(start, n, neighbours, weights))
        x = np.int64(neighbours[start]) if kept > 0 else nobody
        y = np.int64(neighbours[start + 1]) if kept > 1 else nobody
        z = np.int64(neighbours[start + 2]) if kept > 2 else nobody
        best, heaviest = (nobody, nobody, nobody, nobody), (none, none, none, none)
        begin, end = np.uint64(indptr[v]), np.uint64(indptr[v + 1])
        middle = min(end, begin + np.uint64(BRANCH_FREE_ENTRIES))
        for k in range(begin, middle):
            j = np.int64(natural(np.int64(indices[k])))
            welcome = (state[j] & wanted != 0) & (j != x) & (j != y) & (j != z)
            best, heaviest = _inserted(best, heaviest, j, select(welcome, data[k], none))
        for k in range(middle, end):
            w = data[k]
            if w > heaviest[3]:
                j = np.int64(natural(np.int64(indices[k])))
                welcome = (state[j] & wanted != 0) & (j != x) & (j != y) & (j != z)
                best, heaviest = _inserted(best, heaviest, j, select(welcome, w, none))
        proposals = np.int64(0)
        for place in range(n - kept):
            at = natural(start + kept + place)
            neighbours[at], weights[at] = best[place], heaviest[place]
            proposals += np.int64(best[place] >= 0)
        lightest = heaviest[n - kept - 1]
        if by_hash and lightest > 0:
            above = 0
            while heaviest[above] > lightest:
                above += 1
            if (
                heaviest[n - kept] == lightest
                if n - kept < MOST_IN_VARIABLES
                else _count(data[begin:end], lightest) > MOST_IN_VARIABLES - above
            ):
                best = _tied(v, wanted, lightest, (x, y, z), rule.seed, rows, state)
                for place in range(above, n - kept):
                    neighbours[natural(start + kept + place)] = best[place - above]
        proposed += proposals
        mine[natural(left)] = v
        left += np.int64(charged | (proposals > 0))  # else no neighbour has room, now and later
    return proposed, left


# Rounds


@device
def propose_by(
    team: Team, mine: Array, fresh: bool, charged: bool, rule: Rule, rows: Adjacency,
    places: Proposals,
) -> tuple[int, int]:  # fmt: skip
    """`_propose` by the fastest loop for n; `fresh`: nothing is confirmed yet."""
    if rule.n == 1:
        return _propose_one(team, mine, charged, rule, rows, places)
    if rule.n == 2:
        return _propose_two(team, mine, fresh, charged, rule, rows, places)
    if rule.n <= MOST_IN_VARIABLES:
        return _propose_four(team, mine, fresh, charged, rule, rows, places)
    return _propose(team, mine, charged, rule, rows, places)


@device
def _confirm(team: Team, mine: Array, n: int, places: Proposals) -> tuple[int, int]:
    """Unanswered proposals get negative weights, vertices without room the state FULL.

    Returns the number of unanswered proposals, and of the vertices that stay in `mine`.
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
def _sort_rows(team: Team, lo: int, hi: int, rule: Rule, places: Proposals) -> None:
    """Remove unanswered proposals, and put the preferred neighbours first."""
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
    if not directed and listed.size * VECTOR_GAIN < hi - lo:
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
    for member in range(tally.shape[0]):
        total += tally[member, word]
    return total


@kernel
def _rounds(
    team: Team, rows: Adjacency, rule: Rule, places: Proposals, listed: Array, tally: Array,
    result: Array,
) -> None:  # fmt: skip
    """All rounds.  `result` becomes (rounds, maximal)."""
    n, limit, state = rule.n, rule.limit, places.state
    pairs = n == 2
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
        proposed, size = propose_by(team, mine[:size], k == 0, charged, rule, rows, places)
        tally[team.me, PROPOSED] = proposed
        if barrier(team):
            return
        k += 1
        proposed = _total(tally, PROPOSED)
        if proposed == 0 and not charged:
            maximal = True
            break
        if pairs:
            rejected, size = _confirm_two(team, mine[:size], places)
        else:
            rejected, size = _confirm(team, mine[:size], n, places)
        tally[team.me, REJECTED] = rejected
        if barrier(team):
            return
        idle = idle + 1 if _total(tally, REJECTED) == proposed else 0
    if barrier(team):
        return
    if pairs:
        _sort_pairs(team, lo, hi, rule, places)
    else:
        _sort_rows(team, lo, hi, rule, places)
    if team.me == 0:
        result[0] = k
        result[1] = maximal


def bits_of(weights: Array) -> Array:
    return weights.view(np.dtype(f"i{weights.dtype.itemsize}"))


def rule_of(plan: Plan) -> Rule:
    return Rule(
        plan.n, plan.limit, plan.period, plan.uncharged, np.uint64(plan.barrier),
        np.uint64(plan.seed), plan.by_hash, plan.directed,
    )  # fmt: skip


def find(view: Any, plan: Plan, *, keep: Any = None, threads: int | None = None) -> FactorArrays:
    n = plan.n
    team = crew(threads, work=view.nnz + view.n * n)
    neighbours = np.full((view.n, n), -1, view.indices.dtype)
    weights = np.zeros((view.n, n), view.data.dtype)
    result = np.zeros(2, np.int64)
    team.run(
        _rounds, Adjacency(view.indptr, view.indices, bits_of(view.data)), rule_of(plan),
        Proposals(np.empty(view.n, np.uint8), neighbours.reshape(-1), bits_of(weights).reshape(-1)),
        np.empty(view.n, view.indices.dtype), np.zeros((team.size, TALLY_WORDS), np.int64), result,
    )  # fmt: skip
    return FactorArrays(neighbours, weights, int(result[0]), bool(result[1]))
