"""The bottom-up levels of breadth-first search on a team.  Read cpu.py first.

The frontier is a bitmap here, one bit a vertex.  So are the vertices that wait to be reached: those
without a level that have arcs into them.  After one or two levels these are few, and a level costs
little more than a look at the words of their bitmap.

No races: members take whole words of the bitmaps that change, so each of these words, and each
level and parent, has one writer; the frontier's bitmap is only read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device, interrupted, next_chunk, share
from matchwood.engines.cpu.hints import count_ones, prefetch, trailing_zeros
from matchwood.traversal.breadth_first.cpu_records import Marks, Rows

Array = np.ndarray[Any, Any]

WORD = 64  # bits of a bitmap word
BETA = 18  # vertices of the graph for one of a frontier that is large [Beamer]
WORDS = 64  # of a bitmap, that a member takes at a time

ONE = np.uint64(1)


@device
def unreached(level: Array) -> Any:
    """Level and parent of a vertex that no source leads to: all ones, that is -1."""
    return level.dtype.type(-1)


@device
def stays_bottom_up(size: int, left: int, n: int) -> bool:
    """Go on bottom up from a frontier of `size`, with `left` arcs into waiting vertices?

    Where it is large; and where it has more rows than there are arcs left and words to look at.
    """
    return size > n // BETA or left + n // WORD < size


@device
def start_bottom_up(
    team: Any, inward: Rows, level: Array, depth: int, frontier: Array, waiting: Array
) -> Any:
    """Make the bitmaps from the levels; each member writes words of its own.

    Returns the arcs into waiting vertices, of this member's words.
    """
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
def _prefetch_lowest(inward: Rows, base: Any, bits: Any) -> Any:
    """Prefetch the row of the lowest bit's vertex; returns the bits without that one."""
    prefetch(inward.indices, np.uint64(inward.indptr[base + trailing_zeros(bits)]))
    return bits & (bits - ONE)


@device
def bottom_up(
    team: Any,
    inward: Rows,
    marks: Marks,
    frontier: Array,
    found: Array,
    waiting: Array,
    depth: int,
) -> Any:
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
