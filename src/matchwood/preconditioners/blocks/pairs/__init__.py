"""Which vertices share a 2x2 block: three ways to pair them.

    by_factor     a [0,1]-factor by rounds of proposals, as in the paper
    by_weight     the heaviest edges first, until no edge is left between two free vertices
    side_by_side  two paths of strong edges are laid beside each other; vertices side by side are
                  a pair

Each returns the mate of every vertex, -1 for none, where the matrix lies.  On the GPU the last one
is in gpu.py + gpu.cu.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.factors import degree_factor
from matchwood.forests import linear_forest
from matchwood.matching import weighted_matching
from matchwood.primitives.assemble import trusted_assemble as assemble
from matchwood.primitives.row_reduce import (
    trusted_strongest_neighbours as strongest_neighbours,
)

# A ratio.  An edge is strong when it weighs at least STRONG times the heaviest edge at each of its
# ends: the usual threshold of algebraic multigrid.
STRONG = 0.25


def by_factor(G: Any, *, threads: int | None = None, **options: Any) -> Any:
    return degree_factor(G, 1, threads=threads, **options).neighbours[:, 0]


def by_weight(G: Any, *, rng: Any, ties: str, threads: int | None = None) -> Any:
    return weighted_matching(G, rng=rng, ties=ties, threads=threads).mate


def side_by_side(G: Any, *, rng: Any, ties: str, threads: int | None = None) -> Any:
    """Pairs across the strong direction, so that the paths of pairs can follow that direction.

    The paths consist of the strong edges that both ends have among their two heaviest: one round
    of proposals.  Weak edges are left out, because they would join the ends of paths to bent ones,
    beside which no other path can lie.  Paths are matched by the weight between them; two matched
    paths are a couple.
    """
    view, n = G.undirected_weights(), G.n
    if view.nnz == 0:
        return engines.xp(view.indices).full(n, -1, view.indices.dtype)
    if G.engine == "gpu":
        from matchwood.preconditioners.blocks.pairs import gpu

        return gpu.side_by_side(view, rng=rng, ties=ties)
    rows = _rows(view.indptr, view.nnz)
    _, top = strongest_neighbours(view.indptr, view.indices, view.data, 1, threads=threads)
    heaviest = top[:, 0]
    strong = view.data >= STRONG * np.maximum(heaviest[rows], heaviest[view.indices])
    strong_edges = (view.indptr, view.indices, np.where(strong, view.data, 0))
    forest = linear_forest(strong_edges, rounds=1, period=1, rng=rng, ties=ties, threads=threads)
    path, position = (array.astype(np.int64) for array in (forest.path, forest.position))
    lower, upper, here, there, weights = _between_paths(view, rows, path, position)
    matrix = assemble(n, n, lower, upper, weights, symmetric=True, threads=threads)
    couple = weighted_matching(matrix, rng=rng, ties=ties, threads=threads).mate
    kept = couple[lower] == upper
    reach = int(position.max()) + 1
    column = _alignment(
        (n, 4 * reach), lower[kept], here[kept], there[kept], weights[kept], threads
    )

    other = np.where(couple[path] >= 0, couple[path], path)
    column = column[np.minimum(path, other)]
    along = position + np.where(path < other, -1, 1) * (column - reach)
    against = column - 2 * reach - position
    own_partner = ((position - 1) ^ 1) + 1  # a path without a couple: positions 1 with 2, 3 with 4
    partner = np.where(other == path, own_partner, np.where(column > 2 * reach, against, along))
    exists = (partner >= 1) & (partner <= np.bincount(path, minlength=n)[other])
    # a path is named after its first vertex, so forest.place[other] is where it starts
    place = np.where(exists, forest.place[other] + partner - 1, 0)
    return np.where(exists, forest.perm[place], -1).astype(view.indices.dtype)


def _between_paths(
    view: Any, rows: Any, path: Any, position: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """For every edge between two paths: lower and upper path, positions there, weight."""
    columns = view.indices
    kept = (rows < columns) & (path[rows] != path[columns])
    u, v = rows[kept], columns[kept]
    swap = path[u] > path[v]
    u, v = np.where(swap, v, u), np.where(swap, u, v)
    return path[u], path[v], position[u], position[v], view.data[kept].astype(np.float64)


def _alignment(
    shape: tuple[int, int],
    lower: Any,
    here: Any,
    there: Any,
    weights: Any,
    threads: int | None,
) -> Any:
    """How the upper path of a couple lies beside the lower one: a number for each lower path.

    Let `reach` be a quarter of the columns.  Position `here` is beside position `there` if the
    number is ``here - there + reach`` (same direction) or ``here + there + 2 * reach`` (opposite
    direction).  The former are below ``2 * reach``, the latter above.  Blocks hold edges within a
    pair and to the pairs before and after.  So the best number is the one that has the most weight
    together with its two neighbours; of equally good ones the least is taken.
    """
    best = np.zeros(shape[0], np.int64)
    if lower.size == 0:
        return best
    reach = shape[1] // 4
    columns = np.concatenate((here - there + reach, here + there + 2 * reach))
    indptr, columns, sums = assemble(
        *shape, np.tile(lower, 2), columns, np.tile(weights, 2), threads=threads
    )
    rows = _rows(indptr, columns.size)
    columns = np.concatenate((columns - 1, columns, columns + 1))
    indptr, columns, sums = assemble(
        *shape, np.tile(rows, 3), columns, np.tile(sums, 3), threads=threads
    )
    rows = _rows(indptr, columns.size)
    keys = (columns.astype(np.float64), -sums, rows.astype(np.float64))  # exact: below 2**53
    order = np.lexsort(np.stack(keys))
    rows, columns = rows[order], columns[order]
    first = np.ones(rows.size, np.bool_)
    first[1:] = rows[1:] != rows[:-1]
    best[rows[first]] = columns[first]
    return best


def _rows(indptr: Any, nnz: int) -> Any:
    """The row of each entry."""
    starts = np.bincount(indptr[1:-1], minlength=nnz + 1)  # how many rows start at each entry
    return np.cumsum(starts)[:nnz].astype(np.int64, copy=False)
