"""Breadth-first search on a team.  The rule and the paper: __init__.py.

One kernel for the whole search, level after level, in one of three ways:

    alone       the front is small: member 0 goes on by itself, without barriers, until it grows
    top down    members take chunks of the front; vertices found go to the queue
    bottom up   members take chunks of all vertices; those unvisited look for the front's bitmap

The queue holds every vertex at most once, in the order of levels; the front is a window of it.

Parents.  Where arcs can be read backwards, the search finds levels only, and a last pass gives
every vertex the first neighbour of the level before, which in a sorted row is the smallest:
one array in the inner loop instead of two.  Elsewhere the smallest parent is found on the way.

Races.  Top down, several members may reach v at once.  With the last pass to come, `level[v]`
goes from -1 to the depth by compare-and-swap, and the member that did it appends v.  Without,
`parent[v]` only goes down, by an atomic minimum over unsigned values (-1, not reached, is the
largest); the one member that saw -1 there appends v and sets `level[v]`, and readers that see
that level either way go on to the minimum.  Bottom up, a chunk is a whole number of bitmap
words, so each word and level has one writer.

Vertices and places are unsigned in the kernels: Numba looks at every signed index for a sign.
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

Array = np.ndarray[Any, Any]

ALPHA = 15  # bottom up when the front's arcs exceed this part of those not seen yet [Beamer]
BETA = 18  # top down again when the front is smaller than this part of all vertices [Beamer]
ALONE = 400  # vertices; a smaller front is quicker without a second member (bench/traversal)
CHUNK = 64  # vertices of the front that a member takes at a time
BUFFER = 512  # found vertices that a member collects before it goes to the shared queue
WORD = 64  # bits of a bitmap word
ROWS = 64 * WORD  # vertices that a member takes at a time, bottom up

# words of `shared`, a cache line apart; found and arcs rotate over three levels, so that one can
# be set to zero while another is read and the third is counted
_LINE = 16
_FOUND, _ARCS, _LONGEST = 0, 3 * _LINE, 6 * _LINE
_SOLO = 7 * _LINE  # what member 0 found alone: start, end, depth, arcs, unseen; two, in turn
SHARED = 9 * _LINE


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
    unseen: int,
    longest: int,
    backwards: bool,
) -> tuple[int, int, int, int, int]:
    """Levels by one member, while the front has under `most` vertices.

    Also stops where the direction should change.  Returns the window of the front, its depth,
    its arcs, and the arcs that remain unseen.
    """
    arcs = np.int64(0)
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
            unseen -= np.int64(last - first)
            for k in range(first, last):
                v = indices[k]
                if level[v] < 0:
                    level[v] = below
                    queue[tail] = v
                    tail += 1
                    if not backwards:
                        parent[v] = u
                elif not backwards and u < parent[v] and level[v] == below:
                    parent[v] = u
        start, end, depth = end, tail, depth + 1
        if backwards and (end - start) * longest > unseen // ALPHA:
            arcs = _arcs_of(indptr, queue, start, end)
            if arcs > unseen // ALPHA:
                break
    return start, end, depth, arcs, unseen


@device
def _flush(mine: Array, count: int, queue: Array, end: int, shared: Array, slot: int) -> int:
    """Move a member's buffer to the queue; returns the new fill, 0."""
    if count > 0:
        place = end + atomic_add(shared, _FOUND + slot, count)
        for i in range(count):
            queue[place + i] = mine[i]
    return 0


@device
def _claim(level: Array, parent: Array, u: Any, v: Any, below: Any, backwards: bool) -> bool:
    """Reach v from u; True for the one member that reached it first."""
    seen = load_relaxed(level, v)
    if backwards:
        return seen < 0 and atomic_cas(level, v, level.dtype.type(-1), below) < 0
    if (seen < 0 or seen == below) and u < load_relaxed(parent, v):
        if atomic_min(parent, v, u) == parent.dtype.type(-1):
            store_relaxed(level, v, below)
            return True
    return False


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
    backwards: bool,
    shared: Array,
    slot: int,
    mine: Array,
) -> None:
    count = 0
    followed = np.int64(0)
    below = level.dtype.type(depth + 1)
    chunk = next_chunk(team, end - start, CHUNK)
    while chunk >= 0:
        for i in range(start + chunk, min(start + chunk + CHUNK, end)):
            u = queue[i]
            first, last = _row(indptr, u)
            followed += np.int64(last - first)
            for k in range(first, last):
                v = indices[k]
                if _claim(level, parent, u, v, below, backwards):
                    if count == BUFFER:
                        count = _flush(mine, count, queue, end, shared, slot)
                    mine[count] = v
                    count += 1
        chunk = next_chunk(team, end - start, CHUNK)
    _flush(mine, count, queue, end, shared, slot)
    atomic_add(shared, _ARCS + slot, followed)


@device
def _bottom_up(
    team: Any,
    indptr: Array,
    indices: Array,
    level: Array,
    parent: Array,
    front: Array,
    found: Array,
    depth: int,
    shared: Array,
    slot: int,
) -> None:
    n = level.size
    count = 0
    one = np.uint64(1)
    six, low = indices.dtype.type(6), indices.dtype.type(63)
    chunk = next_chunk(team, n, ROWS)
    while chunk >= 0:
        for word in range(chunk // WORD, (min(chunk + ROWS, n) + WORD - 1) // WORD):
            bits = np.uint64(0)
            for v in range(np.uint64(word * WORD), np.uint64(min(word * WORD + WORD, n))):
                if level[v] < 0:
                    for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + one])):
                        u = indices[k]
                        if (front[u >> six] >> np.uint64(u & low)) & one:
                            level[v] = depth + 1
                            parent[v] = u
                            bits |= one << (v & np.uint64(63))
                            count += 1
                            break
            found[word] = bits
        chunk = next_chunk(team, n, ROWS)
    atomic_add(shared, _FOUND + slot, count)


@device
def _level_to_bitmap(team: Any, level: Array, depth: int, bitmap: Array) -> None:
    """Bits of the vertices of one level; each member writes words of its own."""
    n = level.size
    lo, hi = share(team, bitmap.size)
    for word in range(lo, hi):
        bits = np.uint64(0)
        for v in range(word * WORD, min(word * WORD + WORD, n)):
            if level[v] == depth:
                bits |= np.uint64(1) << np.uint64(v & 63)
        bitmap[word] = bits


@device
def _bitmap_to_queue(
    team: Any,
    bitmap: Array,
    queue: Array,
    end: int,
    shared: Array,
    slot: int,
    mine: Array,
) -> None:
    """Append the vertices of a bitmap to the queue."""
    count = 0
    lo, hi = share(team, bitmap.size)
    for word in range(lo, hi):
        bits = bitmap[word]
        v = word * WORD
        while bits != np.uint64(0):
            if bits & np.uint64(1):
                if count == BUFFER:
                    count = _flush(mine, count, queue, end, shared, slot)
                mine[count] = v
                count += 1
            bits >>= np.uint64(1)
            v += 1
    _flush(mine, count, queue, end, shared, slot)


@device
def _first_parents(
    team: Any, indptr: Array, indices: Array, level: Array, parent: Array
) -> None:
    """The first neighbour of the level before, for vertices that have no parent yet."""
    n = level.size
    none = parent.dtype.type(-1)
    one = np.uint64(1)
    chunk = next_chunk(team, n, ROWS)
    while chunk >= 0:
        for v in range(np.uint64(chunk), np.uint64(min(chunk + ROWS, n))):
            if level[v] > 0 and parent[v] == none:
                above = level[v] - 1
                for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + one])):
                    if level[indices[k]] == above:
                        parent[v] = indices[k]
                        break
        chunk = next_chunk(team, n, ROWS)


@device
def _open_slot(team: Any, shared: Array, step: int) -> int:
    """The slot of this step; member 0 empties the next one, which nobody uses now."""
    if team.rank == 0:
        store_relaxed(shared, _FOUND + (step + 1) % 3, 0)
        store_relaxed(shared, _ARCS + (step + 1) % 3, 0)
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
    buffers: Array,
    bitmaps: Array,
    shared: Array,
) -> None:
    n = level.size
    mine = buffers[team.rank]
    lo, hi = share(team, n)
    longest = np.int64(0)
    for v in range(lo, hi):
        level[v] = -1
        parent[v] = -1
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
    start, end, depth, step = 0, sources, 0, 0
    unseen = np.int64(indptr[n])  # arcs of vertices not expanded yet
    arcs = _arcs_of(indptr, queue, 0, sources)  # of the front, where that could matter
    expect(team, n)
    size = end - start
    front = 0
    while size > 0 and depth < limit:
        if backwards and arcs > unseen // ALPHA:
            _level_to_bitmap(team, level, depth, bitmaps[front])
            if barrier(team):
                return
            before = 0
            while size > 0 and depth < limit and (size >= before or size > n // BETA):
                slot = _open_slot(team, shared, step)
                _bottom_up(
                    team, in_indptr, in_indices, level, parent,
                    bitmaps[front], bitmaps[1 - front], depth, shared, slot,
                )  # fmt: skip
                if barrier(team):
                    return
                before, size = size, load_relaxed(shared, _FOUND + slot)
                front = 1 - front
                depth += 1
                step += 1
                if team.rank == 0:
                    advance(team, size)
            start = end
            slot = _open_slot(team, shared, step)
            _bitmap_to_queue(team, bitmaps[front], queue, end, shared, slot, mine)
            if barrier(team):
                return
            end += size
            arcs = np.int64(0)  # at least one level top down before the next change
            step += 1
        elif team.size == 1 or size < ALONE:
            at = _SOLO + step % 2 * _LINE
            solo = shared[at : at + _LINE]
            if team.rank == 0:
                most = n + 1 if team.size == 1 else ALONE
                solo[0], solo[1], solo[2], solo[3], solo[4] = _alone(
                    team, indptr, indices, level, parent, queue,
                    start, end, depth, limit, most, unseen, longest, backwards,
                )  # fmt: skip
                advance(team, solo[1] - start)
            if barrier(team):
                return
            start, end, depth, arcs, unseen = solo[0], solo[1], solo[2], solo[3], solo[4]
            size = end - start
            step += 1
        else:
            slot = _open_slot(team, shared, step)
            _top_down(
                team, indptr, indices, level, parent, queue, start, end, depth, backwards,
                shared, slot, mine,
            )  # fmt: skip
            if barrier(team):
                return
            size = load_relaxed(shared, _FOUND + slot)
            unseen -= load_relaxed(shared, _ARCS + slot)
            start, end = end, end + size
            depth += 1
            step += 1
            arcs = np.int64(0)
            if backwards and size * longest > unseen // ALPHA:
                slot = _open_slot(team, shared, step)
                lo, hi = share(team, size)
                atomic_add(
                    shared, _ARCS + slot, _arcs_of(indptr, queue, start + lo, start + hi)
                )
                if barrier(team):
                    return
                arcs = load_relaxed(shared, _ARCS + slot)
                step += 1
            if team.rank == 0:
                advance(team, size)
    if backwards:
        if barrier(team):
            return
        _first_parents(team, in_indptr, in_indices, level, parent)


def search(
    outward: Any, inward: Any, sources: Array, limit: int, *, threads: int | None = None
) -> tuple[Array, Array, int]:
    n = outward.n
    kind = outward.indptr.dtype
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    team = crew(threads, work=outward.nnz + n)
    level = np.empty(n, kind)
    parent = np.empty(n, kind)
    queue = np.empty(n, unsigned)
    queue[: sources.size] = sources
    back = outward if inward is None else inward
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
        parent.view(unsigned),
        queue,
        np.empty((team.size, BUFFER), unsigned),
        np.empty((2, (n + WORD - 1) // WORD), np.uint64),
        np.zeros(SHARED, np.int64),
    )
    return level, parent, int(level.max(initial=0))
