"""The steps of a partition, as kernels on the CPU.  The rounds: rounds.py; the idea: __init__.py.

A vertex's word in `state` is its mate; or ~v while it is free and points at v; or ~itself while it
points at no vertex.  So a vertex is free while its word is negative.

`size[v]` counts the edges in v's list in its lower bits.  INCOMPLETE is set where some edge of the
row did not get into the list: only then may the row have to travel again.  `head[v]` is the place
in the list of the edge that v points along.

The vertices of the partition that point at x are a linked list: `waiting[x]` is the first of them,
`following` links them.  When x is matched they are the next queue.  A vertex is in one such list at
a time: it enters another one only after its old neighbour was matched.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, device, interrupted, kernel, share
from matchwood.primitives.edge_order.cpu import prefers

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


class Lists(NamedTuple):
    """The first edges of the rows of a partition."""

    start: Array  # where the list of each vertex begins; one more
    size: Array  # uint8: edges in it, and INCOMPLETE
    head: Array  # uint8: the place of the edge that its vertex points along
    columns: Array
    weights: Array


class Rows(NamedTuple):
    """Rows that lie in a buffer."""

    ids: Array  # whose they are; empty: base, base + 1, ...
    base: int
    offsets: Array  # where they begin; one more
    first: int  # the part of them that lies in the buffer: entries first to last - 1
    last: int
    columns: Array
    weights: Array


class Own(NamedTuple):
    """What a partition knows: of all vertices, and of its own, which are lo to hi - 1."""

    lo: int
    hi: int
    state: Array
    waiting: Array
    following: Array


@device
def _pack_row(u: Any, begin: int, end: int, rows: Rows, only_free: bool, state: Array, lists: Lists,
              at: int, seed: Any, by_hash: bool) -> None:  # fmt: skip
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
    team: Team, rows: Rows, only_free: bool, own: Own, lists: Lists, seed: Any, by_hash: bool
) -> None:
    """Rows of the buffer into the lists of their vertices, which may hold edges already.

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
def queue_own(team: Team, own: Own, only_free: bool, queue: Array, counters: Array) -> None:
    """The vertices of the partition that have something to choose from.  One member works."""
    if team.rank > 0:
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
    team: Team, source: Array, own: Own, lists: Lists, queue: Array, wanted: Array, counters: Array
) -> None:
    """The vertices of `source` take the next free edge of their list, and wait for its other end.

    Those that point now are appended to `queue`, which may be the same memory as `source`; those
    whose rows must travel to `wanted`.  One member works.
    """
    if team.rank > 0:
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
def _requeue(x: Any, own: Own, queue: Array, count: int) -> int:
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
    team: Team, everyone: bool, changed: Array, own: Own, queue: Array, counters: Array
) -> None:
    """Match those of `changed`, or of all vertices, that point at each other.  One member works."""
    if team.rank > 0:
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
