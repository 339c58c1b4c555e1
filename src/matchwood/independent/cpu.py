"""Maximal independent sets on a team.  The rule and the papers: __init__.py; the order: order.py.

The greedy set.  No rounds and no sorting: members go through the vertices by index.  A vertex that
has to wait for a neighbour is pushed on a stack while that neighbour is decided, and so on.  Each
row is read once: the stack keeps the place in the row.  A vertex that joins puts all its neighbours
out, whose rows then need not be read.

One byte a vertex, OUT, JOINED, or while undecided its place in the order, the larger the earlier.

Races: a byte goes from undecided to OUT or JOINED once.  Any member, in any order, makes the same
decision, since the greedy set is unique.  Two members may do the same work at the same time
and write the same byte.  Nothing else is shared, so relaxed accesses are enough, and no member ever
waits for another.

Luby's sampling: the second half of the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    advance,
    atomic_add,
    barrier,
    crew,
    device,
    expect,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    share_rows,
    stopping,
    store_relaxed,
)
from matchwood.independent import order
from matchwood.primitives.hashing.cpu import hash2, mix64

Array = np.ndarray[Any, Any]

OUT, JOINED, FIRST = np.uint8(0), np.uint8(1), np.uint8(2)  # FIRST and above: undecided
TOP_CLASS = 62  # as in order.py
TOP = 254  # the byte of the first vertices in the order
CHUNK = 2048  # vertices that a member takes at a time, at least
# Chunks of each member in a large graph.  Few, because members that work near each other do the
# same work twice.
CHUNKS = 8
STACK_VERTICES = 1 << 12  # room of a member's stack; random orders need some tens, others: _settle
HASH_SHIFT = np.uint64(62)  # leaves the first two bits

FREE, DRAWN, WINNER, LEAVING = np.uint8(2), np.uint8(3), np.uint8(4), np.uint8(5)  # for sampling
MOST_NEIGHBOURS = (1 << 31) - 1  # a degree counts as at most this, so that 2 d x does not overflow
DRAW_BITS = np.uint64(32)
NO_DRAW = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # larger than any draw

assert TOP_CLASS == order.TOP_CLASS


@device
def _place(v: Any, degree: Any, start: Any) -> Any:
    """The byte of an undecided vertex in the order of "luby"."""
    below = degree - 1
    b = 0
    while below >= 4:
        below >>= 1
        b += 1
    q = np.int64(mix64(start ^ np.uint64(v)) >> HASH_SHIFT)
    return np.uint8(TOP - 4 * min(2 * b + below, TOP_CLASS) - q)


@device
def _precedes(w: Any, v: Any, by_index: bool, start: Any) -> bool:
    """Whether w is before v in the order; both have the same byte."""
    if by_index:
        return w < v
    return mix64(start ^ np.uint64(w)) < mix64(start ^ np.uint64(v))


@device
def _settle(
    team: Any, indptr: Array, indices: Array, by_index: bool, start: Any, status: Array,
    waiting: Array, places: Array, v: Any,
) -> None:  # fmt: skip
    """Decide v, after those that it has to wait for.

    The stack holds the last STACK_VERTICES of a chain of vertices that wait for each other.  Where
    a chain is longer, its beginning is dropped.  Then v is not decided yet, but STACK_VERTICES
    others are, and the caller calls again.
    """
    base = np.int64(team.me) * STACK_VERTICES
    depth, floor = np.int64(0), np.int64(0)
    waiting[base] = v
    places[base] = indptr[np.uint64(v)]
    steps = 0
    while depth >= floor:
        steps += 1
        if interrupted(team, steps):
            return
        slot = base + (depth & (STACK_VERTICES - 1))
        u = waiting[slot]
        mine = load_relaxed(status, u)
        if mine < FIRST:
            depth -= 1
            continue
        begin, end = np.uint64(places[slot]), np.uint64(indptr[np.uint64(u) + np.uint64(1)])
        joins = True
        blocker = u
        for k in range(begin, end):
            w = indices[k]
            other = load_relaxed(status, w)
            if other == JOINED:
                joins = False
                break
            if other >= mine and (other > mine or _precedes(w, u, by_index, start)):
                joins = False
                blocker = w
                places[slot] = k
                break
        if joins:
            store_relaxed(status, u, JOINED)
            for k in range(np.uint64(indptr[np.uint64(u)]), end):
                w = indices[k]
                if load_relaxed(status, w) != OUT:
                    store_relaxed(status, w, OUT)
            depth -= 1
        elif blocker == u:
            store_relaxed(status, u, OUT)
            depth -= 1
        else:
            depth += 1
            floor = max(floor, depth - (STACK_VERTICES - 1))
            slot = base + (depth & (STACK_VERTICES - 1))
            waiting[slot] = blocker
            places[slot] = indptr[np.uint64(blocker)]


@kernel
def _greedy(
    team: Any, indptr: Array, indices: Array, by_index: bool, start: Any, status: Array,
    waiting: Array, places: Array,
) -> None:  # fmt: skip
    n = status.size
    expect(team, n)
    lo, hi = share(team, n)
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        degree = np.int64(indptr[v + 1]) - np.int64(indptr[v])
        if degree == 0:
            status[v] = JOINED
        elif by_index:
            status[v] = FIRST
        else:
            status[v] = _place(v, degree, start)
    if barrier(team):
        return
    length = max(CHUNK, n // (CHUNKS * team.size))
    chunk = next_chunk(team, n, length)
    while chunk >= 0:
        last = min(chunk + length, n)
        for v in range(chunk, last):
            while load_relaxed(status, v) >= FIRST:
                if stopping(team):
                    return
                _settle(
                    team, indptr, indices, by_index, start, status, waiting, places,
                    waiting.dtype.type(v),
                )  # fmt: skip
        advance(team, last - chunk)
        chunk = next_chunk(team, n, length)


# Luby's sampling.  A round has four phases with a barrier after each.  Each member of the team
# keeps the vertices of its rows that are left in a list of its own.
#
#     draw      state DRAWN for those drawn; where no vertex is drawn, for the one nearest to it
#     resolve   state WINNER for those without a drawn neighbour that is larger
#     join      winners are JOINED, their neighbours LEAVING
#     leave     lists are shortened, and the neighbours of those that leave lose a degree
#
# Races: in each phase a vertex's state is written by its owner.  Only LEAVING may be written by
# others: it replaces FREE or DRAWN, and all writers write the same.  Two states that a reader may
# see at the same time mean the same to it (DRAWN and WINNER; LEAVING and OUT; FREE and DRAWN).
# Degrees change by atomic subtraction in `leave` alone.  So every round's result is the same in any
# schedule.


@device
def _row(indptr: Array, v: Any) -> Any:
    """The places of the entries of row v."""
    return range(np.uint64(indptr[v]), np.uint64(indptr[np.uint64(v) + np.uint64(1)]))


@device
def _row_left(indptr: Array, degree: Array, v: Any) -> Any:
    """`_row`, or nothing where no neighbour is left."""
    end = np.uint64(indptr[np.uint64(v) + np.uint64(1)])
    return range(end if degree[v] == 0 else np.uint64(indptr[v]), end)


@device
def _larger(degree: Array, w: Any, v: Any) -> bool:
    return degree[w] > degree[v] or (degree[w] == degree[v] and w > v)


@kernel
def _sample(
    team: Any, indptr: Array, indices: Array, seed: Any, state: Array, degree: Array, live: Array,
    words: Array, result: Array,
) -> None:  # fmt: skip
    # words[member]: drawn, least draw, its vertex, vertices left
    first, last = share_rows(team, indptr)
    expect(team, state.size)
    size = last - first
    for v in range(first, last):
        if interrupted(team, v):
            return
        degree[v] = indptr[v + 1] - indptr[v]
        state[v] = FREE
        live[v] = v
    if barrier(team):
        return
    rounds = 0
    left: Any = 1
    while left > 0:
        # draw
        drawn, least, nearest = 0, NO_DRAW, np.uint64(0)
        for i in range(first, first + size):
            if interrupted(team, i):
                return
            v = live[i]
            d: Any = min(np.int64(degree[v]), MOST_NEIGHBOURS)
            x = (hash2(rounds, v, seed) >> DRAW_BITS) * np.uint64(2 * d)
            if x >> DRAW_BITS == np.uint64(0):
                store_relaxed(state, v, DRAWN)
                drawn += 1
            elif x < least or (x == least and np.uint64(v) < nearest):
                least, nearest = x, np.uint64(v)
        words[team.me, 0] = np.uint64(drawn)
        words[team.me, 1] = least
        words[team.me, 2] = nearest
        if barrier(team):
            return
        total = np.uint64(0)
        for member in range(team.size):
            total += words[member, 0]
            x, v = words[member, 1], words[member, 2]
            if x < least or (x == least and v < nearest):
                least, nearest = x, v
        if total == np.uint64(0):
            if team.me == 0:
                store_relaxed(state, nearest, DRAWN)
            if barrier(team):
                return
        # resolve
        for i in range(first, first + size):
            if interrupted(team, i):
                return
            v = live[i]
            if load_relaxed(state, v) == DRAWN:
                wins = True
                for k in _row_left(indptr, degree, v):
                    w = indices[k]
                    other = load_relaxed(state, w)
                    if DRAWN <= other <= WINNER and _larger(degree, w, v):
                        wins = False
                        break
                if wins:
                    store_relaxed(state, v, WINNER)
        if barrier(team):
            return
        # join
        for i in range(first, first + size):
            if interrupted(team, i):
                return
            v = live[i]
            if load_relaxed(state, v) == WINNER:
                store_relaxed(state, v, JOINED)
                for k in _row_left(indptr, degree, v):
                    w = indices[k]
                    other = load_relaxed(state, w)
                    if FREE <= other <= DRAWN:
                        store_relaxed(state, w, LEAVING)
        if barrier(team):
            return
        # leave
        kept = 0
        for i in range(first, first + size):
            if interrupted(team, i):
                return
            v = live[i]
            mine = load_relaxed(state, v)
            if mine == LEAVING:
                store_relaxed(state, v, OUT)
                for k in _row(indptr, v):
                    w = indices[k]
                    other = load_relaxed(state, w)
                    if FREE <= other <= DRAWN:
                        atomic_add(degree, w, -1)
            elif mine != JOINED:
                store_relaxed(state, v, FREE)
                live[first + kept] = v
                kept += 1
        advance(team, size - kept)
        size = kept
        words[team.me, 3] = np.uint64(size)
        if barrier(team):
            return
        left = 0
        for member in range(team.size):
            left += np.int64(words[member, 3])
        rounds += 1
    if team.me == 0:
        result[0] = rounds


def choose(view: Any, method: str, seed: int, *, threads: int | None = None) -> tuple[Array, int]:
    n = view.n
    unsigned = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    team = crew(threads, work=view.nnz + n)
    status = np.empty(n, np.uint8)
    if n == 0:
        return status.view(np.bool_), 0
    indptr, indices = view.indptr, view.indices.view(unsigned)
    if method == "luby_sampling":
        rounds = np.zeros(1, np.int64)
        team.run(
            _sample, indptr, indices, np.uint64(seed), status, np.empty(n, indptr.dtype),
            np.empty(n, unsigned), np.zeros((team.size, 4), np.uint64), rounds,
        )  # fmt: skip
        return status.view(np.bool_), int(rounds[0])
    waiting = np.empty(team.size * STACK_VERTICES, unsigned)
    places = np.empty(team.size * STACK_VERTICES, np.int64)
    team.run(
        _greedy, indptr, indices, method == "lexicographic", np.uint64(order.start_of(seed)),
        status, waiting, places,
    )  # fmt: skip
    return status.view(np.bool_), 1
