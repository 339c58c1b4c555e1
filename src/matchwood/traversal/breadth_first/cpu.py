"""Breadth-first search on a team.  The rule and the paper: __init__.py.

One kernel for the whole search, level after level, in one of three ways:

    alone       the front is small: member 0 goes on by itself, without barriers, until it grows
    top down    members share the front; vertices found go to the queue
    bottom up   members take chunks of all vertices, those unvisited look for the front
                (cpu_bottom_up.py)

`level[v]` and `parent[v]` are all ones (that is, -1) where v is not reached.  A vertex gets its
level from whoever reaches it first, and its parent is the minimum over all of the level before
that reach it.

The queue holds every vertex at most once, in the order of levels; the front is a window of it.
Vertices found by a member lie together in it, in the order of members, and members share the
front in that order: so a member goes on where it has been, and vertices of one neighbourhood stay
in one core's cache.  (Handing out small chunks to whoever is free took three times as long on
meshes.)

Races.  Top down, several members may reach v at once: one of them changes `level[v]`, by
compare-and-swap, and appends v; `parent[v]` only goes down, by an atomic minimum, and is not read
before the next barrier but to save that.  Bottom up there are none.

Vertices are unsigned in the kernels: Numba looks at every signed index for a sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import (
    advance,
    atomic_add,
    atomic_cas,
    atomic_max,
    atomic_min,
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
from matchwood.traversal.breadth_first.cpu_bottom_up import (
    WORD,
    bitmap_to_queue,
    bottom_up,
    count_bits,
    level_to_bitmap,
    unreached,
)

Array = np.ndarray[Any, Any]

BETA = 18  # top down again when the front is smaller than this part of all vertices [Beamer]
ALONE = 4096  # arcs; with fewer to follow, one member is as quick (bench/traversal)
EVEN_ROWS = 64  # entries; with rows no longer than this, equal numbers of vertices are equal work
CHUNK = 64  # vertices of the front that a member takes at a time where rows are uneven
BLOCK = 512  # found vertices that a member collects at a time

# words of `shared`, a cache line apart; counters rotate over three levels, so that one can be set
# to zero while another is read and the third is counted
_LINE = 16
_FOUND, _BLOCKS, _ARCS = (3 * k * _LINE for k in range(3))
_LONGEST = 9 * _LINE
_SOLO = 10 * _LINE  # what member 0 found alone: start, end, depth, arcs; two, in turn
_DEEPEST = 12 * _LINE
SHARED = 13 * _LINE


@device
def _row(indptr: Array, u: Any) -> tuple[Any, Any]:
    """Where the row of u starts and ends, as unsigned numbers."""
    return np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)])


@device
def _arcs_of(indptr: Array, queue: Array, start: int, end: int) -> int:
    """Arcs that leave the vertices of a window of the queue."""
    arcs = np.int64(0)
    for i in range(start, end):
        first, last = _row(indptr, queue[i])
        arcs += np.int64(last - first)
    return arcs


@device
def _paysbottom_up(arcs: int, unvisited: int, m: int) -> bool:
    """Is it less work to go bottom up from a front with so many arcs?

    An arc ends in the front with probability q = arcs / m, so an unvisited vertex looks at about
    1 / q arcs before it finds one: unvisited * m / arcs in all, against `arcs` top down.  Meshes,
    whose fronts are thin, never get there; where degrees are skewed, the second or third level
    does.  (Beamer's rule, arcs > unseen / 15, sends meshes bottom up, three times slower.)
    """
    return np.float64(arcs) * np.float64(arcs) > np.float64(unvisited) * np.float64(m)


@device
def _alone(
    team: Any,
    indptr: Array,
    indices: Array,
    level: Array,
    parent: Array,
    queue: Array,
    start: int,
    end: int,
    depth: int,
    limit: int,
    most: int,
    longest: int,
    backwards: bool,
) -> tuple[int, int, int, int]:
    """Levels by one member, while the front has under `most` vertices.

    Also stops where the direction should change.  Returns the window of the front, its depth,
    and its arcs, where they matter.
    """
    n = level.size
    m = np.int64(indptr[n])
    arcs = np.int64(0)
    nowhere = unreached(level)
    while end > start and depth < limit and end - start < most:
        if stopping(team):
            break
        tail = end
        below = level.dtype.type(depth + 1)
        for i in range(start, end):
            if interrupted(team, i):
                break
            u = queue[i]
            first, last = _row(indptr, u)
            for k in range(first, last):
                v = indices[k]
                if level[v] >= below:  # not reached, or reached from this level
                    if level[v] == nowhere:
                        level[v] = below
                        parent[v] = u
                        queue[tail] = v
                        tail += 1
                    elif parent[v] > u:
                        parent[v] = u
        start, end, depth = end, tail, depth + 1
        if backwards and _paysbottom_up((end - start) * longest, n - end, m):
            arcs = _arcs_of(indptr, queue, start, end)
            if _paysbottom_up(arcs, n - end, m):
                break
    return start, end, depth, arcs


@device
def _expand(
    indptr: Array,
    indices: Array,
    level: Array,
    parent: Array,
    below: Any,
    queue: Array,
    lo: int,
    hi: int,
    pool: Array,
    blocks: Array,
    count: int,
    shared: Array,
    slot: int,
) -> int:
    """Follow the arcs of queue[lo:hi]; what is found goes to blocks of the pool.

    `count` vertices are in this member's blocks before; returns how many afterwards.
    """
    at = np.int64(0)
    if count > 0:
        at = blocks[(count - 1) // BLOCK] * BLOCK + (count - 1) % BLOCK + 1
    nowhere = unreached(level)
    for i in range(lo, hi):
        u = queue[i]
        first, last = _row(indptr, u)
        for k in range(first, last):
            v = indices[k]
            there = load_relaxed(level, v)
            if there < below:
                continue
            if load_relaxed(parent, v) > u:
                atomic_min(parent, v, u)
            if there == nowhere and atomic_cas(level, v, nowhere, below) == nowhere:
                if count % BLOCK == 0:
                    block = atomic_add(shared, _BLOCKS + slot * _LINE, 1)
                    blocks[count // BLOCK] = block
                    at = block * BLOCK
                pool[at] = v
                at += 1
                count += 1
    return count


@device
def _top_down(
    team: Any,
    indptr: Array,
    indices: Array,
    level: Array,
    parent: Array,
    queue: Array,
    start: int,
    end: int,
    depth: int,
    even: bool,
    pool: Array,
    blocks: Array,
    shared: Array,
    slot: int,
) -> int:
    """One level; returns how many vertices this member found."""
    below = level.dtype.type(depth + 1)
    size = end - start
    if even:
        lo, hi = share(team, size)
        return _expand(
            indptr, indices, level, parent, below, queue, start + lo, start + hi,
            pool, blocks, 0, shared, slot,
        )  # fmt: skip
    count = 0
    chunk = next_chunk(team, size, CHUNK)
    while chunk >= 0:
        count = _expand(
            indptr, indices, level, parent, below, queue,
            start + chunk, start + min(chunk + CHUNK, size), pool, blocks, count, shared, slot,
        )  # fmt: skip
        chunk = next_chunk(team, size, CHUNK)
    return count


@device
def _place(team: Any, sums: Array, slot: int) -> tuple[int, int]:
    """How many vertices the members before this one found, and all of them."""
    before = total = np.int64(0)
    for member in range(team.size):
        if member == team.rank:
            before = total
        total += sums[slot, member]
    return before, total


@device
def _append(pool: Array, blocks: Array, count: int, queue: Array, place: int) -> None:
    """Copy this member's blocks to its part of the queue."""
    for first in range(0, count, BLOCK):
        at = blocks[first // BLOCK] * BLOCK
        for i in range(min(BLOCK, count - first)):
            queue[place + first + i] = pool[at + i]


@device
def _open_slot(team: Any, shared: Array, step: int) -> int:
    """The slot of this step; member 0 empties the next one, which nobody uses now.

    Every step must open its slot, used or not: a slot left out would be found full later.
    """
    if team.rank == 0:
        after = (step + 1) % 3 * _LINE
        store_relaxed(shared, _FOUND + after, 0)
        store_relaxed(shared, _BLOCKS + after, 0)
        store_relaxed(shared, _ARCS + after, 0)
    return step % 3


@kernel
def _search(
    team: Any,
    indptr: Array,
    indices: Array,
    in_indptr: Array,
    in_indices: Array,
    backwards: bool,
    limit: int,
    sources: int,
    level: Array,
    parent: Array,
    queue: Array,
    pool: Array,
    lists: Array,
    sums: Array,
    bitmaps: Array,
    shared: Array,
) -> None:
    n = level.size
    nowhere = unreached(level)
    blocks = lists[team.rank]
    first, last = share(team, n)
    longest = np.int64(0)
    for v in range(first, last):
        level[v] = nowhere
        parent[v] = nowhere
        longest = max(longest, np.int64(indptr[v + 1]) - np.int64(indptr[v]))
    atomic_max(shared, _LONGEST, longest)
    if barrier(team):
        return
    if team.rank == 0:
        for i in range(sources):
            level[queue[i]] = 0
            parent[queue[i]] = queue[i]
    if barrier(team):
        return
    longest = shared[_LONGEST]
    each = max(np.int64(1), np.int64(indptr[n]) // n)  # arcs of a vertex, on average
    few = n + 1 if team.size == 1 else ALONE // each
    start, end, depth, step = 0, sources, 0, 0
    m = np.int64(indptr[n])
    reached = np.int64(sources)
    arcs = _arcs_of(indptr, queue, 0, sources)  # of the front, where that matters
    expect(team, n)
    size = end - start
    front = 0
    while size > 0 and depth < limit:
        if backwards and _paysbottom_up(arcs, n - reached, m):
            level_to_bitmap(team, level, depth, bitmaps[front])
            if barrier(team):
                return
            first_time = True
            while depth < limit and (first_time or size > n // BETA):
                slot = _open_slot(team, shared, step)
                count = bottom_up(
                    team, in_indptr, in_indices, level, parent,
                    bitmaps[front], bitmaps[1 - front], depth,
                )  # fmt: skip
                atomic_add(shared, _FOUND + slot * _LINE, count)
                if barrier(team):
                    return
                size = load_relaxed(shared, _FOUND + slot * _LINE)
                reached += size
                first_time = False
                front = 1 - front
                depth += 1
                step += 1
                if team.rank == 0:
                    advance(team, size)
            slot = _open_slot(team, shared, step)
            sums[slot, team.rank] = count_bits(team, bitmaps[front])
            if barrier(team):
                return
            place, size = _place(team, sums, slot)
            bitmap_to_queue(team, bitmaps[front], queue, end + place)
            if barrier(team):
                return
            start, end = end, end + size
            arcs = np.int64(0)  # at least one level top down before the next change
            step += 1
        elif size < few:
            _open_slot(team, shared, step)
            at = _SOLO + step % 2 * _LINE
            solo = shared[at : at + _LINE]
            if team.rank == 0:
                solo[0], solo[1], solo[2], solo[3] = _alone(
                    team, indptr, indices, level, parent, queue,
                    start, end, depth, limit, few, longest, backwards,
                )  # fmt: skip
                advance(team, solo[1] - end)
            if barrier(team):
                return
            reached += solo[1] - end
            start, end, depth, arcs = solo[0], solo[1], solo[2], solo[3]
            size = end - start
            step += 1
        else:
            slot = _open_slot(team, shared, step)
            count = _top_down(
                team, indptr, indices, level, parent, queue, start, end, depth,
                longest <= EVEN_ROWS, pool, blocks, shared, slot,
            )  # fmt: skip
            sums[slot, team.rank] = count
            if barrier(team):
                return
            place, size = _place(team, sums, slot)
            reached += size
            _append(pool, blocks, count, queue, end + place)
            if backwards and _paysbottom_up(size * longest, n - reached, m):
                mine = _arcs_of(indptr, queue, end + place, end + place + count)
                atomic_add(shared, _ARCS + slot * _LINE, mine)
            if barrier(team):
                return
            arcs = load_relaxed(shared, _ARCS + slot * _LINE)
            start, end = end, end + size
            depth += 1
            step += 1
            if team.rank == 0:
                advance(team, size)
    if team.rank == 0:
        shared[_DEEPEST] = max(0, depth if size > 0 else depth - 1)


def search(
    outward: Any, inward: Any, sources: Array, limit: int, *, threads: int | None = None
) -> tuple[Array, Array, int]:
    n = outward.n
    kind = outward.indptr.dtype
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    if n == 0:
        return np.empty(0, kind), np.empty(0, kind), 0
    team = crew(threads, work=outward.nnz + n)
    room = n // BLOCK + 1
    level, parent = np.empty(n, unsigned), np.empty(n, unsigned)
    queue = np.empty(n, unsigned)
    queue[: sources.size] = sources
    back = outward if inward is None else inward
    shared = np.zeros(SHARED, np.int64)
    team.run(
        _search,
        outward.indptr,
        outward.indices.view(unsigned),
        back.indptr,
        back.indices.view(unsigned),
        inward is not None,
        limit,
        sources.size,
        level,
        parent,
        queue,
        np.empty((room + team.size) * BLOCK if team.size > 1 else 0, unsigned),
        np.empty((team.size, room), np.int64),
        np.zeros((3, team.size), np.int64),
        np.empty((2, (n + WORD - 1) // WORD), np.uint64),
        shared,
    )
    return level.view(kind), parent.view(kind), int(shared[_DEEPEST])
