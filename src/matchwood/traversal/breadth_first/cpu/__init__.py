"""Breadth-first search on a team.  The rule and the paper: ../__init__.py.

One kernel for the whole search, level after level, in one of three ways:

    alone       the frontier is small: member 0 goes on by itself, without barriers, until it grows
    top down    members share the frontier, one barrier a level
    bottom up   members take chunks of all vertices, those that wait look for the frontier

All three are in levels.py.

`level[v]` and `parent[v]` are all ones (that is, -1) where v is not reached.  A vertex gets its
level from the first member that reaches it.  Its parent is the minimum over all vertices of the
level before that reach it; where rows are short and arcs into v are known, it is found at the end,
by all members at once, as the first vertex of v's sorted row that is one level above.

The frontier is what the members found, one after the other: member j has `sums[., j]` vertices in
blocks of `pool[side]`, whose numbers are `blocks[side, j]`.  The next frontier goes to the other
side.  Members share the frontier in that order.  So a member goes on where it has been, and
vertices of one neighbourhood stay in one core's cache.  (Small chunks, each given to a member that
is free, took three times as long on meshes.)

Races.  Top down, several members may reach v at once: one of them changes `level[v]`, by
compare-and-swap, and appends v; `parent[v]` only goes down, by an atomic minimum, and is not read
before the next barrier but to save that.  Bottom up there are none.

Vertices are unsigned in the kernels: Numba tests every signed index for its sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    advance,
    atomic_add,
    atomic_max,
    barrier,
    crew,
    device,
    expect,
    interrupted,
    kernel,
    load_relaxed,
    share,
    share_rows,
    store_relaxed,
)
from matchwood.traversal.breadth_first.cpu.levels import (
    BLOCK,
    LONG_ROW,
    WORD,
    Marks,
    Pattern,
    Queues,
    Rules,
    all_to_first,
    alone,
    bitmap_to_queue,
    bottom_up,
    count_arcs,
    count_bits,
    gather,
    pays_bottom_up,
    place_of,
    start_bottom_up,
    stays_bottom_up,
    top_down,
    unreached,
)

Array = np.ndarray[Any, Any]

ALONE_ARCS = 1500  # arcs; with fewer to follow, one member alone is as quick (bench/traversal)
NO_LIMIT = 1 << 62  # arcs
EVEN_ROW_ENTRIES = 64  # with rows no longer than this, equal numbers of vertices are equal work

# words of `shared`, a cache line apart; counters rotate over three levels, so that one can be set
# to zero while another is read and the third is counted
_LINE = 16
_FOUND, _BLOCKS, _ARCS = (3 * k * _LINE for k in range(3))
_LONGEST = 9 * _LINE
_SOLO = 10 * _LINE  # what member 0 found alone, as `alone` returns it; two, in turn
_DEEPEST = 12 * _LINE
SHARED = 13 * _LINE


@device
def _open_slot(team: Any, shared: Array, step: int) -> int:
    """The slot of this step; member 0 empties the next one, which no member uses now.

    Every step must open its slot, used or not: a slot left out would be found full later.
    """
    if team.me == 0:
        after = (step + 1) % 3 * _LINE
        store_relaxed(shared, _FOUND + after, 0)
        store_relaxed(shared, _FOUND + after + 1, 0)
        store_relaxed(shared, _BLOCKS + after, 0)
        store_relaxed(shared, _BLOCKS + after + 1, 0)
        store_relaxed(shared, _ARCS + after, 0)
    return step % 3


@device
def _find_parents(team: Any, rows: Pattern, marks: Marks) -> None:
    """The parents that are still missing: the first in the sorted row, one level above."""
    indptr, indices = rows.indptr, rows.indices
    level, parent = marks.level, marks.parent
    unseen = unreached(level)
    one = level.dtype.type(1)
    lo, hi = share_rows(team, indptr)
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        if parent[v] == unseen and level[v] != unseen:
            above = level[v] - one
            for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
                if level[indices[k]] == above:
                    parent[v] = indices[k]
                    break


@kernel
def _search(
    team: Any, rows: Pattern, inward: Pattern, backwards: bool, limit: int, size: int, marks: Marks,
    queues: Queues, bitmaps: Array, shared: Array,
) -> None:  # fmt: skip
    indptr = rows.indptr
    level, parent = marks.level, marks.parent
    pool, blocks, sums = queues.pool, queues.blocks, queues.sums
    n = level.size
    unseen = unreached(level)
    first, last = share(team, n)
    longest = np.int64(0)
    for v in range(first, last):
        level[v] = unseen
        parent[v] = unseen
        longest = max(longest, np.int64(indptr[v + 1]) - np.int64(indptr[v]))
    atomic_max(shared, _LONGEST, longest)
    if barrier(team):
        return
    longest = shared[_LONGEST]
    m = np.int64(indptr[n])
    each = max(np.int64(1), m // n)  # arcs of a vertex, on average
    arcs = work = size * each  # of the frontier: for the direction; for sharing the work
    if longest > EVEN_ROW_ENTRIES and size < ALONE_ARCS:  # now, while no member writes to the pool
        work = max(np.int64(size), count_arcs(rows, pool[0], size))
    if team.me == 0:
        for i in range(size):
            level[pool[0, i]] = 0
            parent[pool[0, i]] = pool[0, i]
        all_to_first(blocks, sums[0], 0, size)
    if barrier(team):
        return
    few = np.int64(NO_LIMIT if team.size == 1 else ALONE_ARCS)
    even = longest <= EVEN_ROW_ENTRIES
    late = backwards and even
    rules = Rules(late, backwards, limit, few, longest, each, even)
    reached = np.int64(size)
    depth, step, side, bits = 0, 0, 0, 0
    expect(team, n)
    while size > 0 and depth < limit:
        slot = _open_slot(team, shared, step)
        sizes, after = sums[step % 2], sums[(step + 1) % 2]
        if backwards and pays_bottom_up(arcs, n - reached, m):
            waiting = bitmaps[2]
            mine = start_bottom_up(team, inward, level, depth, bitmaps[bits], waiting)
            atomic_add(shared, _ARCS + slot * _LINE, mine)
            if barrier(team):
                return
            left = load_relaxed(shared, _ARCS + slot * _LINE)
            first_time = True
            while depth < limit and (first_time or stays_bottom_up(size, left, n)):
                if not first_time:
                    slot = _open_slot(team, shared, step)
                count, mine = bottom_up(
                    team, inward, marks, bitmaps[bits], bitmaps[1 - bits], waiting, depth
                )
                atomic_add(shared, _FOUND + slot * _LINE, count)
                atomic_add(shared, _FOUND + slot * _LINE + 1, mine)
                if barrier(team):
                    return
                size = load_relaxed(shared, _FOUND + slot * _LINE)
                left -= load_relaxed(shared, _FOUND + slot * _LINE + 1)
                reached += size
                first_time = False
                bits = 1 - bits
                depth += 1
                step += 1
                if team.me == 0:
                    advance(team, size)
            _open_slot(team, shared, step)
            sizes, after = sums[step % 2], sums[(step + 1) % 2]
            sizes[team.me] = count_bits(team, bitmaps[bits])
            if barrier(team):
                return
            place, size = place_of(team, sizes)
            bitmap_to_queue(team, bitmaps[bits], pool[side], place)
            if team.me == 0:
                all_to_first(blocks, after, side, size)
            if barrier(team):
                return
            arcs = np.int64(0)  # at least one level top down before the next change
            work = size * each
        elif work < few:
            at = _SOLO + step % 2 * _LINE
            solo = shared[at : at + _LINE]
            if team.me == 0:
                gather(pool, blocks, sizes, side)
                solo[0], solo[1], solo[2], solo[3], solo[4], solo[5] = alone(
                    team, rows, marks, rules, pool, 1 - side, size, depth, reached
                )
                all_to_first(blocks, after, solo[2], solo[0])
                advance(team, solo[4] - reached)
            if barrier(team):
                return
            size, depth, side, arcs, reached = solo[0], solo[1], solo[2], solo[3], solo[4]
            work = solo[5]
        else:
            taken = shared[_BLOCKS + slot * _LINE : _BLOCKS + (slot + 1) * _LINE]
            after[team.me], mine = top_down(
                team, rows, marks, rules, depth, size, queues, sizes, side, taken
            )
            if not late:
                atomic_add(shared, _ARCS + slot * _LINE, mine)
            if barrier(team):
                return
            _, size = place_of(team, after)
            arcs = size * each if late else load_relaxed(shared, _ARCS + slot * _LINE)
            work = max(arcs, np.int64(size))
            reached += size
            depth += 1
            side = 1 - side
            if team.me == 0:
                advance(team, size)
        step += 1
    if team.me == 0:
        shared[_DEEPEST] = max(0, depth if size > 0 else depth - 1)
    if late:
        _find_parents(team, inward, marks)


def _scratch(n: int, room: int, members: int, unsigned: Any) -> tuple[Array, Array, Array]:
    """Pool, blocks and bitmaps, in one block of memory: engines/cpu/workspace.py says why.

    The function there takes 10 us, a tenth of a search of a thousand vertices; this takes 3.
    """
    words, width = (n + WORD - 1) // WORD, (room + members) * BLOCK
    first = 3 * words
    second = first + 2 * members * room
    memory = np.empty(second + 2 * width * np.dtype(unsigned).itemsize // 8, np.uint64)
    return (
        memory[second:].view(unsigned).reshape(2, width),
        memory[first:second].view(np.int64).reshape(2, members, room),
        memory[:first].reshape(3, words),
    )


def search(
    outward: Any, inward: Any, sources: Array, limit: int, *, threads: int | None = None
) -> tuple[Array, Array, int]:
    n = outward.n
    kind = outward.indptr.dtype
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    if n == 0:
        return np.empty(0, kind), np.empty(0, kind), 0
    team = crew(threads, work=outward.nnz + n)
    room = n // BLOCK + 1  # blocks of one member, if it finds all vertices
    level, parent = np.empty(n, unsigned), np.empty(n, unsigned)
    pool, blocks, bitmaps = _scratch(n, room, team.size, unsigned)
    pool[0, : sources.size] = sources
    # a pattern has at most nnz / LONG_ROW long rows; a team of one shares none
    long = np.empty(outward.nnz // LONG_ROW if team.size > 1 else 0, unsigned)
    back = outward if inward is None else inward
    shared = np.zeros(SHARED, np.int64)
    team.run(
        _search,
        Pattern(outward.indptr, outward.indices.view(unsigned)),
        Pattern(back.indptr, back.indices.view(unsigned)),
        inward is not None,
        limit,
        sources.size,
        Marks(level, parent),
        Queues(pool, blocks, np.zeros((2, team.size), np.int64), long),
        bitmaps,
        shared,
    )
    return level.view(kind), parent.view(kind), int(shared[_DEEPEST])
