"""One level of breadth-first search: bottom up, alone, or top down.  Read __init__.py first."""

from __future__ import annotations

from typing import Any, NamedTuple

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
from matchwood.engines.cpu.hints import count_ones, prefetch, trailing_zeros

Array = np.ndarray[Any, Any]


class Pattern(NamedTuple):
    """Arcs by rows; vertices are unsigned."""

    indptr: Array
    indices: Array


class Marks(NamedTuple):
    """The answer, by vertex; all ones, that is -1, where a vertex is not reached."""

    level: Array
    parent: Array


class Queues(NamedTuple):
    """The frontier and the next frontier, in blocks: see __init__.py."""

    pool: Array  # [side, place]: vertices
    blocks: Array  # [side, member, k]: the number of its k-th block
    sums: Array  # [step % 2, member]: vertices that it found
    long: Array  # vertices of the frontier whose rows all members share; empty: there are none


class Rules(NamedTuple):
    """What holds for the whole search."""

    late: bool  # parents are found at the end
    backwards: bool  # the arcs into a vertex are known
    limit: int  # levels
    few: Any  # arcs; a frontier with fewer is one member's work
    longest: Any  # entries of the longest row
    each: Any  # entries of a row on average
    even: bool  # no row is much longer than others


# Bottom up
#
# The frontier is a bitmap here, one bit a vertex.  So are the vertices that wait to be reached:
# those without a level that have arcs into them.  After one or two levels these are few, and a
# level costs little more than a look at the words of their bitmap.
#
# No races: members take whole words of the bitmaps that change, so each of these words, and each
# level and parent, has one writer; the frontier's bitmap is only read.


WORD = 64  # bits of a bitmap word
BETA = 18  # a frontier is large that has more than n / BETA vertices [Beamer]
WORDS = 64  # words of a bitmap that a member takes at a time

ONE = np.uint64(1)


@device
def unreached(level: Array) -> Any:
    """Level and parent of a vertex that no source leads to: all ones, that is -1."""
    return level.dtype.type(-1)


@device
def stays_bottom_up(size: int, left: int, n: int) -> bool:
    """Go on bottom up from a frontier of `size` vertices, with `left` arcs into waiting ones?

    Yes where it is large, or has more vertices than there are arcs left and words to look at.
    """
    return size > n // BETA or left + n // WORD < size


@device
def start_bottom_up(
    team: Any, inward: Pattern, level: Array, depth: int, frontier: Array, waiting: Array
) -> Any:
    """Make the bitmaps, each member its words; returns the arcs into their waiting vertices."""
    indptr = inward.indptr
    n = level.size
    arcs = np.int64(0)
    unseen, wanted = unreached(level), level.dtype.type(depth)
    lo, hi = share(team, frontier.size)
    for place in range(lo, hi):
        if interrupted(team, place):
            break
        base = np.uint64(place * WORD)
        reached = left = np.uint64(0)
        for bit in range(min(np.uint64(WORD), np.uint64(n) - base)):
            v = base + bit
            degree = indptr[v + ONE] - indptr[v]
            waits = (level[v] == unseen) & (degree > 0)
            reached |= np.uint64(level[v] == wanted) << bit
            left |= np.uint64(waits) << bit
            arcs += degree if waits else 0
        frontier[place] = reached
        waiting[place] = left
    return arcs


@device
def _prefetch_lowest(inward: Pattern, base: Any, bits: Any) -> Any:
    """Prefetch the row of the lowest bit's vertex; returns the bits without that one."""
    prefetch(inward.indices, np.uint64(inward.indptr[base + trailing_zeros(bits)]))
    return bits & (bits - ONE)


@device
def bottom_up(
    team: Any, inward: Pattern, marks: Marks, frontier: Array, found: Array, waiting: Array,
    depth: int,
) -> Any:  # fmt: skip
    """One level; returns how many vertices this member found, and the arcs into them.

    While the rows of one word's vertices are read, those of the next word's are prefetched.
    """
    indptr, indices = inward.indptr, inward.indices
    level, parent = marks.level, marks.parent
    count = arcs = np.int64(0)
    six, low = indices.dtype.type(6), indices.dtype.type(63)
    below = level.dtype.type(depth + 1)
    chunk = next_chunk(team, waiting.size, WORDS)
    while chunk >= 0:
        end = min(chunk + WORDS, waiting.size)
        for place in range(chunk, end):
            base = np.uint64(place * WORD)
            after = base + np.uint64(WORD)
            left = waiting[place]
            ahead = waiting[place + 1] if place + 1 < end else np.uint64(0)
            bits = np.uint64(0)
            while left != np.uint64(0):
                if ahead != np.uint64(0):
                    ahead = _prefetch_lowest(inward, after, ahead)
                v = base + trailing_zeros(left)
                start, stop = np.uint64(indptr[v]), np.uint64(indptr[v + ONE])
                for k in range(start, stop):
                    u = indices[k]
                    if (frontier[u >> six] >> np.uint64(u & low)) & ONE:
                        level[v] = below
                        parent[v] = u
                        bits |= left & (~left + ONE)  # the lowest bit, which is v's
                        count += 1
                        arcs += np.int64(stop - start)
                        break
                left &= left - ONE
            while ahead != np.uint64(0):
                ahead = _prefetch_lowest(inward, after, ahead)
            found[place] = bits
            waiting[place] ^= bits
        chunk = next_chunk(team, waiting.size, WORDS)
    return count, arcs


@device
def count_bits(team: Any, bitmap: Array) -> Any:
    """Vertices in this member's share of a bitmap."""
    count = np.uint64(0)
    lo, hi = share(team, bitmap.size)
    for place in range(lo, hi):
        count += count_ones(bitmap[place])
    return np.int64(count)


@device
def bitmap_to_queue(team: Any, bitmap: Array, queue: Array, at: int) -> None:
    """Write the vertices of this member's share of a bitmap, ascending, from queue[at] on."""
    lo, hi = share(team, bitmap.size)
    for place in range(lo, hi):
        bits = bitmap[place]
        while bits != np.uint64(0):
            queue[at] = np.uint64(place * WORD) + trailing_zeros(bits)
            bits &= bits - ONE
            at += 1


# Top down, by one member or all


CHUNK = 64  # vertices of the frontier that a member takes at a time where rows are uneven, at most
CHUNKS = 8  # for each member, at least: chunks are smaller where the frontier is
LONG_ROW = 4096  # entries; all members share a longer row
BLOCK = 512  # found vertices that a member collects at a time
AHEAD = 6  # vertices of the frontier between the row that is prefetched and the one that is read
PREFETCHED_ENTRIES = 5  # mean length of a row; shorter rows gain nothing by a prefetch


@device
def _row(rows: Pattern, u: Any) -> tuple[Any, Any]:
    """Where the row of u starts and ends, as unsigned numbers."""
    indptr = rows.indptr
    return np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)])


@device
def _prefetch_row(rows: Pattern, frontier: Array, i: int, end: int) -> None:
    """Prefetch the row of frontier[i + AHEAD]."""
    prefetch(rows.indices, np.uint64(rows.indptr[frontier[min(i + AHEAD, end - 1)]]))


@device
def count_arcs(rows: Pattern, frontier: Array, size: int) -> Any:
    """The number of arcs of a frontier."""
    arcs = np.int64(0)
    for i in range(size):
        first, last = _row(rows, frontier[i])
        arcs += np.int64(last - first)
    return arcs


@device
def pays_bottom_up(arcs: int, unvisited: int, m: int) -> bool:
    """Is it less work to go bottom up from a frontier with this number of arcs?

    An arc ends in the frontier with probability q = arcs / m, so an unvisited vertex reads about
    1 / q arcs before it finds one: unvisited * m / arcs in all, against `arcs` top down.  Meshes,
    whose frontiers are thin, never get there; where degrees are skewed, the second or third level
    does.  (Beamer's rule, arcs > unseen / 15, sends meshes bottom up, three times slower.)
    """
    return bool(np.float64(arcs) * np.float64(arcs) > np.float64(unvisited) * np.float64(m))


@device
def _claim(rows: Pattern, level: Array, below: Any, u: Any, found: Array, tail: int) -> int:
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
    rows: Pattern, marks: Marks, below: Any, u: Any, found: Array, tail: int
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
    team: Any, rows: Pattern, marks: Marks, rules: Rules, pool: Array, side: int, size: int,
    depth: int, reached: int,
) -> Any:  # fmt: skip
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
    rows: Pattern, marks: Marks, late: bool, below: Any, u: Any, row: tuple[Any, Any], found: Array,
    blocks: Array, count: int, at: int, taken: Array,
) -> Any:  # fmt: skip
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
    rows: Pattern, marks: Marks, late: bool, below: Any, frontier: Array, lo: int, hi: int,
    queues: Queues, side: int, me: int, count: int, taken: Array,
) -> Any:  # fmt: skip
    """Follow the arcs of frontier[lo:hi]; what is found goes to blocks of the other side.

    taken[0] counts the blocks of all members.  `count` vertices are in this member's blocks
    before; returns how many afterwards, and the arcs of those that were added (not counted when
    `late`).  Long rows are put aside, in queues.long; taken[1] counts them.
    """
    found, blocks = queues.pool[1 - side], queues.blocks[1 - side, me]
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
    team: Any, rows: Pattern, marks: Marks, below: Any, queues: Queues, side: int, count: int,
    taken: Array,
) -> Any:  # fmt: skip
    """Follow the arcs of the long rows, of each row a share; returns as `_expand`."""
    found, blocks = queues.pool[1 - side], queues.blocks[1 - side, team.me]
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
    rows: Pattern, marks: Marks, late: bool, below: Any, lo: int, hi: int, queues: Queues,
    sizes: Array, side: int, me: int, count: int, taken: Array,
) -> Any:  # fmt: skip
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
                queues, side, me, count, taken,
            )  # fmt: skip
            arcs += more
            i = stop
        before += sizes[member]
    return count, arcs


@device
def top_down(
    team: Any, rows: Pattern, marks: Marks, rules: Rules, depth: int, size: int, queues: Queues,
    sizes: Array, side: int, taken: Array,
) -> Any:  # fmt: skip
    """One level; returns how many vertices this member found, and their arcs."""
    below = marks.level.dtype.type(depth + 1)
    late = rules.late
    if rules.even:
        lo, hi = share(team, size)
        return _expand_part(
            rows, marks, late, below, lo, hi, queues, sizes, side, team.me, 0, taken
        )
    count = 0
    arcs = np.int64(0)
    each = max(1, min(CHUNK, size // (CHUNKS * team.size)))
    chunk = next_chunk(team, size, each)
    while chunk >= 0:
        end = min(chunk + each, size)
        count, more = _expand_part(
            rows, marks, late, below, chunk, end, queues, sizes, side, team.me, count, taken
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
        if member == team.me:
            before = total
        total += sizes[member]
    return before, total
