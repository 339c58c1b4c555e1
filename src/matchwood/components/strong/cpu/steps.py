"""What the methods on a team share: marks of vertices, a list of the open ones, trimming.

A byte for each vertex, mark[v], says what is known about it:

    OPEN                   nothing
    DONE                   its component is known: parent[v] is the smallest vertex of it
    FORWARD                the pivot reaches it
    FORWARD | BACKWARD     and it reaches the pivot

Vertices are unsigned in the kernels: Numba tests every signed index for its sign.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    atomic_add,
    atomic_or,
    barrier,
    device,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
)

Array = np.ndarray[Any, Any]

OPEN = np.uint8(0)
DONE = np.uint8(1)
FORWARD = np.uint8(2)
BACKWARD = np.uint8(4)

LINE = 16  # words of int64 between two counters that members write: two cache lines


class Arcs(NamedTuple):
    """Arcs from each vertex, or to each."""

    indptr: Array
    indices: Array


def arcs_of(view: Any) -> Arcs:
    """The arcs of a view, in the same memory."""
    unsigned = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    return Arcs(view.indptr, view.indices.view(unsigned))


@device
def list_open(team: Any, mark: Array, listed: Array, sums: Array) -> Any:
    """Write the open vertices to `listed`, ascending; returns how many, -1: the team stops.

    All members call, after a barrier; ends with one.
    """
    lo, hi = share(team, mark.size)
    count = 0
    for v in range(lo, hi):
        count += mark[v] == OPEN
    sums[team.me] = count
    if barrier(team):
        return -1
    at = np.int64(0)
    total = np.int64(0)
    for member in range(team.size):
        if member == team.me:
            at = total
        total += sums[member]
    for v in range(np.uint64(lo), np.uint64(hi)):
        if mark[v] == OPEN:
            listed[at] = v
            at += 1
    return -1 if barrier(team) else total


# Trimming: a vertex without arcs to it, or without arcs from it, is a component by itself
#
# Taking it away may leave others without arcs, and so on.  Each open vertex has two counters, its
# arcs from and to open vertices.  A vertex taken away because nothing leads to it lowers a counter
# of those that it leads to; all that led to it were taken away before.  So each arc is followed
# once, from one end, and the whole is linear, however long the chain.
#
# A member follows the chain by itself, by a stack linked through `following`: a vertex is on one
# stack at most, and once.
#
# Races.  Counters are lowered atomically; a member that lowers one to zero claims the vertex by an
# atomic "or" on its mark, and the first to do so has it.


CHUNK = 1024  # vertices that a member takes at a time


@device
def has_loop(arcs: Arcs, v: Any) -> Any:
    """Is (v, v) stored?  Rows are sorted."""
    indptr, indices = arcs
    lo, hi = np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])
    while lo < hi:
        middle = (lo + hi) >> np.uint64(1)
        if np.uint64(indices[middle]) < v:
            lo = middle + np.uint64(1)
        else:
            hi = middle
    return lo < np.uint64(indptr[v + np.uint64(1)]) and np.uint64(indices[lo]) == v


@device
def lonely(arcs: Arcs, v: Any) -> Any:
    """Does the row of v hold nothing, or nothing but v?  Rows have no duplicates."""
    indptr, indices = arcs
    start, end = np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])
    return start == end or (start + np.uint64(1) == end and np.uint64(indices[start]) == v)


@device
def _open_arcs(arcs: Arcs, mark: Array, v: Any) -> Any:
    indptr, indices = arcs
    count = np.int64(0)
    for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
        w = indices[k]
        count += mark[w] == OPEN and np.uint64(w) != v
    return count


@device
def _count(
    team: Any, out: Arcs, into: Arcs, loops: bool, whole: bool, mark: Array, out_degree: Array,
    in_degree: Array,
) -> None:  # fmt: skip
    """Set both counters of all open vertices; `whole`: all vertices are open."""
    n = mark.size
    one = np.uint64(1)
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for v in range(np.uint64(chunk), np.uint64(min(chunk + CHUNK, n))):
            if mark[v] != OPEN:
                continue
            if whole:
                loop = np.int64(loops and has_loop(out, v))
                out_degree[v] = np.int64(out.indptr[v + one]) - np.int64(out.indptr[v]) - loop
                in_degree[v] = np.int64(into.indptr[v + one]) - np.int64(into.indptr[v]) - loop
            else:
                out_degree[v] = _open_arcs(out, mark, v)
                in_degree[v] = _open_arcs(into, mark, v)
        chunk = next_chunk(team, n, CHUNK)


@device
def _lower(
    arcs: Arcs, mark: Array, degree: Array, following: Array, v: Any, top: Any
) -> tuple[Any, int]:
    """Lower the counters of v's neighbours; those at 0 are claimed and put on the stack."""
    indptr, indices = arcs
    kind = degree.dtype.type
    claimed = 0
    for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
        w = indices[k]
        if load_relaxed(mark, w) != OPEN:
            continue
        if atomic_add(degree, w, kind(-1)) == kind(1) and atomic_or(mark, w, DONE) == OPEN:
            following[w] = top
            top = w
            claimed += 1
    return top, claimed


@kernel
def trim(
    team: Any, out: Arcs, into: Arcs, loops: bool, whole: bool, mark: Array, parent: Array,
    degrees: Array, following: Array,
) -> None:  # fmt: skip
    """Take away all such vertices; `degrees`, of shape (2, n), is scratch for the counters."""
    n = mark.size
    out_degree, in_degree = degrees[0], degrees[1]
    kind = out_degree.dtype.type
    _count(team, out, into, loops, whole, mark, out_degree, in_degree)
    if barrier(team):
        return
    no_vertex = kind(-1)  # the end of a stack
    taken = 0
    lo, hi = share(team, n)
    for seed in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(seed)):
            return
        if load_relaxed(mark, seed) != OPEN:
            continue
        if load_relaxed(out_degree, seed) != kind(0) and load_relaxed(in_degree, seed) != kind(0):
            continue
        if atomic_or(mark, seed, DONE) != OPEN:
            continue
        top = kind(seed)
        following[seed] = no_vertex
        taken += 1
        while top != no_vertex:
            v = np.uint64(top)
            parent[v] = v
            top = following[v]
            if interrupted(team, taken):
                return
            # one of the two is zero: the other side is where its arcs still count
            if load_relaxed(in_degree, v) == kind(0):
                top, claimed = _lower(out, mark, in_degree, following, v, top)
            else:
                top, claimed = _lower(into, mark, out_degree, following, v, top)
            taken += claimed
