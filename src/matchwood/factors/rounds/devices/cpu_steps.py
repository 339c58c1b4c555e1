"""The steps of a partition, as kernels on the CPU.  The rounds: rounds.py; the idea: __init__.py.

`proposals[u * n : u * n + n]` are the vertices that u proposes to in this round, best first, then
-1; of all vertices, `weights` of own ones alone.  `taken[u]` says how many neighbours u has; it has
no room with n.  `chosen` are the neighbours of own vertices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, device, interrupted, kernel, share
from matchwood.primitives.edge_order.cpu import prefers
from matchwood.primitives.hashing.cpu import random_bit

Array = np.ndarray[Any, Any]

INCOMPLETE = np.uint8(128)  # in `size`: some neighbour with room is not in the list
LENGTH = np.uint8(127)  # the bits of `size` that count

# Words of `counters`.
PROPOSED = 0  # proposals of this round
WANTED = 1  # vertices whose row must travel
CONFIRMED = 2  # proposals of all vertices that were answered
CHANGED = 3  # own vertices whose proposals are others than before
COUNTERS = 4


class Rule(NamedTuple):
    """Numbers that hold for the whole call."""

    n: int
    lo: int  # own vertices: lo to hi - 1
    hi: int
    seed: Any
    by_hash: bool


class Charges(NamedTuple):
    """The charges of this round."""

    on: bool
    r: Any
    barrier: Any


class Lists(NamedTuple):
    """The strongest edges of own rows."""

    start: Array
    size: Array
    columns: Array
    weights: Array


class Places(NamedTuple):
    """Who proposes to whom, and who has whom."""

    taken: Array  # of all vertices
    proposals: Array  # of all vertices
    proposed_weights: Array  # of own vertices
    chosen: Array  # of own vertices
    chosen_weights: Array


class Rows(NamedTuple):
    """Rows that lie in a buffer."""

    ids: Array  # whose they are; empty: base, base + 1, ...
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

    False where it did not get in.  `held` edges are in it, `room` fit.
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
def pack(
    team: Team, rows: Rows, charges: Charges, rule: Rule, lists: Lists, places: Places
) -> None:
    """Rows of the buffer into the lists and the proposals of their vertices.

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
def propose(
    team: Team, charges: Charges, rule: Rule, lists: Lists, places: Places, wanted: Array,
    counters: Array,
) -> None:  # fmt: skip
    """Own vertices with room propose from their lists; those that lack some are listed in `wanted`.

    One member works.
    """
    if team.rank > 0:
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
def count_proposals(team: Team, rule: Rule, proposals: Array, counters: Array) -> None:
    """counters[PROPOSED] = proposals of own vertices.  One member works."""
    if team.rank > 0:
        return
    count = 0
    for i in range(rule.lo * rule.n, rule.hi * rule.n):
        if interrupted(team, i):
            return
        count += proposals[i] >= 0
    counters[PROPOSED] = count


@kernel
def confirm(team: Team, rule: Rule, places: Places, counters: Array) -> None:
    """Proposals that are answered; of all vertices.  One member works.

    First the own neighbours are noted, then all are counted: proposals change nothing meanwhile.
    """
    if team.rank > 0:
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
def settle(team: Team, rule: Rule, places: Places) -> None:
    """The neighbours of own vertices, the preferred ones first, then -1 with weight 0."""
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
