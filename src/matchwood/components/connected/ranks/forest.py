"""One forest of the forests of all blocks.  Steps of a rank: cpu/, gpu.py + gpu.cu.

1. Every rank joins the edges of its block.  So each of its vertices v is in a tree, whose smallest
   vertex is a: v and a are connected.
2. It reports that to the owner of v, if a is not v.  The largest tree of a block is reported by
   marks: one bit for a vertex.  The other trees are reported by pairs (v, a).
3. The owner of v has parent[v], the smallest vertex that it knows to be connected with v.

Where the pattern is symmetric, most of the entries need not be read, and most vertices need no
report (cpu/giant.py, and `_join_known` in gpu.py).

Then in rounds, until nothing changes on any rank:

   hook       A pair (v, a) lowers parent[v] to a.  If v had another parent b, then a and b are
              connected, and the owner of the larger one must learn of the smaller one: it is sent
              that pair.
   shortcut   parent[v] becomes the parent of the parent, which its owner is asked for.  Each is
              asked for once by a rank, however many of its vertices are below it.

A pair is dropped where it says what the owner knows, or where v was a root.  It always goes to a
smaller vertex than before, and parents only go down, so the rounds end.  Then every parent is a
root, every pair has been used, and so the root is the smallest vertex of the component.  (M. Rem's
way to join sets, E. W. Dijkstra, A Discipline of Programming, 1976.)

Here: which local vertices of a block belong to which owner, reports, and pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import crew_for_step
from matchwood.engines.ranks.exchanges.routing import to_group
from matchwood.engines.ranks.grid import Grid
from matchwood.primitives.union_find.cpu import union_find

Array = np.ndarray[Any, Any]


class Stripes(NamedTuple):
    """The vertices of a block by their owner: those of one are base + place * step."""

    owner: Array
    base: Array
    step: Array
    size: Array


def stripes_of(grid: Grid) -> Stripes:
    """Stripes of the row group first, by column of the grid; then the rest of the column group."""
    rows = [(grid.r * grid.C + c, c, grid.C, grid.row_counts[c]) for c in range(grid.C)]
    columns = [
        (r * grid.C + grid.c, grid.n_rows + r - (r > grid.r), grid.R - 1, size)
        for r, size in enumerate(grid.column_counts)
        if r != grid.r
    ]
    return Stripes(*(np.array(column, np.int64) for column in zip(*rows, *columns, strict=True)))


def exchanged(exchange: Any, reports: dict[int, Array]) -> list[Array]:
    """What all ranks of the row and the column report of own vertices, this one's too."""
    grid = exchange.grid
    mine = grid.rank
    none = reports[mine][:0]
    along_row = [grid.r * grid.C + c for c in range(grid.C)]
    along_column = [r * grid.C + grid.c for r in range(grid.R)]
    found = [reports[mine]]
    for comm, ranks in ((exchange.row, along_row), (exchange.column, along_column)):
        if comm.size > 1:
            sent = [none if rank == mine else reports[rank] for rank in ranks]
            found += [part for part in to_group(comm, sent, none.dtype) if part.size]
    return found


def stars(found: list[tuple[Array, Array]], threads: int | None) -> tuple[Array, Array]:
    """Pairs (vertex, smallest vertex connected with it) that say the same as these pairs.

    Pairs of one rank often share vertices: those of a set all get its smallest.
    """
    highs = np.concatenate([highs for highs, _ in found])
    lows = np.concatenate([lows for _, lows in found])
    if highs.size == 0:
        return highs.astype(np.int64), lows
    ids, places = np.unique(np.concatenate([highs, lows]), return_inverse=True)
    above, below = np.split(places.reshape(-1), 2)
    team = crew_for_step(threads, work=ids.size + above.size)
    smallest = union_find(ids.size, above, below, threads=team.size)
    joined = smallest != np.arange(ids.size)
    return ids[joined].astype(np.int64), ids[smallest[joined]]


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
