"""Rounds of short augmentations on a team.  The definition: __init__.py.

What one unit does: cpu_exchanges.py.  The greedy matching comes from the suitor method.  A round
has six steps, with a barrier after each:

    choose    the units of the queue (all, in the first round) find their best exchange; those
              that gain are the candidates
    claim     each candidate raises the gain of the units it touches ...
    rank      ... and where it has reached the largest one, their tie word
    decide    who is first at all the units it touches wins
    make      winners change the matching; what they touch is theirs alone
    wake      neighbours of what was changed are the next queue, where that concerns them

The first round reads all rows once.  Later ones go by bounds: `arm` is the most a vertex can win.
It can rise only when an arm costs less than before, so the neighbours of such vertices are looked
at, and bounds that fell are found out when a unit seems to gain.  A new edge may close cycles; they
are looked for from its end with fewer neighbours.  All other units would choose what they chose
before, which won nothing.  So the answer is that of the definition.

Races.  `choose` and `wake` read the matching, which nobody changes then.  A unit is queued once:
`queued` is set by exchange; so its row is scanned, and its words are written, by one member.
`claim` and `rank` are atomic maxima.  `decide` only reads them.  In `make` winners share no
unit, and losers set back claims that nobody reads any more.  The order of lists is arbitrary, and
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
from matchwood.matching.augmented.cpu_claims import Claims, Wanted, settle_claims, touched
from matchwood.matching.augmented.cpu_exchanges import (
    Scale,
    State,
    Weighing,
    best_exchange,
    cut,
    degree,
    scan_arms,
    unit_of,
    weight_between,
)
from matchwood.matching.cpu_rows import Rows, Ties
from matchwood.matching.cpu_weight import block_sums, matched_weight, sum_blocks
from matchwood.matching.methods import Found, load
from matchwood.primitives.frontier.cpu import BUFFER, flush, push

Array = np.ndarray[Any, Any]
ANYTHING = 1 << 61  # more than two weights; two of these fit into 64 bits
CHUNK = 512  # vertices that a member takes at a time in the first round
FEW = 32  # the same of a queue, whose rows may be long

# Words of `shared`, a cache line apart: lengths of the list of changed vertices and of two queues,
# candidates, rounds.
_LINE = 16
_CHANGED, _QUEUED, _CANDIDATES, _ROUNDS = 0, _LINE, 3 * _LINE, 4 * _LINE
SHARED = 5 * _LINE


class Lists(NamedTuple):
    queues: Array  # (2, n) units: of this round and of the next
    queued: Array  # 1: in the next queue
    changed: Array  # vertices
    before: Array  # what an arm to them cost before the round
    buffers: Array  # (members, BUFFER): units on their way to a queue
    shared: Array  # the words above


@expanded
def _scan_all(
    team: Team, rows: Rows, state: State, weighing: Weighing, lists: Lists, claims: Claims
) -> bool:
    """The arms of all matched vertices.  True: the team stops."""
    n, free = state.mate.size, ~state.mate.dtype.type(0)
    kind = state.mate.dtype.type
    lo, hi = share(team, n)
    # Mates that do not agree, of a matrix that was said to be symmetric and is not, become free.
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
        # of free vertices nothing is known: they are scanned when they may gain
        state.arm[i] = state.heaviest[i] = ANYTHING
        state.stale[i] = 1
    if barrier(team):
        return True
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + CHUNK, n))):
            if state.mate[i] != free:
                scan_arms(rows, kind(i), state, weighing)
        advance(team, CHUNK)
        chunk = next_chunk(team, n, CHUNK)
    return barrier(team)


@expanded
def _choose(
    u: Any, rows: Rows, state: State, weighing: Weighing, lists: Lists, wanted: Wanted, fresh: bool
) -> None:
    """Unit u becomes a candidate if it gains."""
    free = ~state.mate.dtype.type(0)
    gain, x, y = best_exchange(rows, u, state, weighing, fresh)
    if gain < weighing.least:
        return
    at = np.uint64(atomic_add(lists.shared, _CANDIDATES, 1))
    wanted.unit[at], wanted.gain[at] = u, gain
    wanted.x[at], wanted.y[at] = x, y
    wanted.unit_x[at] = u if x == free else unit_of(state.mate, x)
    wanted.unit_y[at] = u if y == free else unit_of(state.mate, y)


@expanded
def _choose_all(
    team: Team, rows: Rows, state: State, weighing: Weighing, lists: Lists, wanted: Wanted
) -> bool:
    """The first round: every edge of the matching; no two free vertices are neighbours yet."""
    n, kind = state.mate.size, state.mate.dtype.type
    free = ~kind(0)
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + CHUNK, n))):
            v = state.mate[i]
            if v != free and v > i:
                _choose(kind(i), rows, state, weighing, lists, wanted, True)
        chunk = next_chunk(team, n, CHUNK)
    return barrier(team)


@expanded
def _choose_queued(
    team: Team,
    queue: Array,
    rows: Rows,
    state: State,
    weighing: Weighing,
    lists: Lists,
    wanted: Wanted,
) -> bool:
    """Later rounds: the units of the queue."""
    chunk = next_chunk(team, queue.size, FEW)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + FEW, queue.size))):
            u = queue[i]
            lists.queued[u] = 0
            _choose(u, rows, state, weighing, lists, wanted, False)
        chunk = next_chunk(team, queue.size, FEW)
    return barrier(team)


@expanded
def _join(rows: Rows, state: State, scale: Scale, u: Any, x: Any) -> None:
    w = weight_between(rows, u, x)
    state.mate[u], state.mate[x] = x, u
    state.own[u], state.own[x] = w, w
    state.price[u] = state.price[x] = cut(w, scale)


@expanded
def _part(state: State, v: Any, lists: Lists, at: Any) -> Any:
    """Free v and its mate, if it has one, and list them as changed; returns the next place."""
    free, nothing = ~state.mate.dtype.type(0), state.own.dtype.type(0)
    u = state.mate[v]
    lists.changed[at], lists.before[at] = v, state.price[v]
    if u == free:
        return at + np.uint64(1)
    lists.changed[at + np.uint64(1)], lists.before[at + np.uint64(1)] = u, state.price[v]
    for end in (u, v):
        state.mate[end], state.own[end], state.price[end] = free, nothing, 0
    return at + np.uint64(2)


@device
def _vertices(mate: Array, v: Any) -> int:
    """Of the unit of v, 0 for no vertex."""
    free = ~mate.dtype.type(0)
    if v == free:
        return 0
    return 1 if mate[v] == free else 2


@expanded
def _make_won(
    team: Team,
    rows: Rows,
    state: State,
    scale: Scale,
    lists: Lists,
    wanted: Wanted,
    claims: Claims,
    size: int,
) -> bool:
    """Winners change the matching; all claims are set back."""
    mate, free = state.mate, ~state.mate.dtype.type(0)
    lo, hi = share(team, size)
    for i in range(lo, hi):
        for t in touched(wanted, i):  # several members may set one back
            store_relaxed(claims.gain, t, np.int64(0))
            store_relaxed(claims.tie, t, np.uint64(0))
        if not wanted.won[i]:
            continue
        u, x, y = wanted.unit[i], wanted.x[i], wanted.y[i]
        v = mate[u]
        apart = mate.dtype.type(y if x == free or y != mate[x] else free)  # a cycle: with x
        count = _vertices(mate, u) + _vertices(mate, x) + _vertices(mate, apart)
        at = np.uint64(atomic_add(lists.shared, _CHANGED, count))
        for end in (u, x, apart):
            if end != free:
                at = _part(state, end, lists, at)
        if x != free:
            _join(rows, state, scale, u, x)
        if y != free:
            _join(rows, state, scale, v, y)
    return barrier(team)


@expanded
def _enqueue(
    state: State, v: Any, lists: Lists, buffer: Array, count: int, queue: Array, tail: Array
) -> int:
    """Put the unit of v into the next queue, unless it is there."""
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
    # at best a second arm, for when the first ones of z and its mate lead to one unit
    return load_relaxed(arm, z) + load_relaxed(arm, mate[z]) > state.price[z]


@expanded
def _cycle_concerns(c: Any, z: Any, w: Any, most: Any, state: State) -> bool:
    """Whether the unit of z may gain by a cycle through the new edge at c.

    No edge at the other end of that is heavier than `most`.
    """
    mate, price = state.mate, state.price
    won = w - price[c]
    if won + most <= price[c] or price[z] < price[c] or won + most <= price[z]:
        return False
    return mate[z] != ~mate.dtype.type(0) and won + state.heaviest[mate[z]] > price[z]


@expanded
def _wake(
    team: Team, rows: Rows, state: State, scale: Scale, lists: Lists, wanted: Wanted, turn: int
) -> bool:
    """The next queue: losers, changed units, and those of neighbours whom that concerns."""
    shared, buffer, count = lists.shared, lists.buffers[team.rank], 0
    queue, tail = lists.queues[turn], shared[_QUEUED + turn * _LINE :]
    mate, price, free = state.mate, state.price, ~state.mate.dtype.type(0)
    lo, hi = share(team, shared[_CANDIDATES])
    for i in range(lo, hi):
        if not wanted.won[i]:
            count = _enqueue(state, wanted.unit[i], lists, buffer, count, queue, tail)
    size = shared[_CHANGED]
    chunk = next_chunk(team, size, FEW)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + FEW, size))):
            c = lists.changed[i]
            count = _enqueue(state, c, lists, buffer, count, queue, tail)
            cheaper = price[c] < lists.before[i]
            d = mate[c]
            if d == free:  # nobody raises its bound from now on
                state.arm[c], state.stale[c] = ANYTHING, 1
            cycles = d != free and (degree(rows, c), c) <= (degree(rows, d), d)
            if not (cheaper or cycles):
                continue
            most = state.heaviest[d] if cycles else np.int64(0)
            for k in range(
                np.uint64(rows.indptr[c]), np.uint64(rows.indptr[c + rows.indptr.dtype.type(1)])
            ):
                z, w = rows.indices[k], cut(rows.weights[k], scale)
                concerned = cheaper and _arm_concerns(c, z, w, state)
                if concerned or (cycles and _cycle_concerns(c, z, w, most, state)):
                    count = _enqueue(state, z, lists, buffer, count, queue, tail)
        chunk = next_chunk(team, size, FEW)
    flush(buffer, count, queue, tail)
    return barrier(team)


@kernel
def _augment(
    team: Team,
    rows: Rows,
    weighing: Weighing,
    state: State,
    claims: Claims,
    wanted: Wanted,
    lists: Lists,
    sums: Array,
) -> None:
    """Rounds until nobody gains.  Caller: lists.shared is 0; a maximal matching.

    Vertices are unsigned.
    """
    shared = lists.shared
    expect(team, state.mate.size)
    if _scan_all(team, rows, state, weighing, lists, claims):
        return
    if _choose_all(team, rows, state, weighing, lists, wanted):
        return
    size, rounds, turn = shared[_CANDIDATES], 0, 0
    while size > 0:
        if settle_claims(team, weighing.ties, wanted, claims, size):
            return
        if _make_won(team, rows, state, weighing.scale, lists, wanted, claims, size):
            return
        rounds += 1
        if rounds == weighing.limit:
            break
        if _wake(team, rows, state, weighing.scale, lists, wanted, turn):
            return
        waiting = shared[_QUEUED + turn * _LINE]
        if barrier(team):  # everybody has read the lengths
            return
        if team.rank == 0:
            shared[_CHANGED], shared[_CANDIDATES] = 0, 0
            shared[_QUEUED + (1 - turn) * _LINE] = 0
        if barrier(team):
            return
        queue = lists.queues[turn][:waiting]
        if _choose_queued(team, queue, rows, state, weighing, lists, wanted):
            return
        size, turn = shared[_CANDIDATES], 1 - turn
    if team.rank == 0:
        shared[_ROUNDS] = rounds
    sum_blocks(team, state.own, sums)


def match(
    view: Any, seed: int, by_hash: bool, threads: int | None = None, rounds: int = LIMIT
) -> Found:
    n = view.n
    unsigned = f"u{view.indices.dtype.itemsize}"
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
    team.run(
        _augment,
        Rows(view.indptr.view(unsigned), view.indices.view(unsigned), view.data),
        Weighing(scale, Ties(np.uint64(seed), by_hash), LEAST_GAIN, rounds),
        State(
            mate.view(unsigned), own,
            space.price, space.arm, space.target, space.stale, space.heaviest,
        ),
        Claims(space.claimed, space.ties),
        Wanted(
            space.unit, space.gain, space.x, space.y, space.unit_x, space.unit_y, space.won
        ),
        Lists(
            space.queues, space.queued, space.changed, space.before, space.buffers, shared
        ),
        sums,
    )  # fmt: skip
    return Found(mate, matched_weight(sums), int(shared[_ROUNDS]))
