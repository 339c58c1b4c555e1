"""The two sides of a bipartite graph, on a team.

The first vertex of each component is on side 0, and sides alternate with the distance from it: so
there is one answer.  Member 0 goes through components and narrow levels, where the others could
only wait for each other; wide levels are divided among all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Team,
    atomic_exchange,
    barrier,
    crew,
    device,
    expanded,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    store_relaxed,
    workspace,
)
from matchwood.primitives.frontier.cpu import BUFFER, flush, push

Array = np.ndarray[Any, Any]
NO_SIDE = 255
WIDE = 4096  # vertices of a level that is divided: some 50 us of work
FEW = 128  # of these a member takes at a time

# Words of `shared`, a cache line apart: the level that is divided, and whether a cycle is odd.
_LINE = 16
_HEAD, _TAIL, _ODD = 0, _LINE, 2 * _LINE
SHARED = 3 * _LINE


class Rows(NamedTuple):
    indptr: Array
    indices: Array


@device
def begin(rows: Rows, v: Any) -> Any:
    """Of the row of v."""
    return np.uint64(rows.indptr[v])


@device
def end(rows: Rows, v: Any) -> Any:
    """Of the row of v."""
    return np.uint64(rows.indptr[v + rows.indptr.dtype.type(1)])


def rows_of(view: Any) -> tuple[Rows, str]:
    """The pattern with unsigned indices, and their type."""
    unsigned = f"u{view.indices.dtype.itemsize}"
    return Rows(view.indptr.view(unsigned), view.indices.view(unsigned)), unsigned


@expanded
def _narrow_levels(
    team: Team, rows: Rows, side: Array, queue: Array, start: Any, head: Any, tail: Any, odd: Array
) -> Any:
    """Go on up to a wide level, queue[head:tail], or to the end: start is n then."""
    n, none = np.uint64(side.size), np.uint8(NO_SIDE)
    widest = np.uint64(WIDE if team.size > 1 else side.size)
    level = tail  # where the level ends
    while True:
        if head == tail:
            while start < n and side[start] != none:
                start += np.uint64(1)
            if start == n:
                return start, head, tail
            side[start] = 0
            head, tail, level = np.uint64(0), np.uint64(1), np.uint64(1)
            queue[0] = queue.dtype.type(start)
        elif head == level:
            level = tail
            if tail - head > widest:
                return start, head, tail
        u = queue[head]
        head += np.uint64(1)
        other = np.uint8(1 - side[u])
        for k in range(begin(rows, u), end(rows, u)):
            v = rows.indices[k]
            if side[v] == none:
                side[v] = other
                queue[tail] = v
                tail += np.uint64(1)
            elif side[v] != other:
                odd[0] = 1
                return n, head, tail
        if interrupted(team, head):
            return n, head, tail


@expanded
def _wide_level(
    team: Team, rows: Rows, side: Array, queue: Array, buffer: Array, shared: Array
) -> bool:
    """queue[head:tail], all on one side; the next level is appended.  True: the team stops."""
    head, count = shared[_HEAD], 0
    size = shared[_TAIL] - head
    if barrier(team):  # everybody has read the lengths
        return True
    other = np.uint8(1 - side[queue[head]])
    chunk = next_chunk(team, size, FEW)
    while chunk >= 0:
        for i in range(np.uint64(head + chunk), np.uint64(head + min(chunk + FEW, size))):
            u = queue[i]
            for k in range(begin(rows, u), end(rows, u)):
                v = rows.indices[k]
                found = load_relaxed(side, v)
                if found == NO_SIDE:
                    if atomic_exchange(side, v, other) == NO_SIDE:
                        count = push(buffer, count, v, queue, shared[_TAIL:])
                elif found != other:
                    store_relaxed(shared, _ODD, 1)
        chunk = next_chunk(team, size, FEW)
    flush(buffer, count, queue, shared[_TAIL:])
    return barrier(team)


@kernel
def _colour(
    team: Team, rows: Rows, side: Array, queue: Array, buffers: Array, shared: Array
) -> None:
    """Caller: side all NO_SIDE, shared 0."""
    n = np.uint64(side.size)
    start, head, tail = np.uint64(0), np.uint64(0), np.uint64(0)
    while True:
        if team.rank == 0:
            start, head, tail = _narrow_levels(
                team, rows, side, queue, start, head, tail, shared[_ODD:]
            )
            shared[_HEAD], shared[_TAIL] = np.int64(head), np.int64(tail)
            if start == n:
                shared[_HEAD] = shared[_TAIL]
        if barrier(team) or shared[_HEAD] == shared[_TAIL]:
            return
        if _wide_level(team, rows, side, queue, buffers[team.rank], shared) or shared[_ODD]:
            return
        head, tail = tail, np.uint64(shared[_TAIL])


def two_sides(view: Any, threads: int | None = 1) -> Array | None:
    """0 or 1 for each vertex, no edge inside a side; None where an odd cycle forbids that."""
    side, shared = np.full(view.n, NO_SIDE, np.uint8), np.zeros(SHARED, np.int64)
    rows, unsigned = rows_of(view)
    team = crew(threads, work=view.nnz)
    space = workspace(queue=(view.n, unsigned), buffers=((team.size, BUFFER), unsigned))
    team.run(_colour, rows, side, space.queue, space.buffers, shared)
    return None if shared[_ODD] else side
