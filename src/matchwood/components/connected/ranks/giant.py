"""Most of the largest component, found from a few entries of each block.

On one machine Afforest joins two neighbours of every vertex.  Then most vertices are in one large
tree, and their rows need not be read: a symmetric pattern stores an edge that leaves the tree at
its other end too.  A block of a symmetric matrix is not symmetric itself, and the other end's row
is on another rank.  So all ranks must leave out the rows of the same vertices:

1. Every rank joins two columns to each row of one of its stripes, that of its neighbour in the row
   of ranks.  So a vertex is sampled by one rank, and trees have vertices of two column groups.  For
   each such row there are R columns: without vertices of high degree, two entries of a row leave
   many small trees, and then more entries are joined.  The rank tells the owners which vertices are
   in its largest tree, one bit for each.
2. An owner that finds a vertex in the trees of two ranks knows that these trees are connected.  All
   ranks learn which trees are.
3. The vertices of the largest set of connected trees are known to be in one component.  Owners tell
   the ranks of their row and their column who they are, one bit for each vertex.
4. Every rank reads the rows of the other vertices.  A row with a known column belongs to the
   component too: one bit for its owner.  An edge between two vertices that are not known becomes a
   pair for forest.py.

The set may be small, and need not be in the largest component: that costs time, never the answer.
Where there are too many pairs, the ranks join the rows of step 4 in their blocks instead, and
forest.py makes pairs of the trees.  Kernels: cpu_sample.py for step 1, cpu_giant.py for step 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.components.connected.ranks import cpu_giant
from matchwood.components.connected.ranks.cpu_giant import WORD
from matchwood.components.connected.ranks.cpu_sample import largest_tree
from matchwood.components.connected.ranks.stripes import column_stripes
from matchwood.engines.ranks.exchanges.cpu import rows_with_entries
from matchwood.engines.ranks.exchanges.routing import to_group

Array = np.ndarray[Any, Any]
PAIRS_PART = 8  # more pairs than 1 / PAIRS_PART of the rows are too many


class Members(NamedTuple):
    """Vertices that are known to be in one component, a bit for each place of an owner."""

    rows: Array  # (C, words) of the ranks of the row
    columns: Array  # (R, words) of those of the column
    own: Array  # (words,)


class Known(NamedTuple):
    """The same as lists."""

    local: Array  # bool, by local id
    own: Array  # bits of own ones
    head: int  # the smallest of all, as the grid numbers vertices; n where there is none


class Rest(NamedTuple):
    """What step 4 found: own bits of the component, its smallest vertex, pairs of others."""

    own: Array
    head: int
    pairs: tuple[Array, Array]


def nothing_known(grid: Any) -> Known:
    """No vertices."""
    none = np.zeros(_words(grid), np.uint64)
    return Known(np.zeros(grid.n_local, np.bool_), none, grid.n)


def _words(grid: Any) -> int:
    """Words of one bit for each place of an owner."""
    return int(-(-grid.most_owned // WORD))


# Steps 1 to 3


def members(G: Any, threads: int | None) -> Members:
    """Vertices of one component, the same on all ranks, which all call this.

    The pattern of the whole matrix must be symmetric.
    """
    grid, exchange = G.grid, G.exchange
    words = _words(grid)
    sampled = (grid.c + 1) % grid.C
    turns = G.keep("turns of a sample", lambda: [1])  # as many as the last call needed
    marks, size, turns[0] = largest_tree(G.entries(), grid, sampled, words, threads, turns[0])
    seen = _seen_by(exchange, marks, sampled)
    chosen = largest_set(G.comm, _meetings(seen, grid.p), size)
    own = np.zeros(words, np.uint64)
    for rank, bits in seen.items():
        if chosen[rank]:
            own |= bits
    rows = exchange.row.allgather(own).reshape(grid.C, words)
    columns = exchange.column.allgather(own).reshape(grid.R, words)
    return Members(rows, columns, own)


def _seen_by(exchange: Any, marks: Array, sampled: int) -> dict[int, Array]:
    """For each rank that sampled own vertices or has them as columns: those in its largest tree."""
    grid, words = exchange.grid, marks.shape[1]
    came, _ = exchange.column.alltoallv(marks[1:].reshape(-1), [words] * grid.R)
    seen = {
        r * grid.C + grid.c: bits for r, bits in enumerate(came.reshape(grid.R, words))
    }  # fmt: skip
    if grid.C == 1:
        seen[grid.rank] = seen[grid.rank] | marks[0]
        return seen
    counts = [0] * grid.C
    counts[sampled] = words
    before = grid.r * grid.C + (grid.c - 1) % grid.C
    seen[before] = exchange.row.alltoallv(marks[0], counts)[0]
    return seen


def _meetings(seen: dict[int, Array], p: int) -> Array:
    """(p, p) which two ranks have an own vertex of this one in their largest trees."""
    meets = np.zeros((p, p), np.bool_)
    ranks = list(seen)
    for i, one in enumerate(ranks):
        for other in ranks[:i]:
            meets[one, other] = meets[other, one] = bool((seen[one] & seen[other]).any())
    return meets


def largest_set(comm: Any, meets: Array, size: int) -> Array:
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


# Step 4


def rest(G: Any, found: Members, threads: int | None) -> Rest | None:
    """The rows of the other vertices; None where there are too many pairs on some rank."""
    grid = G.grid
    most = max(grid.n_rows // PAIRS_PART, WORD)
    view = G.entries()
    full = G.keep("rows with entries", lambda: rows_with_entries(view.indptr, grid))
    touched, pairs = cpu_giant.leave(view, full, found, grid, most, threads)
    told = to_group(G.exchange.row, list(touched), np.uint64)
    own = np.bitwise_or.reduce([found.own, *told])
    state = np.array([_least(grid, own), 0 if pairs is not None else -1], np.int64)
    head, enough = G.comm.allreduce(state, "min").tolist()
    return None if pairs is None or enough < 0 else Rest(own, head, pairs)


def _places(bits: Array, owned: int) -> Array:
    """The places whose bits are set, ascending."""
    flat = bits.view(np.uint8)
    return np.flatnonzero(np.unpackbits(flat, count=owned, bitorder="little").view(np.bool_))


def _least(grid: Any, bits: Array) -> int:
    """The smallest own vertex whose bit is set; n where there is none."""
    some = np.flatnonzero(bits)
    if some.size == 0:
        return int(grid.n)
    word = int(bits[some[0]])
    place = int(some[0]) * WORD + (word & -word).bit_length() - 1
    return int(place * grid.p + grid.rank)


def labels_of(G: Any, found: Members, threads: int | None) -> tuple[Array, Known]:
    """Labels of the trees of this rank's block, and what is known of the largest component."""
    grid = G.grid
    head = int(G.comm.allreduce(np.array([_least(grid, found.own)], np.int64), "min")[0])
    local = np.zeros(grid.n_local, np.bool_)
    for c, bits in enumerate(found.rows):
        local[_places(bits, grid.row_counts[c]) * grid.C + c] = True
    for (base, step, size), bits in zip(column_stripes(grid), found.columns, strict=True):
        local[_places(bits, size) * step + base] = True
    return cpu_giant.join_rest(G.entries(), local, threads), Known(local, found.own, head)
