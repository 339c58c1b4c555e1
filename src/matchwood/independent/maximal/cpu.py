"""The greedy independent set on a team.  The order: order.py; the papers: __init__.py.

No rounds and no sorting: members go through the vertices by index.  A vertex that has to wait for
a neighbour is pushed on a stack while that neighbour is decided, and so on.  Each row is read
once: the stack keeps the place in the row.  A vertex that joins puts all its neighbours out, whose
rows then need not be read.

One byte a vertex, OUT, JOINED, or while undecided its place in the order, the larger the earlier.

Races: a byte goes from undecided to OUT or JOINED once.  Any member, in any order, comes to the
same decision, since the greedy set is unique.  Two members may do the same work at the same time
and write the same byte.  Nothing else is shared, so relaxed accesses are enough, and no member ever
waits for another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    advance,
    barrier,
    crew,
    device,
    expect,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    stopping,
    store_relaxed,
)
from matchwood.independent.maximal import cpu_sampling
from matchwood.independent.maximal.order import TOP_CLASS as _TOP_CLASS
from matchwood.independent.maximal.order import start_of
from matchwood.primitives.hashing.cpu import mix64

Array = np.ndarray[Any, Any]

OUT, JOINED, FIRST = np.uint8(0), np.uint8(1), np.uint8(2)  # FIRST and above: undecided
TOP_CLASS = 62  # as in order.py
TOP = 254  # the byte of the vertices that come first
CHUNK = 2048  # vertices that a member takes at a time, at least
# Chunks of each member in a large graph.  Few, because members that work near each other do the
# same work twice.
CHUNKS = 8
STACK_VERTICES = 1 << 12  # room of a member's stack; random orders need some tens, others: _settle
_S62 = np.uint64(62)

assert TOP_CLASS == _TOP_CLASS


@device
def _place(v: Any, degree: Any, start: Any) -> Any:
    """The byte of an undecided vertex in the order of "luby"."""
    below = degree - 1
    b = 0
    while below >= 4:
        below >>= 1
        b += 1
    q = np.int64(mix64(start ^ np.uint64(v)) >> _S62)
    return np.uint8(TOP - 4 * min(2 * b + below, TOP_CLASS) - q)


@device
def _precedes(w: Any, v: Any, by_index: bool, start: Any) -> bool:
    """w comes before v; both have the same byte."""
    if by_index:
        return w < v
    return mix64(start ^ np.uint64(w)) < mix64(start ^ np.uint64(v))


@device
def _settle(
    team: Any,
    indptr: Array,
    indices: Array,
    by_index: bool,
    start: Any,
    status: Array,
    waiting: Array,
    places: Array,
    v: Any,
) -> None:
    """Decide v, after those that it has to wait for.

    The stack holds the last STACK_VERTICES of a chain of vertices that wait for each other.  Where
    a chain is longer, its beginning is dropped.  Then v is not decided yet, but STACK_VERTICES
    others are, and the caller calls again.
    """
    base = np.int64(team.rank) * STACK_VERTICES
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
    team: Any,
    indptr: Array,
    indices: Array,
    by_index: bool,
    start: Any,
    status: Array,
    waiting: Array,
    places: Array,
) -> None:
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


def choose(view: Any, method: str, seed: int, *, threads: int | None = None) -> tuple[Array, int]:
    n = view.n
    unsigned = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    team = crew(threads, work=view.nnz + n)
    status = np.empty(n, np.uint8)
    if n == 0:
        return status.view(np.bool_), 0
    indptr, indices = view.indptr, view.indices.view(unsigned)
    if method == "luby_sampling":
        return status.view(np.bool_), cpu_sampling.sample(team, indptr, indices, seed, status)
    waiting = np.empty(team.size * STACK_VERTICES, unsigned)
    places = np.empty(team.size * STACK_VERTICES, np.int64)
    team.run(
        _greedy, indptr, indices, method == "lexicographic", np.uint64(start_of(seed)),
        status, waiting, places,
    )  # fmt: skip
    return status.view(np.bool_), 1
