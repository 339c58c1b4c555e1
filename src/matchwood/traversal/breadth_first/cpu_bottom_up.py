"""The bottom-up levels of breadth-first search on a team.  Read cpu.py first.

The frontier is a bitmap here, one bit a vertex.  No races: members take whole words of the bitmap
that is being made, so each of its words, and each level and parent, has one writer; the frontier's
bitmap is only read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.cpu_hints import count_ones, prefetch, trailing_zeros
from matchwood.teams import device, next_chunk, share

Array = np.ndarray[Any, Any]

WORD = 64  # bits of a bitmap word
ROWS = 64 * WORD  # vertices that a member takes at a time
AHEAD = np.uint64(16)  # rows between the one prefetched and the one read; most are left early

ONE = np.uint64(1)


@device
def unreached(level: Array) -> Any:
    """Level and parent of a vertex that no source leads to: all ones, that is -1."""
    return level.dtype.type(-1)


@device
def bottom_up(
    team: Any,
    indptr: Array,
    indices: Array,
    level: Array,
    parent: Array,
    frontier: Array,
    found: Array,
    depth: int,
) -> int:
    """One level; returns how many vertices this member found."""
    n = level.size
    count = 0
    unseen = unreached(level)
    size = np.uint64(n)
    six, low = indices.dtype.type(6), indices.dtype.type(63)
    below = level.dtype.type(depth + 1)
    chunk = next_chunk(team, n, ROWS)
    while chunk >= 0:
        for place in range(chunk // WORD, (min(chunk + ROWS, n) + WORD - 1) // WORD):
            bits = np.uint64(0)
            for v in range(np.uint64(place * WORD), np.uint64(min(place * WORD + WORD, n))):
                prefetch(indices, indptr[min(v + AHEAD, size)])
                if level[v] == unseen:
                    for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + ONE])):
                        u = indices[k]
                        if (frontier[u >> six] >> np.uint64(u & low)) & ONE:
                            level[v] = below
                            parent[v] = u
                            bits |= ONE << (v & np.uint64(63))
                            count += 1
                            break
            found[place] = bits
        chunk = next_chunk(team, n, ROWS)
    return count


@device
def level_to_bitmap(team: Any, level: Array, depth: int, bitmap: Array) -> None:
    """Bits of the vertices of one level; each member writes words of its own."""
    n = level.size
    lo, hi = share(team, bitmap.size)
    wanted = level.dtype.type(depth)
    for place in range(lo, hi):
        bits = np.uint64(0)
        for v in range(place * WORD, min(place * WORD + WORD, n)):
            bits |= np.uint64(level[v] == wanted) << np.uint64(v & 63)
        bitmap[place] = bits


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
