"""One level of breadth-first search in a block, top down or bottom up.  Read __init__.py first.

`when[v]` is the level at which this rank saw v first, -1 before.  `best[v]` is the smallest vertex,
as the user numbers them, that leads to v from the level before that; larger than any vertex at
first.

Races, top down.  Several members may reach v at once: one of them changes `when[v]`, by
compare-and-swap, and lists v; `best[v]` only goes down, by an atomic minimum.  Bottom up there are
none: a row has one writer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.cpu_hints import prefetch
from matchwood.teams import (
    atomic_add,
    atomic_cas,
    atomic_min,
    crew,
    kernel,
    load_relaxed,
    next_chunk,
)

Array = np.ndarray[Any, Any]

CHUNK = 64  # rows of the frontier that a member takes at a time
ROWS = 4096  # rows that a member takes at a time bottom up
AHEAD = 16  # rows between the one prefetched and the one read; most are left early
UNSEEN = -1


@kernel
def _top_down(
    team: Any, rows: Any, frontier: Array, names: Array, when: Array, best: Array, below: int,
    found: Array, tail: Array,
) -> None:  # fmt: skip
    indptr, indices = rows
    level = when.dtype.type(below)
    unseen = when.dtype.type(UNSEEN)
    chunk = next_chunk(team, frontier.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, frontier.size)):
            u = frontier[i]
            name = names[u]
            for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
                v = indices[k]
                seen = load_relaxed(when, v)
                if seen == unseen:
                    seen = atomic_cas(when, v, unseen, level)
                    if seen == unseen:
                        found[atomic_add(tail, 0, 1)] = v
                        seen = level
                if seen == level and name < load_relaxed(best, v):
                    atomic_min(best, v, name)
        chunk = next_chunk(team, frontier.size, CHUNK)


def top_down(
    rows: Any, frontier: Array, arcs: int, names: Array, when: Array, best: Array, depth: int,
    threads: int | None,
) -> Array:  # fmt: skip
    """Local ids of the columns that these rows reach and that were not seen before, ascending.

    `arcs` are the entries of the rows `frontier`.
    """
    found, tail = np.empty(min(when.size, arcs), np.int64), np.zeros(1, np.int64)
    if arcs:
        crew(threads, work=arcs + frontier.size).run(
            _top_down, rows, frontier, names, when, best, depth + 1, found, tail
        )
    return np.sort(found[: int(tail[0])])


@kernel
def _bottom_up(
    team: Any, rows: Any, size: int, frontier: Array, names: Array, when: Array, best: Array,
    below: int,
) -> None:  # fmt: skip
    indptr, indices = rows
    level = when.dtype.type(below)
    unseen = when.dtype.type(UNSEEN)
    six, low = indices.dtype.type(6), indices.dtype.type(63)
    one = np.uint64(1)
    chunk = next_chunk(team, size, ROWS)
    while chunk >= 0:
        for v in range(chunk, min(chunk + ROWS, size)):
            prefetch(indices, indptr[min(v + AHEAD, size)])
            if when[v] != unseen:
                continue
            for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
                u = indices[k]
                if (frontier[u >> six] >> np.uint64(u & low)) & one:
                    when[v] = level
                    best[v] = names[u]
                    break
        chunk = next_chunk(team, size, ROWS)


def bottom_up(
    rows: Any, size: int, columns: Array, names: Array, when: Array, best: Array, depth: int,
    threads: int | None,
) -> None:  # fmt: skip
    """Rows below `size` that are not seen yet and have a column of the frontier: level and parent.

    The columns of a row are in the order of their names, so the first that is found is the least.
    """
    indptr, indices = rows
    marks = np.zeros(-(-when.size // 64) * 64, np.bool_)
    marks[columns] = True
    frontier = np.packbits(marks, bitorder="little").view(np.uint64)
    unsigned = np.uint32 if indices.dtype == np.int32 else np.uint64
    crew(threads, work=indices.size + size).run(
        _bottom_up, (indptr, indices.view(unsigned)), size, frontier, names, when, best, depth + 1
    )
