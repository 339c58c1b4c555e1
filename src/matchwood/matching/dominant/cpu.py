"""Locally dominant matching on a team.  The rule and the papers: matching/weighted.py.

A round works on a queue: in the first round all vertices, then those whose pointer became invalid.

    point     each vertex of the queue finds its first edge to a free neighbour
    settle    two vertices that point at each other are matched; any other vertex enters the linked
              list of the vertex it points at, and waits there

When v is matched its list is closed.  The vertices in it, and those that find it closed later, make
up the next queue.  So a vertex costs work when its pointer has to change, and none while it waits.
On a path of ascending weights, where a round matches one edge, that makes n rounds of constant
work.  Member 0 alone works on small queues, without barriers.

Encodings.  `pointer[v]` is all ones (-1) when v has no free neighbour left; at the end every other
pointer is mutual, and the array is the matching.  `waiting[v]` is the first vertex of v's list, n
for none, CLOSED (negative) when v is matched.  Its sign bit turns the weight of an edge to v into
-1 without a branch.  `following` links the lists.  No list holds a vertex twice: a vertex waits for
one other.

Races.  Pointing reads only what the last round settled.  Settling reads pointers, which no member
changes then, and changes lists by compare-and-swap and exchange.  Of the two ends of a mutual edge
the one that closes the smaller end's list does the matching; a vertex that finds a list closed
enters the queue itself.  The order of lists and queue is arbitrary, and nothing depends on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Team,
    advance,
    atomic_add,
    atomic_cas,
    atomic_exchange,
    barrier,
    crew,
    device,
    expect,
    kernel,
    load_acquire,
    load_relaxed,
    next_chunk,
    share,
    stopping,
    store_relaxed,
)
from matchwood.matching.cpu import (
    Ties,
    WeightedRows,
    always,
    block_sums,
    first_edge,
    itself,
    matched_weight,
    prefetch_queued,
    rows_of,
    sum_blocks,
)
from matchwood.matching.methods import EngineMatching
from matchwood.primitives.frontier.cpu import BUFFER, flush, push

Array = np.ndarray[Any, Any]
CHUNK = 512  # vertices that a member takes at a time while pointing
ONE_THREAD_QUEUE = 1000  # vertices in the queue; one thread alone is faster on fewer

# Words of `shared`, a cache line apart: the lengths of two queues, the number of rounds that
# matched a vertex, and the queue's size and number after member 0 worked alone.
_LINE = 16
_TAILS, _MATCHED, _SIZE, _TURN = 0, 2 * _LINE, 3 * _LINE, 3 * _LINE + 1
SHARED = 4 * _LINE

CLOSED = -1  # in `waiting`


class WaitingLists(NamedTuple):
    """Linked lists, one per vertex, of the vertices that wait for it."""

    waiting: Array  # the first vertex of v's list, n for none, CLOSED when v is matched
    following: Array  # the next vertex of the list that v is in


class Work(NamedTuple):
    queues: Array  # (2, n): that of this round and that of the next
    buffers: Array  # (threads, BUFFER): vertices that are not yet appended to a queue
    shared: Array  # the words above


@device
def _nobody(pointer: Array) -> Any:
    return ~pointer.dtype.type(0)


@device
def _accept_if_free(waiting: Array, v: Any, w: Any) -> Any:
    """w, or -1 when v is matched."""
    return w | (waiting[v] >> waiting.dtype.type(8 * waiting.itemsize - 1)), False


@device
def _settle_first(
    team: Team, pointer: Array, waiting: Array, following: Array, rest: Array, queue: Array,
    tail: Array,
) -> bool:  # fmt: skip
    """`_settle` for the first round, when all lists are empty: in three passes without branches.

    Without it the method took 1.2 times as long on R-MAT 16, 1.45 times on a mesh of 48^3
    (bench/matching/weighted.py).  `rest` is the queue that is not in use.  Returns True when the
    team has to stop.
    """
    n = pointer.size
    nothing = waiting.dtype.type(n)
    lo, hi = share(team, n)
    left = np.uint64(lo)
    for i in range(np.uint64(lo), np.uint64(hi)):
        v = pointer[i]
        alone = v == _nobody(pointer)
        mutual = pointer[i if alone else v] == i
        waiting[i] = CLOSED if mutual else nothing
        rest[left] = i
        left += np.uint64(not (mutual or alone))
    if barrier(team):
        return True
    requeued = 0
    for i in range(np.uint64(lo), left):
        requeued += load_relaxed(waiting, pointer[rest[i]]) < 0
    at = np.uint64(atomic_add(tail, 0, requeued))
    end = left
    left = np.uint64(lo)
    for i in range(np.uint64(lo), end):
        u = rest[i]
        closed = load_relaxed(waiting, pointer[u]) < 0
        if closed:
            queue[at] = u
        else:
            rest[left] = u
        at += np.uint64(closed)
        left += np.uint64(not closed)
    for i in range(np.uint64(lo), left):
        u = rest[i]
        _enter(waiting, pointer[u], u, following, team.size == 1)
    return False


@device
def _close(waiting: Array, v: Any, plain: bool) -> Any:
    """Close v's list; returns its first vertex, or CLOSED when it was closed before."""
    closed = waiting.dtype.type(CLOSED)
    if plain:
        head = waiting[v]
        waiting[v] = closed
        return head
    return atomic_exchange(waiting, v, closed)


@device
def _enter(waiting: Array, v: Any, u: Any, following: Array, plain: bool) -> bool:
    """Put u into v's list; False when the list is closed.  `plain`: no other member is at work."""
    head = load_acquire(waiting, v)
    while head >= 0:
        following[u] = head
        if plain:
            waiting[v] = u
            return True
        seen = atomic_cas(waiting, v, head, waiting.dtype.type(u))
        if seen == head:
            return True
        head = seen
    return False


@device
def _settle(
    u: Any, pointer: Array, waiting: Array, following: Array, plain: bool, buffer: Array,
    count: int, queue: Array, tail: Array,
) -> Any:  # fmt: skip
    """Match u, or let it wait, or queue it; returns the buffer's length and whether u matched."""
    n = pointer.size
    v = pointer[u]
    if v == _nobody(pointer):
        return count, False
    if pointer[v] != u:
        if not _enter(waiting, v, u, following, plain):
            count = push(buffer, count, u, queue, tail)
        return count, False
    head = _close(waiting, min(u, v), plain)
    if head < 0:
        return count, False  # the other end does the matching
    for _ in range(2):  # queue the lists of both ends, without the ends themselves
        while head != n:
            if head != u and head != v:
                count = push(buffer, count, head, queue, tail)
            head = waiting.dtype.type(following[head])
        head = _close(waiting, max(u, v), plain)
        if head < 0:
            break
    return count, True


@kernel
def _match(
    team: Team, rows: WeightedRows, ties: Ties, pointer: Array, pointed: Array, weight: Array,
    lists: WaitingLists, work: Work, sums: Array,
) -> None:  # fmt: skip
    """`pointer` becomes the matching.  Caller: lists.waiting is not negative, work.shared is 0.

    Vertices are unsigned; weights are the bits of positive floats as integers.  `weight` is
    `pointed` as floats.
    """
    waiting, following = lists
    queues, buffers, shared = work
    n = pointer.size
    kind, nobody = pointer.dtype.type, _nobody(pointer)
    expect(team, n)
    buffer = buffers[team.me]
    turn, rounds, size = 0, 0, n
    alone = False  # member 0 works, the others wait for it
    while size > 0:
        if alone and team.me > 0:
            if barrier(team):
                return
            size, turn, rounds = shared[_SIZE], shared[_TURN], shared[_MATCHED]
            alone = False
            continue
        queue, others = queues[turn], queues[1 - turn]
        tail = shared[_TAILS + (1 - turn) * _LINE :]
        if team.me == 0:
            tail[0] = 0

        if rounds == 0:  # the queue would be 0 .. n - 1
            chunk = next_chunk(team, n, CHUNK)
            while chunk >= 0:
                for i in range(np.uint64(chunk), np.uint64(min(chunk + CHUNK, n))):
                    pointer[i], pointed[i] = first_edge(
                        rows, kind(i), nobody, waiting, _accept_if_free, always, itself, ties
                    )
                chunk = next_chunk(team, n, CHUNK)
        else:
            chunk = 0 if alone else next_chunk(team, size, CHUNK)
            while chunk >= 0:
                for i in range(chunk, min(chunk + CHUNK, size)):
                    prefetch_queued(rows, queue, i, size)
                    u = queue[i]
                    pointer[u], pointed[u] = first_edge(
                        rows, u, nobody, waiting, _accept_if_free, always, itself, ties
                    )
                if not alone:
                    chunk = next_chunk(team, size, CHUNK)
                elif chunk + CHUNK < size:
                    chunk += CHUNK
                else:
                    chunk = -1
        if not alone and barrier(team):
            return

        matched = True
        if rounds == 0:
            if _settle_first(team, pointer, waiting, following, queue, others, tail):
                return
            advance(team, share(team, n)[1] - share(team, n)[0])
            matched = rows.indices.size > 0
        else:
            lo, hi = (0, size) if alone else share(team, size)
            plain = alone or team.size == 1
            matched, count = False, 0
            for i in range(lo, hi):
                count, done = _settle(
                    queue[i], pointer, waiting, following, plain, buffer, count, others, tail
                )
                matched |= done
            flush(buffer, count, others, tail)

        turn = 1 - turn
        if alone:
            size = tail[0]
            rounds += matched
            if stopping(team):
                return
            if size == 0 or size >= ONE_THREAD_QUEUE:
                shared[_SIZE], shared[_TURN], shared[_MATCHED] = size, turn, rounds
                alone = False
                if barrier(team):
                    return
            continue
        if matched:
            store_relaxed(shared, _MATCHED, rounds + 1)
        if barrier(team):
            return
        size, rounds = tail[0], load_relaxed(shared, _MATCHED)
        alone = 0 < size < ONE_THREAD_QUEUE and team.size > 1
        if alone and barrier(team):  # all members have read the words that member 0 writes now
            return
    sum_blocks(team, weight, sums)


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    n, kind = view.n, view.indices.dtype
    unsigned, bits = f"u{kind.itemsize}", f"i{view.data.dtype.itemsize}"
    team = crew(threads, work=view.nnz + n)
    mate, following = np.empty(n, kind), np.empty(n, unsigned)
    waiting = np.zeros(n, kind)
    queues = np.empty((2, n), unsigned)
    weight = np.empty(n, view.data.dtype)
    shared, sums = np.zeros(SHARED, np.int64), block_sums(n)
    team.run(
        _match, rows_of(view), Ties(np.uint64(seed), by_hash), mate.view(unsigned),
        weight.view(bits), weight, WaitingLists(waiting, following),
        Work(queues, np.empty((team.size, BUFFER), unsigned), shared), sums,
    )  # fmt: skip
    return EngineMatching(mate, matched_weight(sums), int(shared[_MATCHED]))
