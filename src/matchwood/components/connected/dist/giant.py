"""Most of the largest component, found from a few entries of each block.

On one machine Afforest joins two neighbours of every vertex.  Then most vertices are in one large
tree, and their rows need not be read: a symmetric pattern stores an edge that leaves the tree at
its other end too.  A block of a symmetric matrix is not symmetric itself, and the other end's row
is on another rank.  So all ranks must leave out the rows of the same vertices:

1. Every rank joins two columns to each of its rows.  It tells the owners which vertices are in its
   largest tree, one bit for each.
2. An owner that finds a vertex in the trees of two ranks knows that these trees are connected.  All
   ranks learn which trees are.
3. The vertices of the largest set of connected trees are known to be in one component.  Owners tell
   the ranks of their row and their column who they are, one bit for each vertex.

The set may be small, and need not be in the largest component: that costs time, never the answer.
Then forest.py goes on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.components.connected.dist.cpu_giant import in_largest_tree, join_rest, sample
from matchwood.components.connected.dist.stripes import Stripes, stripes_of
from matchwood.dist.exchanges.routing import gather_messages, to_group

Array = np.ndarray[Any, Any]


class Known(NamedTuple):
    """Vertices that are known to be in one component."""

    local: Array  # bool, by local id
    own: Array  # places of own ones, ascending
    head: int  # the smallest of all, as the grid numbers vertices; n where there is none


def nothing_known(grid: Any) -> Known:
    """No vertices."""
    return Known(np.zeros(grid.n_local, np.bool_), np.empty(0, np.int64), grid.n)


def labels_of(G: Any, threads: int | None) -> tuple[Array, Known]:
    """Labels of the trees of this rank's block, and what is known of the largest component.

    The pattern of the whole matrix must be symmetric.  All ranks call this.
    """
    view = G.entries()
    parent = sample(view, threads)
    known = _agreed(G, in_largest_tree(parent))
    return join_rest(view, parent, known.local, threads), known


def _agreed(G: Any, member: Array) -> Known:
    """Step 2 and 3; `member` says which local vertices are in this rank's largest tree."""
    grid, exchange = G.grid, G.exchange
    stripes = stripes_of(grid)
    seen = _seen_by(exchange, member, stripes)
    chosen = _largest_set(G.comm, _meetings(seen, grid.p), int(np.count_nonzero(member)))
    bits = np.zeros(-(-grid.owned // 8), np.uint8)
    for rank, marks in seen.items():
        if chosen[rank]:
            bits |= marks
    own = np.flatnonzero(_unpacked(bits, grid.owned))
    least = int(own[0]) * grid.p + grid.rank if own.size else grid.n
    head = int(G.comm.allreduce(np.array([least], np.int64), "min")[0])
    return Known(_told(exchange, bits, stripes), own, head)


def _seen_by(exchange: Any, member: Array, stripes: Stripes) -> dict[int, Array]:
    """For each rank that has own vertices: which of them are in its largest tree, as bits."""
    grid = exchange.grid
    marks = {
        owner: np.packbits(member[base : base + size * step : step], bitorder="little")
        for owner, base, step, size in zip(*(column.tolist() for column in stripes), strict=True)
    }
    none = np.empty(0, np.uint8)
    seen = {grid.rank: marks[grid.rank]}
    for comm, ranks in _groups(exchange):
        sent = [none if rank == grid.rank else marks[rank] for rank in ranks]
        if comm.size > 1:
            came = to_group(comm, sent, np.uint8)
            seen |= {k: part for k, part in zip(ranks, came, strict=True) if k != grid.rank}
    return seen


def _groups(exchange: Any) -> list[tuple[Any, list[int]]]:
    """The communicators of this rank's row and column, and their ranks."""
    grid = exchange.grid
    row = [grid.r * grid.C + c for c in range(grid.C)]
    return [(exchange.row, row), (exchange.column, [r * grid.C + grid.c for r in range(grid.R)])]


def _meetings(seen: dict[int, Array], p: int) -> Array:
    """(p, p) which two ranks have an own vertex of this one in their largest trees."""
    meets = np.zeros((p, p), np.bool_)
    ranks = list(seen)
    for i, one in enumerate(ranks):
        for other in ranks[:i]:
            meets[one, other] = meets[other, one] = bool((seen[one] & seen[other]).any())
    return meets


def _largest_set(comm: Any, meets: Array, size: int) -> Array:
    """Which ranks are in the set of connected trees that has most vertices."""
    p = meets.shape[0]
    meets = comm.allreduce(meets.reshape(-1), "or").reshape(p, p) | np.eye(p, dtype=np.bool_)
    sizes = comm.allgather(np.array([size], np.int64))
    names = np.arange(p)
    while True:
        least = np.where(meets, names, p).min(1)
        if np.array_equal(least, names):
            break
        names = least
    totals = np.bincount(names, weights=sizes, minlength=p)
    return names == int(totals.argmax())


def _told(exchange: Any, bits: Array, stripes: Stripes) -> Array:
    """Which local vertices are known, from what their owners say."""
    grid = exchange.grid
    by_owner = {grid.rank: bits}
    for comm, ranks in _groups(exchange):
        if comm.size > 1:
            by_owner |= dict(zip(ranks, gather_messages(comm, bits), strict=True))
    local = np.zeros(grid.n_local, np.bool_)
    for owner, base, step, size in zip(*(column.tolist() for column in stripes), strict=True):
        local[base : base + size * step : step] = _unpacked(by_owner[owner], size)
    return local


def _unpacked(bits: Array, size: int) -> Array:
    return np.unpackbits(bits, count=size, bitorder="little").view(np.bool_)
