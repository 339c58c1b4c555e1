"""Rounds of short augmentations on a team.  The definition: __init__.py.

The suitor method makes the greedy matching.  A round has six steps, with a barrier after each:

    choose    the units of the queue (all, in the first round) find their best exchange; those
              that gain are the candidates
    claim     each candidate raises the gain of the units it touches ...
    rank      ... and where it has reached the largest one, their tie word
    decide    a candidate that is first at all the units it touches wins
    make      winners change the matching; what they touch is theirs alone
    wake      neighbours of changed units that may gain by the change are the next queue

The first round reads all rows once.  Later ones go by bounds: `arm` is the most a vertex can gain.
It can rise only when an arm costs less than before, so the neighbours of such vertices are
examined; bounds that fell are found when a unit seems to gain.  A new edge may close cycles, which
are searched from its end with fewer neighbours.  All other units would choose what they chose
before, which gained nothing.  So the answer is that of the definition.

A scan of a row only notices equal gains; the row is then scanned again with the full order of
edges.  matching/cpu.py has no scan for this: the gain of an arm is no weight of its row, and the
heaviest weight is needed as well.  Gains and tie words of claims are compared in two steps, since
both together are wider than a word.

Races.  `choose` and `wake` read the matching, which no member changes then.  A unit is queued once:
`queued` is set by exchange; so its row is scanned, and its words are written, by one member.
`claim` and `rank` are atomic maxima.  `decide` only reads them.  In `make` winners share no
unit, and losers reset claims that are not read any more.  The order of lists is arbitrary, and
nothing depends on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Team,
    advance,
    atomic_add,
    atomic_exchange,
    atomic_max,
    barrier,
    crew,
    device,
    expanded,
    expect,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    store_relaxed,
    workspace,
)
from matchwood.matching.augmented import LEAST_GAIN, LIMIT, two_factors
from matchwood.matching.cpu import (
    Ties,
    WeightedRows,
    begin,
    block_sums,
    end,
    matched_weight,
    sum_blocks,
)
from matchwood.matching.methods import EngineMatching, load
from matchwood.primitives.edge_order.cpu import rank_in_row
from matchwood.primitives.frontier.cpu import BUFFER, flush, push
from matchwood.primitives.hashing.cpu import mix64

Array = np.ndarray[Any, Any]
ANYTHING = 1 << 61  # more than two weights; two of these fit into 64 bits
CHUNK = 512  # vertices that a member takes at a time in the first round
QUEUE_CHUNK = 32  # units of a queue that a member takes at a time; their rows may be long

# Words of `shared`, a cache line apart: lengths of the list of changed vertices and of two queues,
# candidates, rounds.
_LINE = 16
_CHANGED, _QUEUED, _CANDIDATES, _ROUNDS = 0, _LINE, 3 * _LINE, 4 * _LINE
SHARED = 5 * _LINE


# What one unit would exchange: its arms, paths and cycles.  The matching is read, not changed.


class Scale(NamedTuple):
    """Weights times both factors, truncated, are the integers; see `two_factors`."""

    first: float
    second: float


class Weighing(NamedTuple):
    """How gains are compared, and the limits of a run."""

    scale: Scale
    ties: Ties
    least: int  # the least gain of an exchange
    limit: int  # rounds


class State(NamedTuple):
    """The graph, the matching, and for each vertex what its last scan found, or bounds of that."""

    rows: WeightedRows
    mate: Array  # all ones for free vertices
    own: Array  # weight of the edge at v, 0 for free vertices
    price: Array  # the same as an integer: what an arm to v costs
    arm: Array  # the most that the best arm of v gains, 0 for none
    target: Array  # where it led to when v was scanned
    stale: Array  # 1: arm may have risen since
    heaviest: Array  # heaviest weight in the row, as an integer; bounds the gain of a cycle


@device
def cut(w: Any, scale: Scale) -> Any:
    """The integer of a weight."""
    return np.int64(np.float64(w) * scale.first * scale.second)


@device
def unit_of(mate: Array, v: Any) -> Any:
    """The smaller end of the edge at v; v itself where it is free."""
    return min(v, mate[v])  # a free one has all ones there


@device
def place_in_row(rows: WeightedRows, u: Any, v: Any) -> Any:
    """Where v is in the row of u, or the end of that row where it is not."""
    low, high = begin(rows, u), end(rows, u)
    stop = high
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if rows.indices[middle] < v:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low if low < stop and rows.indices[low] == v else stop


@device
def degree(rows: WeightedRows, u: Any) -> Any:
    return end(rows, u) - begin(rows, u)


@device
def weight_between(rows: WeightedRows, u: Any, v: Any) -> Any:
    """The weight of {u, v}, from the shorter row; 0 if that lacks it: not symmetric."""
    if degree(rows, v) < degree(rows, u):
        u, v = v, u
    place = place_in_row(rows, u, v)
    return rows.weights[place] if place < end(rows, u) else rows.weights.dtype.type(0)


@device
def _comes_first(value: Any, best: Any, u: Any, x: Any, best_x: Any, ties: Ties) -> bool:
    """Whether the arm {u, x} is better than {u, best_x}, an earlier one of the row or none."""
    if value != best or value == 0:
        return value > best
    seed, by_hash = ties
    return rank_in_row(u, x, seed, by_hash) > rank_in_row(u, best_x, seed, by_hash)


@device
def _first_arm(u: Any, avoided: Any, also: Any, state: State, weighing: Weighing) -> Any:
    """The best arm of u, by the full order, to neither of two vertices: its gain and end, or u."""
    best, best_x = np.int64(0), u
    for k in range(begin(state.rows, u), end(state.rows, u)):
        x = state.rows.indices[k]
        value = cut(state.rows.weights[k], weighing.scale) - state.price[x]
        if value < best or x == avoided or x == also:  # noqa: SIM109  a tuple costs more
            continue
        if _comes_first(value, best, u, x, best_x, weighing.ties):
            best, best_x = value, x
    return best, best_x


@expanded
def scan_arms(u: Any, state: State, weighing: Weighing) -> None:
    """Find the best arm of u and the heaviest weight in its row."""
    price = state.price
    best, best_x, heaviest = np.int64(0), u, np.int64(0)
    tied = False
    for k in range(begin(state.rows, u), end(state.rows, u)):
        x, w = state.rows.indices[k], cut(state.rows.weights[k], weighing.scale)
        value = w - price[x]
        heaviest = max(heaviest, w)
        if value > 0 and value >= best:
            tied |= value == best
            if value > best:
                best, best_x = value, x
    if tied:
        best, best_x = _first_arm(u, u, u, state, weighing)
    state.arm[u], state.target[u], state.heaviest[u] = best, best_x, heaviest
    state.stale[u] = 0


@device
def _best_cycle(u: Any, state: State, scale: Scale, least: Any) -> Any:
    """The best cycle of the unit {u, v} that gains more than `least`, and the x at u; u for none.

    The shorter of both rows is read, and for each edge there the opposite one is looked up.
    """
    mate, price = state.mate, state.price
    v = mate[u]
    a, b = (u, v) if degree(state.rows, u) <= degree(state.rows, v) else (v, u)
    given_up, most = price[u], state.heaviest[b]
    best, best_x = least, u
    for k in range(begin(state.rows, a), end(state.rows, a)):
        x = state.rows.indices[k]
        half = cut(state.rows.weights[k], scale) - price[x] - given_up
        if half + most < best or price[x] > given_up:
            continue
        y = mate[x]
        if y == ~mate.dtype.type(0) or y == a or half + state.heaviest[y] < best:
            continue
        place = place_in_row(state.rows, b, y)
        if place == end(state.rows, b):
            continue
        gain, at_u = half + cut(state.rows.weights[place], scale), x if a == u else y
        if gain > best or (gain == best and best_x != u and at_u < best_x):
            best, best_x = gain, at_u
    return best, best_x


@device
def _best_edge(u: Any, state: State, weighing: Weighing) -> Any:
    """The best edge of the free u to a free neighbour: its weight, and where; u for none."""
    free = ~state.mate.dtype.type(0)
    best, best_x = np.int64(0), u
    for k in range(begin(state.rows, u), end(state.rows, u)):
        x = state.rows.indices[k]
        if state.mate[x] == free:
            value = cut(state.rows.weights[k], weighing.scale)
            if _comes_first(value, best, u, x, best_x, weighing.ties):
                best, best_x = value, x
    return best, best_x


@device
def cycle_may_gain(u: Any, state: State, least: Any) -> bool:
    """Whether a cycle through {u, v} could gain more than `least`.

    It gains at most an arm of one end and the heaviest weight at the other, and one arm must gain.
    """
    v = state.mate[u]
    a, b = state.arm[u], state.arm[v]
    if a + b == 0:
        return False
    return min(a + state.heaviest[v], b + state.heaviest[u]) > state.price[u] + least


@device
def is_fresh(u: Any, state: State, scale: Scale) -> bool:
    """Whether the best arm of u is still what it was when u was scanned."""
    if state.stale[u]:
        return False
    if state.arm[u] == 0:
        return True
    x = state.target[u]
    if x == state.mate[u]:
        return False
    return cut(weight_between(state.rows, u, x), scale) - state.price[x] == state.arm[u]


@expanded
def best_path(u: Any, state: State, weighing: Weighing) -> Any:
    """The gain of the edge {u, v} by arms, and its new mates x and y; all ones for none.

    Caller: the arms of both ends are those of this matching.
    """
    mate, arm, target = state.mate, state.arm, state.target
    free = ~mate.dtype.type(0)
    v = mate[u]
    a, b, given_up = arm[u], arm[v], state.price[u]
    x = target[u] if a > 0 else free
    y = target[v] if b > 0 else free
    if a > 0 and b > 0 and a + b > given_up and unit_of(mate, x) == unit_of(mate, y):
        second_a, second_x = _first_arm(u, x, mate[x], state, weighing)
        second_b, second_y = _first_arm(v, y, mate[y], state, weighing)
        if a + second_b >= second_a + b:
            b, y = second_b, second_y if second_b > 0 else free
        else:
            a, x = second_a, second_x if second_a > 0 else free
    return a + b - given_up, x, y


@expanded
def best_exchange(u: Any, state: State, weighing: Weighing, fresh: bool) -> Any:
    """The gain of the unit with the smaller end u, and its new mates x and y; all ones for none.

    `fresh`: nothing has changed since the ends were scanned.
    """
    mate = state.mate
    free = ~mate.dtype.type(0)
    v = mate[u]
    if v == free:
        gain, x = _best_edge(u, state, weighing)
        return gain, x, free
    gain, x, y = np.int64(0), free, free
    if state.arm[u] + state.arm[v] > state.price[u]:  # by the bounds
        for z in (u, v):
            if not (fresh or is_fresh(z, state, weighing.scale)):
                scan_arms(z, state, weighing)
        gain, x, y = best_path(u, state, weighing)
        gain = max(gain, np.int64(0))
        if x == v or y == u:  # only where a matrix is wrongly declared symmetric
            gain, x, y = np.int64(0), free, free
    if cycle_may_gain(u, state, gain):
        cycle, at_u = _best_cycle(u, state, weighing.scale, gain)
        if at_u != u:
            return cycle, at_u, mate[at_u]
    return gain, x, y


# Which exchanges are made: those that are first at all the units they touch


class Claims(NamedTuple):
    """Of each unit: the first exchange that touches it."""

    gain: Array  # (n,) int64, 0 for none
    tie: Array  # (n,) uint64


class Wanted(NamedTuple):
    """The candidates of a round, in any order."""

    unit: Array  # smaller end
    gain: Array
    x: Array  # new mate of the smaller end
    y: Array  # and of the other one
    unit_x: Array  # unit of x before the round; its own unit where there is no x
    unit_y: Array
    won: Array


@device
def _tie_word(u: Any, ties: Ties) -> Any:
    """The word that breaks ties between units of equal gain, larger first; all are different."""
    if ties.by_hash:
        return mix64(np.uint64(u) ^ mix64(np.uint64(ties.seed)))
    return ~np.uint64(u)


@expanded
def touched(wanted: Wanted, i: int) -> Any:
    return wanted.unit[i], wanted.unit_x[i], wanted.unit_y[i]


@expanded
def settle_claims(team: Team, ties: Ties, wanted: Wanted, claims: Claims, size: int) -> bool:
    """The steps claim, rank and decide."""
    lo, hi = share(team, size)
    for i in range(lo, hi):
        for t in touched(wanted, i):
            atomic_max(claims.gain, t, wanted.gain[i])
    if barrier(team):
        return True
    for i in range(lo, hi):
        for t in touched(wanted, i):
            if load_relaxed(claims.gain, t) == wanted.gain[i]:
                atomic_max(claims.tie, t, _tie_word(wanted.unit[i], ties))
    if barrier(team):
        return True
    for i in range(lo, hi):
        won, word = True, _tie_word(wanted.unit[i], ties)
        for t in touched(wanted, i):
            won &= claims.gain[t] == wanted.gain[i] and claims.tie[t] == word
        wanted.won[i] = won
    return barrier(team)


# The steps of a round


class WorkLists(NamedTuple):
    queues: Array  # (2, n) units: of this round and of the next
    queued: Array  # 1: in the next queue
    changed: Array  # changed vertices
    before: Array  # the cost of an arm to them before the round
    buffers: Array  # (members, BUFFER): units on their way to a queue
    shared: Array  # the words above


@expanded
def _scan_all(
    team: Team, state: State, weighing: Weighing, lists: WorkLists, claims: Claims
) -> bool:
    """Find the arms of all matched vertices.  True: the team stops."""
    n, free = state.mate.size, ~state.mate.dtype.type(0)
    kind = state.mate.dtype.type
    lo, hi = share(team, n)
    # Mates that do not agree, of a matrix wrongly declared symmetric, become free.
    for i in range(np.uint64(lo), np.uint64(hi)):
        u = state.mate[i]
        state.stale[i] = u != free and state.mate[u] != i
    if barrier(team):
        return True
    for i in range(np.uint64(lo), np.uint64(hi)):
        if state.stale[i]:
            state.mate[i], state.own[i] = free, state.own.dtype.type(0)
        state.price[i] = cut(state.own[i], weighing.scale)
        lists.queued[i] = 0
        claims.gain[i], claims.tie[i] = 0, 0
        # free vertices are scanned later, when they may gain
        state.arm[i] = state.heaviest[i] = ANYTHING
        state.stale[i] = 1
    if barrier(team):
        return True
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + CHUNK, n))):
            if state.mate[i] != free:
                scan_arms(kind(i), state, weighing)
        advance(team, CHUNK)
        chunk = next_chunk(team, n, CHUNK)
    return barrier(team)


@expanded
def _choose(
    u: Any, state: State, weighing: Weighing, lists: WorkLists, wanted: Wanted, fresh: bool
) -> None:
    """Unit u becomes a candidate if it gains."""
    free = ~state.mate.dtype.type(0)
    gain, x, y = best_exchange(u, state, weighing, fresh)
    if gain < weighing.least:
        return
    at = np.uint64(atomic_add(lists.shared, _CANDIDATES, 1))
    wanted.unit[at], wanted.gain[at] = u, gain
    wanted.x[at], wanted.y[at] = x, y
    wanted.unit_x[at] = u if x == free else unit_of(state.mate, x)
    wanted.unit_y[at] = u if y == free else unit_of(state.mate, y)


@expanded
def _choose_all(
    team: Team, state: State, weighing: Weighing, lists: WorkLists, wanted: Wanted
) -> bool:
    """The first round: every edge of the matching; no two free vertices are neighbours yet."""
    n, kind = state.mate.size, state.mate.dtype.type
    free = ~kind(0)
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + CHUNK, n))):
            v = state.mate[i]
            if v != free and v > i:
                _choose(kind(i), state, weighing, lists, wanted, True)
        chunk = next_chunk(team, n, CHUNK)
    return barrier(team)


@expanded
def _choose_queued(
    team: Team, queue: Array, state: State, weighing: Weighing, lists: WorkLists, wanted: Wanted
) -> bool:
    chunk = next_chunk(team, queue.size, QUEUE_CHUNK)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + QUEUE_CHUNK, queue.size))):
            u = queue[i]
            lists.queued[u] = 0
            _choose(u, state, weighing, lists, wanted, False)
        chunk = next_chunk(team, queue.size, QUEUE_CHUNK)
    return barrier(team)


@expanded
def _join(state: State, scale: Scale, u: Any, x: Any) -> None:
    w = weight_between(state.rows, u, x)
    state.mate[u], state.mate[x] = x, u
    state.own[u], state.own[x] = w, w
    state.price[u] = state.price[x] = cut(w, scale)


@expanded
def _part(state: State, v: Any, lists: WorkLists, at: Any) -> Any:
    """Free v and its mate, if it has one, and list them as changed; returns the next place."""
    free, nothing = ~state.mate.dtype.type(0), state.own.dtype.type(0)
    u = state.mate[v]
    lists.changed[at], lists.before[at] = v, state.price[v]
    if u == free:
        return at + np.uint64(1)
    lists.changed[at + np.uint64(1)], lists.before[at + np.uint64(1)] = u, state.price[v]
    for z in (u, v):
        state.mate[z], state.own[z], state.price[z] = free, nothing, 0
    return at + np.uint64(2)


@device
def _vertices(mate: Array, v: Any) -> int:
    """The number of vertices of v's unit, 0 where v is no vertex."""
    free = ~mate.dtype.type(0)
    return 0 if v == free else 1 if mate[v] == free else 2


@expanded
def _make_won(
    team: Team, state: State, scale: Scale, lists: WorkLists, wanted: Wanted, claims: Claims,
    size: int,
) -> bool:  # fmt: skip
    """Winners change the matching; all claims are reset."""
    mate, free = state.mate, ~state.mate.dtype.type(0)
    lo, hi = share(team, size)
    for i in range(lo, hi):
        for t in touched(wanted, i):  # several members may reset the same one
            store_relaxed(claims.gain, t, np.int64(0))
            store_relaxed(claims.tie, t, np.uint64(0))
        if not wanted.won[i]:
            continue
        u, x, y = wanted.unit[i], wanted.x[i], wanted.y[i]
        v = mate[u]
        apart = mate.dtype.type(y if x == free or y != mate[x] else free)  # a cycle: with x
        count = _vertices(mate, u) + _vertices(mate, x) + _vertices(mate, apart)
        at = np.uint64(atomic_add(lists.shared, _CHANGED, count))
        for z in (u, x, apart):
            if z != free:
                at = _part(state, z, lists, at)
        if x != free:
            _join(state, scale, u, x)
        if y != free:
            _join(state, scale, v, y)
    return barrier(team)


@expanded
def _enqueue(
    state: State, v: Any, lists: WorkLists, buffer: Array, count: int, queue: Array, tail: Array
) -> int:
    u = unit_of(state.mate, v)
    one = lists.queued.dtype.type(1)
    if load_relaxed(lists.queued, u) == 0 and atomic_exchange(lists.queued, u, one) == 0:
        return push(buffer, count, u, queue, tail)
    return count


@expanded
def _arm_concerns(c: Any, z: Any, w: Any, state: State) -> bool:
    """Whether the unit of z may gain because an arm to c costs less than before; w: integer."""
    mate, arm = state.mate, state.arm
    free = ~mate.dtype.type(0)
    value = w - state.price[c]
    if value <= 0:
        return False
    if mate[z] == free:
        return mate[c] == free
    if value >= load_relaxed(arm, z):
        atomic_max(arm, z, value)
        store_relaxed(state.stale, z, state.stale.dtype.type(1))
        return True
    # at best a second arm, used when the first ones of z and its mate lead to one unit
    return load_relaxed(arm, z) + load_relaxed(arm, mate[z]) > state.price[z]


@expanded
def _cycle_concerns(c: Any, z: Any, w: Any, most: Any, state: State) -> bool:
    """Whether the unit of z may gain by a cycle through the new edge at c.

    No edge at the other end of the new edge is heavier than `most`.
    """
    mate, price = state.mate, state.price
    won = w - price[c]
    if won + most <= price[c] or price[z] < price[c] or won + most <= price[z]:
        return False
    return mate[z] != ~mate.dtype.type(0) and won + state.heaviest[mate[z]] > price[z]


@expanded
def _wake(
    team: Team, state: State, scale: Scale, lists: WorkLists, wanted: Wanted, turn: int
) -> bool:
    """Make the next queue: losers, changed units, and neighbours that may gain by the change."""
    shared, buffer, count = lists.shared, lists.buffers[team.me], 0
    queue, tail = lists.queues[turn], shared[_QUEUED + turn * _LINE :]
    mate, price, free = state.mate, state.price, ~state.mate.dtype.type(0)
    lo, hi = share(team, shared[_CANDIDATES])
    for i in range(lo, hi):
        if not wanted.won[i]:
            count = _enqueue(state, wanted.unit[i], lists, buffer, count, queue, tail)
    size = shared[_CHANGED]
    chunk = next_chunk(team, size, QUEUE_CHUNK)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + QUEUE_CHUNK, size))):
            c = lists.changed[i]
            count = _enqueue(state, c, lists, buffer, count, queue, tail)
            cheaper = price[c] < lists.before[i]
            d = mate[c]
            if d == free:  # no scan raises its bound from now on
                state.arm[c], state.stale[c] = ANYTHING, 1
            cycles = d != free and (degree(state.rows, c), c) <= (degree(state.rows, d), d)
            if not (cheaper or cycles):
                continue
            most = state.heaviest[d] if cycles else np.int64(0)
            for k in range(begin(state.rows, c), end(state.rows, c)):
                z, w = state.rows.indices[k], cut(state.rows.weights[k], scale)
                concerned = cheaper and _arm_concerns(c, z, w, state)
                if concerned or (cycles and _cycle_concerns(c, z, w, most, state)):
                    count = _enqueue(state, z, lists, buffer, count, queue, tail)
        chunk = next_chunk(team, size, QUEUE_CHUNK)
    flush(buffer, count, queue, tail)
    return barrier(team)


@kernel
def _augment(
    team: Team, weighing: Weighing, state: State, claims: Claims, wanted: Wanted,
    lists: WorkLists, sums: Array,
) -> None:  # fmt: skip
    """Rounds until no unit gains.  Caller: lists.shared is 0; `mate` is unsigned and maximal."""
    shared = lists.shared
    expect(team, state.mate.size)
    if _scan_all(team, state, weighing, lists, claims):
        return
    if _choose_all(team, state, weighing, lists, wanted):
        return
    size, rounds, turn = shared[_CANDIDATES], 0, 0
    while size > 0:
        if settle_claims(team, weighing.ties, wanted, claims, size):
            return
        if _make_won(team, state, weighing.scale, lists, wanted, claims, size):
            return
        rounds += 1
        if rounds == weighing.limit:
            break
        if _wake(team, state, weighing.scale, lists, wanted, turn):
            return
        waiting = shared[_QUEUED + turn * _LINE]
        if barrier(team):  # all members have read the lengths
            return
        if team.me == 0:
            shared[_CHANGED], shared[_CANDIDATES] = 0, 0
            shared[_QUEUED + (1 - turn) * _LINE] = 0
        if barrier(team):
            return
        queue = lists.queues[turn][:waiting]
        if _choose_queued(team, queue, state, weighing, lists, wanted):
            return
        size, turn = shared[_CANDIDATES], 1 - turn
    if team.me == 0:
        shared[_ROUNDS] = rounds
    sum_blocks(team, state.own, sums)


def match(
    view: Any, seed: int, by_hash: bool, threads: int | None = None, rounds: int = LIMIT
) -> EngineMatching:
    n, unsigned = view.n, f"u{view.indices.dtype.itemsize}"
    start = load("auto", "cpu").match(view, seed, by_hash, threads)
    mate, own = start.mate, start.own
    scale = Scale(*two_factors(float(own.max(initial=0.0))))
    team = crew(threads, work=view.nnz + n)
    shared, sums = np.zeros(SHARED, np.int64), block_sums(n)
    ends, integers, flags = (n, unsigned), (n, np.int64), (n, np.uint8)
    space = workspace(
        price=integers, arm=integers, target=ends, stale=flags, heaviest=integers,
        claimed=integers, ties=(n, np.uint64),
        unit=ends, gain=integers, x=ends, y=ends, unit_x=ends, unit_y=ends, won=flags,
        queues=((2, n), unsigned), queued=flags, changed=ends, before=integers,
        buffers=((team.size, BUFFER), unsigned),
    )  # fmt: skip
    rows = WeightedRows(view.indptr.view(unsigned), view.indices.view(unsigned), view.data)
    team.run(
        _augment,
        Weighing(scale, Ties(np.uint64(seed), by_hash), LEAST_GAIN, rounds),
        State(
            rows, mate.view(unsigned), own,
            space.price, space.arm, space.target, space.stale, space.heaviest,
        ),
        Claims(space.claimed, space.ties),
        Wanted(space.unit, space.gain, space.x, space.y, space.unit_x, space.unit_y, space.won),
        WorkLists(space.queues, space.queued, space.changed, space.before, space.buffers, shared),
        sums,
    )  # fmt: skip
    return EngineMatching(mate, matched_weight(sums), int(shared[_ROUNDS]))
