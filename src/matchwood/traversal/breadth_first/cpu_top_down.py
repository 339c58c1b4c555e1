"""The levels of breadth-first search that go top down, by one member or all.  Read cpu.py first."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    atomic_add,
    atomic_cas,
    atomic_min,
    barrier,
    device,
    expanded,
    interrupted,
    load_relaxed,
    next_chunk,
    share,
    stopping,
)
from matchwood.engines.cpu.hints import prefetch
from matchwood.traversal.breadth_first.cpu_bottom_up import unreached
from matchwood.traversal.breadth_first.cpu_records import Marks, Queues, Rows, Rules

Array = np.ndarray[Any, Any]

CHUNK = 64  # vertices of the frontier that a member takes at a time where rows are uneven, at most
CHUNKS = 8  # for each member, at least, where the frontier has so many vertices
LONG_ROW = 4096  # entries; all members share a longer row
BLOCK = 512  # found vertices that a member collects at a time
AHEAD = 6  # vertices of the frontier between the row that is prefetched and the one that is read
PREFETCHED_ENTRIES = 5  # mean length of a row; shorter rows gain nothing by a prefetch


@device
def _row(rows: Rows, u: Any) -> tuple[Any, Any]:
    """Where the row of u starts and ends, as unsigned numbers."""
    indptr = rows.indptr
    return np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)])


@device
def _prefetch_row(rows: Rows, frontier: Array, i: int, end: int) -> None:
    """Prefetch the row of a vertex that comes soon, frontier[i + AHEAD]."""
    prefetch(rows.indices, np.uint64(rows.indptr[frontier[min(i + AHEAD, end - 1)]]))


@device
def count_arcs(rows: Rows, frontier: Array, size: int) -> Any:
    """The arcs of a frontier."""
    arcs = np.int64(0)
    for i in range(size):
        first, last = _row(rows, frontier[i])
        arcs += np.int64(last - first)
    return arcs


@device
def pays_bottom_up(arcs: int, unvisited: int, m: int) -> bool:
    """Is it less work to go bottom up from a frontier with so many arcs?

    An arc ends in the frontier with probability q = arcs / m, so an unvisited vertex reads about
    1 / q arcs before it finds one: unvisited * m / arcs in all, against `arcs` top down.  Meshes,
    whose frontiers are thin, never get there; where degrees are skewed, the second or third level
    does.  (Beamer's rule, arcs > unseen / 15, sends meshes bottom up, three times slower.)
    """
    return bool(np.float64(arcs) * np.float64(arcs) > np.float64(unvisited) * np.float64(m))


@device
def _claim(rows: Rows, level: Array, below: Any, u: Any, found: Array, tail: int) -> int:
    """Append the neighbours of u that are not reached yet; returns how many are in `found`."""
    unseen = unreached(level)
    first, last = _row(rows, u)
    for k in range(first, last):
        v = rows.indices[k]
        if level[v] == unseen:
            level[v] = below
            found[tail] = v
            tail += 1
    return tail


@device
def _claim_with_parents(
    rows: Rows, marks: Marks, below: Any, u: Any, found: Array, tail: int
) -> int:
    """`_claim`; u also becomes the parent of those whose parent it is smaller than."""
    level, parent = marks.level, marks.parent
    unseen = unreached(level)
    first, last = _row(rows, u)
    for k in range(first, last):
        v = rows.indices[k]
        if level[v] >= below:  # not reached, or reached from this level
            if level[v] == unseen:
                level[v] = below
                parent[v] = u
                found[tail] = v
                tail += 1
            elif parent[v] > u:
                parent[v] = u
    return tail


@device
def alone(
    team: Any,
    rows: Rows,
    marks: Marks,
    rules: Rules,
    pool: Array,
    side: int,
    size: int,
    depth: int,
    reached: int,
) -> Any:
    """Levels by one member, while the frontier has under `few` arcs; it lies in pool[side].

    Also stops where the direction should change.  Returns size, depth and side of the frontier, its
    arcs, where they matter for the direction, how many vertices are reached, and about how many
    arcs are to follow.  Where rows are uneven these are counted: few vertices may have many.
    """
    level = marks.level
    n = level.size
    m = np.int64(rows.indptr[n])
    arcs = work = np.int64(0)
    prefetching = m >= PREFETCHED_ENTRIES * n
    while size > 0 and work < rules.few and depth < rules.limit:
        if stopping(team):
            break
        frontier, found = pool[side], pool[1 - side]
        below = level.dtype.type(depth + 1)
        tail = 0
        for i in range(size):
            if interrupted(team, i):
                break
            if prefetching:
                _prefetch_row(rows, frontier, i, size)
            if rules.late:
                tail = _claim(rows, level, below, frontier[i], found, tail)
            else:
                tail = _claim_with_parents(rows, marks, below, frontier[i], found, tail)
        size, depth, side = tail, depth + 1, 1 - side
        reached += size
        most = size * rules.longest
        turning = rules.backwards and pays_bottom_up(most, n - reached, m)
        arcs, work = np.int64(0), size * (rules.each if rules.even else rules.longest)
        if turning or work >= rules.few:
            arcs = count_arcs(rows, found, size)
            work = max(arcs, np.int64(size))
            if turning and pays_bottom_up(arcs, n - reached, m):
                break
    return size, depth, side, arcs, reached, work


@expanded
def _follow(
    rows: Rows,
    marks: Marks,
    late: bool,
    below: Any,
    u: Any,
    row: tuple[Any, Any],
    found: Array,
    blocks: Array,
    count: int,
    at: int,
    taken: Array,
) -> Any:
    """Follow the arcs of u, from row[0] to row[1].  Returns count, at, and arcs as `_expand`."""
    level, parent = marks.level, marks.parent
    unseen = unreached(level)
    arcs = np.int64(0)
    for k in range(row[0], row[1]):
        v = rows.indices[k]
        there = load_relaxed(level, v)
        if there < below:
            continue
        if not late and load_relaxed(parent, v) > u:
            atomic_min(parent, v, u)
        if there == unseen and atomic_cas(level, v, unseen, below) == unseen:
            if count % BLOCK == 0:
                block = atomic_add(taken, 0, 1)
                blocks[count // BLOCK] = block
                at = block * BLOCK
            found[at] = v
            at += 1
            count += 1
            if not late:
                start, end = _row(rows, v)
                arcs += np.int64(end - start)
    return count, at, arcs


@device
def _place_after(blocks: Array, count: int) -> Any:
    """Where the next vertex goes after `count` in a member's blocks, if the last has room."""
    if count == 0:
        return np.int64(0)
    return blocks[(count - 1) // BLOCK] * BLOCK + (count - 1) % BLOCK + 1


@device
def _expand(
    rows: Rows,
    marks: Marks,
    late: bool,
    below: Any,
    frontier: Array,
    lo: int,
    hi: int,
    queues: Queues,
    side: int,
    rank: int,
    count: int,
    taken: Array,
) -> Any:
    """Follow the arcs of frontier[lo:hi]; what is found goes to blocks of the other side.

    taken[0] counts the blocks of all members.  `count` vertices are in this member's blocks
    before; returns how many afterwards, and the arcs of those that were added (not counted when
    `late`).  Long rows are put aside, in queues.long; taken[1] counts them.
    """
    found, blocks = queues.pool[1 - side], queues.blocks[1 - side, rank]
    at = _place_after(blocks, count)
    arcs = np.int64(0)
    n = marks.level.size
    prefetching = np.int64(rows.indptr[n]) >= PREFETCHED_ENTRIES * n
    for i in range(lo, hi):
        if prefetching:
            _prefetch_row(rows, frontier, i, hi)
        u = frontier[i]
        row = _row(rows, u)
        if row[1] - row[0] > np.uint64(LONG_ROW):
            queues.long[atomic_add(taken, 1, 1)] = u
            continue
        count, at, more = _follow(rows, marks, late, below, u, row, found, blocks, count, at, taken)
        arcs += more
    return count, arcs


@device
def _expand_long(
    team: Any,
    rows: Rows,
    marks: Marks,
    below: Any,
    queues: Queues,
    side: int,
    count: int,
    taken: Array,
) -> Any:
    """Follow the arcs of the long rows, of each row a share; returns as `_expand`."""
    found, blocks = queues.pool[1 - side], queues.blocks[1 - side, team.rank]
    at = _place_after(blocks, count)
    arcs = np.int64(0)
    for i in range(load_relaxed(taken, 1)):
        if stopping(team):
            break
        u = queues.long[i]
        first, last = _row(rows, u)
        lo, hi = share(team, np.int64(last - first))
        part = (first + np.uint64(lo), first + np.uint64(hi))
        count, at, more = _follow(
            rows, marks, False, below, u, part, found, blocks, count, at, taken
        )
        arcs += more
    return count, arcs


@device
def _expand_part(
    rows: Rows,
    marks: Marks,
    late: bool,
    below: Any,
    lo: int,
    hi: int,
    queues: Queues,
    sizes: Array,
    side: int,
    rank: int,
    count: int,
    taken: Array,
) -> Any:
    """`_expand` for the vertices lo .. hi of the whole frontier, whichever members found them."""
    arcs: Any = np.int64(0)
    before: Any = np.int64(0)
    frontier = queues.pool[side]
    for member in range(sizes.size):
        i: Any = max(lo - before, 0)
        end: Any = min(hi - before, sizes[member])
        while i < end:
            stop = min(end, (i // BLOCK + 1) * BLOCK)
            at = queues.blocks[side, member, i // BLOCK] * BLOCK + i % BLOCK
            count, more = _expand(
                rows, marks, late, below, frontier, at, at + stop - i,
                queues, side, rank, count, taken,
            )  # fmt: skip
            arcs += more
            i = stop
        before += sizes[member]
    return count, arcs


@device
def top_down(
    team: Any,
    rows: Rows,
    marks: Marks,
    rules: Rules,
    depth: int,
    size: int,
    queues: Queues,
    sizes: Array,
    side: int,
    taken: Array,
) -> Any:
    """One level; returns how many vertices this member found, and their arcs."""
    below = marks.level.dtype.type(depth + 1)
    late = rules.late
    if rules.even:
        lo, hi = share(team, size)
        return _expand_part(
            rows, marks, late, below, lo, hi, queues, sizes, side, team.rank, 0, taken
        )
    count = 0
    arcs = np.int64(0)
    each = max(1, min(CHUNK, size // (CHUNKS * team.size)))
    chunk = next_chunk(team, size, each)
    while chunk >= 0:
        end = min(chunk + each, size)
        count, more = _expand_part(
            rows, marks, late, below, chunk, end, queues, sizes, side, team.rank, count, taken
        )
        arcs += more
        chunk = next_chunk(team, size, each)
    if rules.longest <= LONG_ROW or barrier(team):
        return count, arcs
    count, more = _expand_long(team, rows, marks, below, queues, side, count, taken)
    return count, arcs + more


@device
def gather(pool: Array, blocks: Array, sizes: Array, side: int) -> None:
    """The whole frontier, from the blocks of all members, to the beginning of the other side."""
    place = 0
    for member in range(sizes.size):
        for i in range(sizes[member]):
            pool[1 - side, place] = pool[side, blocks[side, member, i // BLOCK] * BLOCK + i % BLOCK]
            place += 1


@device
def all_to_first(blocks: Array, sizes: Array, side: int, size: int) -> None:
    """Say that the frontier lies at the beginning of the pool, as if member 0 had found it."""
    sizes[:] = 0
    sizes[0] = size
    for k in range(size // BLOCK + 1):
        blocks[side, 0, k] = k


@device
def place_of(team: Any, sizes: Array) -> Any:
    """How many vertices the members before this one found, and all of them."""
    before = total = np.int64(0)
    for member in range(team.size):
        if member == team.rank:
            before = total
        total += sizes[member]
    return before, total
