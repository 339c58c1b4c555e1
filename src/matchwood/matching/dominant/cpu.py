"""Locally dominant matching on a team.  The rule and the papers: matching/weighted.py.

A round works on a queue: in the first round all vertices, then those whose pointer became invalid.

    point    each vertex of the queue finds its first edge to a free neighbour
    match    two vertices that point at each other become mates
    wake     a vertex that was not matched waits for the one it points at, in a list that hangs
             from it; the lists of newly matched vertices are the next queue

So a vertex costs work when its pointer has to change and not while it waits; on a path of
ascending weights, where a round matches one edge, that makes n rounds of constant work.  Small
queues are worked off by member 0 alone, without barriers.

Races.  Each phase ends with a barrier and reads only what earlier phases wrote, with two
exceptions.  Two ends of an edge may both find it mutual: the smaller end's `mate` is set by
compare-and-swap, and the member that did so does the rest.  Several vertices may join one waiting
list: each puts itself in front by an exchange.  Lists are only joined at free vertices and only
read at matched ones.  The queue's order is arbitrary, and no phase depends on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.matching.cpu_weight import block_sums, matched_weight, sum_blocks
from matchwood.matching.result import Found
from matchwood.primitives.edge_order.cpu import prefers_tied
from matchwood.primitives.frontier.cpu import BUFFER, flush, push
from matchwood.teams import (
    Team,
    advance,
    atomic_cas,
    atomic_exchange,
    barrier,
    crew,
    device,
    expect,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    stopping,
    store_relaxed,
)

Array = np.ndarray[Any, Any]
CHUNK = 256  # vertices that a member takes at a time while pointing
SHORT = 32  # entries; in longer rows branches pay, see suitor/cpu.py
ALONE = 1000  # vertices in the queue; fewer are quicker without a second member

# Words of `shared`, a cache line apart: the lengths of two queues, the last round that matched
# anybody, and what member 0 leaves behind when it worked alone.
_LINE = 16
_TAILS, _MATCHED, _SIZE, _TURN = 0, 2 * _LINE, 3 * _LINE, 3 * _LINE + 1
SHARED = 4 * _LINE


@device
def _first_among_ties(
    indices: Array, data: Array, start: Any, end: Any, u: Any, mate: Array, seed: Any, by_hash: bool
) -> Any:
    """As `_first_free`, for rows with equal weights."""
    free = ~mate.dtype.type(0)
    best, best_w = u, data.dtype.type(0)
    for k in range(start, end):
        v, w = indices[k], data[k]
        if w < best_w or mate[v] != free:
            continue
        if w > best_w or prefers_tied(u, v, u, best, seed, by_hash):
            best, best_w = v, w
    return best, best_w


@device
def _first_free(
    indptr: Array, indices: Array, data: Array, u: Any, mate: Array, seed: Any, by_hash: bool
) -> Any:
    """The free neighbour along u's first edge, and the weight; u itself when there is none."""
    free = ~mate.dtype.type(0)
    best, best_w = u, data.dtype.type(0)
    tied = False
    start, end = np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)])
    if end - start <= np.uint64(SHORT):
        for k in range(start, end):  # no branches: none of them could be predicted
            v, w = indices[k], data[k]
            is_free = mate[v] == free
            better = (w > best_w) & is_free
            tied |= (w == best_w) & is_free
            best = v if better else best
            best_w = w if better else best_w
    else:
        for k in range(start, end):
            w = data[k]
            if w >= best_w and mate[indices[k]] == free:
                tied |= w == best_w
                best, best_w = indices[k], w
    if tied:
        best, best_w = _first_among_ties(indices, data, start, end, u, mate, seed, by_hash)
    return best, best_w


@device
def _point(
    indptr: Array,
    indices: Array,
    data: Array,
    u: Any,
    mate: Array,
    pointer: Array,
    weight: Array,
    seed: Any,
    by_hash: bool,
) -> None:
    v, w = _first_free(indptr, indices, data, u, mate, seed, by_hash)
    pointer[u] = v
    weight[u] = w


@device
def _marry(u: Any, mate: Array, pointer: Array) -> bool:
    """Match u with the vertex it points at, if that points back.  True: this call did it."""
    free = ~mate.dtype.type(0)
    v = pointer[u]
    if v == u or pointer[v] != u:
        return False
    low, high = min(u, v), max(u, v)
    if atomic_cas(mate, low, free, high) != free:
        return False
    store_relaxed(mate, high, low)
    return True


@device
def _wake(
    u: Any,
    mate: Array,
    pointer: Array,
    waiting: Array,
    following: Array,
    buffer: Array,
    count: int,
    queue: Array,
    tail: Array,
) -> int:
    """Queue those who wait for u where u is matched now; else let u wait, or queue it."""
    free = ~mate.dtype.type(0)
    v = pointer[u]
    if mate[u] != free:
        # An end that was not in the queue is looked after by the end that was.
        count = _release(u, mate, waiting, following, buffer, count, queue, tail)
        return _release(v, mate, waiting, following, buffer, count, queue, tail)
    if v == u:
        return count
    if mate[v] != free:
        return push(buffer, count, u, queue, tail)
    following[u] = atomic_exchange(waiting, v, u)
    return count


@device
def _release(
    u: Any,
    mate: Array,
    waiting: Array,
    following: Array,
    buffer: Array,
    count: int,
    queue: Array,
    tail: Array,
) -> int:
    """Queue the free vertices of u's waiting list, which is empty afterwards."""
    free = ~mate.dtype.type(0)
    waiter = atomic_exchange(waiting, u, free)
    while waiter != free:
        if mate[waiter] == free:
            count = push(buffer, count, waiter, queue, tail)
        waiter = following[waiter]
    return count


@kernel
def _match(
    team: Team,
    indptr: Array,
    indices: Array,
    data: Array,
    seed: Any,
    by_hash: bool,
    mate: Array,
    pointer: Array,
    weight: Array,
    waiting: Array,
    following: Array,
    queues: Array,
    buffers: Array,
    shared: Array,
    sums: Array,
) -> None:
    """Caller: mate and waiting all ones (nobody), queues[0] = 0 .. n - 1; vertices unsigned."""
    size = mate.size
    expect(team, size)
    buffer = buffers[team.rank]
    turn, rounds = 0, 0
    while size > 0:
        alone = size < ALONE or team.size == 1
        if alone and barrier(team):  # everybody has read the words that member 0 writes now
            return
        if alone and team.rank == 0:
            while size > 0 and (size < ALONE or team.size == 1):
                if stopping(team):
                    break
                queue, others = queues[turn], queues[1 - turn]
                tail = shared[_TAILS + (1 - turn) * _LINE :]
                tail[0] = 0
                matched = False
                count = 0
                for i in range(size):
                    _point(indptr, indices, data, queue[i], mate, pointer, weight, seed, by_hash)
                for i in range(size):
                    matched |= _marry(queue[i], mate, pointer)
                for i in range(size):
                    count = _wake(
                        queue[i], mate, pointer, waiting, following, buffer, count, others, tail
                    )
                flush(buffer, count, others, tail)
                rounds += matched
                size, turn = tail[0], 1 - turn
            shared[_SIZE], shared[_TURN], shared[_MATCHED] = size, turn, rounds
        if alone:
            if barrier(team):
                return
            size, turn, rounds = shared[_SIZE], shared[_TURN], shared[_MATCHED]
            continue
        queue, others = queues[turn], queues[1 - turn]
        tail = shared[_TAILS + (1 - turn) * _LINE :]
        chunk = next_chunk(team, size, CHUNK)
        while chunk >= 0:
            for i in range(chunk, min(chunk + CHUNK, size)):
                _point(indptr, indices, data, queue[i], mate, pointer, weight, seed, by_hash)
            chunk = next_chunk(team, size, CHUNK)
        if team.rank == 0:
            tail[0] = 0
        if barrier(team):
            return
        lo, hi = share(team, size)
        matched = False
        for i in range(lo, hi):
            matched |= _marry(queue[i], mate, pointer)
        if matched:
            store_relaxed(shared, _MATCHED, rounds + 1)
        if barrier(team):
            return
        count = 0
        for i in range(lo, hi):
            count = _wake(queue[i], mate, pointer, waiting, following, buffer, count, others, tail)
        flush(buffer, count, others, tail)
        advance(team, hi - lo)
        if barrier(team):
            return
        rounds = load_relaxed(shared, _MATCHED)
        size, turn = tail[0], 1 - turn
    sum_blocks(team, weight, sums)


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> Found:
    n, kind = view.n, view.indices.dtype
    unsigned = f"u{kind.itemsize}"
    team = crew(threads, work=view.nnz + n)
    mate, waiting = np.full(n, -1, kind), np.full(n, -1, kind)
    pointer, following = np.empty(n, kind), np.empty(n, kind)
    queues = np.empty((2, n), kind)
    queues[0] = np.arange(n)
    weight = np.zeros(n, view.data.dtype)
    shared, sums = np.zeros(SHARED, np.int64), block_sums(n)
    team.run(
        _match,
        view.indptr.view(unsigned),
        view.indices.view(unsigned),
        view.data,
        np.uint64(seed),
        by_hash,
        *(array.view(unsigned) for array in (mate, pointer)),
        weight,
        *(array.view(unsigned) for array in (waiting, following, queues)),
        np.empty((team.size, BUFFER), unsigned),
        shared,
        sums,
    )
    return Found(mate, matched_weight(sums), int(shared[_MATCHED]))
