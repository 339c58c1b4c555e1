"""Blocks of 2x2 along a linear forest of pairs, as a preconditioner.

Which vertices share a block, in three ways (each gives the mate of every vertex, -1 for none, where
the matrix lies):

    by_factor     a [0,1]-factor by rounds of proposals, as in the paper
    by_weight     the heaviest edges first, until no edge is left between two free vertices
    side_by_side  two paths of strong edges are laid beside each other; vertices side by side are
                  a pair

The entries of the blocks: cpu.py, gpu.py + gpu.cu.  The latter also lay paths side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.arguments import count
from matchwood.factors import degree_factor
from matchwood.factors.plan import options_in_words
from matchwood.forests import linear_forest
from matchwood.matching import coarsen, weighted_matching
from matchwood.preconditioners.operator import SetupClock, matrix_on, solving_operator
from matchwood.primitives.assemble import trusted_assemble as assemble
from matchwood.primitives.row_reduce import trusted_strongest_neighbours as strongest_neighbours
from matchwood.tridiagonal import block_tridiagonal

FACTOR_OPTIONS = ("rounds", "uncharged", "charge_probability", "rng", "ties")

# A ratio.  An edge is strong when it weighs at least STRONG times the heaviest edge at each of its
# ends: the usual threshold of algebraic multigrid.
STRONG = 0.25

# A ratio.  Both ways leave some weight out of the blocks.  "side_by_side" is taken when the weight
# it leaves out is less than LEFT_OUT times the weight that "by_weight" leaves out.  On matrices
# where it needs fewer iterations the ratio is 0.5 to 0.75.  On bcsstk10 the ratio is 0.99, and it
# needs three times the iterations.
LEFT_OUT = 0.9


def algebraic_block_tridiagonal(
    A: Any,
    period: int | None = None,
    *,
    allow_singular: bool = False,
    definite: bool = False,
    engine: str | None = None,
    threads: int | None = None,
    **options: Any,
) -> Any:
    """The inverse of a block tridiagonal matrix of strong entries, with 2x2 blocks.

    Vertices are paired, and in the graph of pairs a linear forest is found [1]_.  A vertex
    without a mate gets a dummy unknown, whose row is that of the identity.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
    period : int or None
        A number makes the paper's preconditioner, and is its m.  A [0,1]-factor then pairs the
        vertices, and both factors have charges in all rounds but one of each `period`;
        ``period=1`` never uses them.  The paper takes 1 where neighbours differ in weight, 5
        where many weights are equal.  None pairs the vertices in two other ways (see Notes), and
        keeps the better one.
    allow_singular : bool
        Go on where the block tridiagonal matrix is singular, as `block_tridiagonal.solve` does.
    definite : bool
        Make it positive definite, for CG: along paths that are not, the entries off the blocks on
        the diagonal are multiplied by a number below 1.  `A` must be symmetric, its diagonal
        positive.
    engine, threads
        As for `tridiagonal`.
    **options
        For both factors: ``rounds``, ``uncharged``, ``charge_probability``, ``rng``, ``ties``
        (``"index"`` unless given: pairs of the same kind all over a mesh make better blocks).

    Returns
    -------
    M : LinearOperator
        Of the type of the values of `A`, on the engine.  `forest` is the linear forest of pairs,
        `pairs` how they were made: ``"by_factor"``, ``"by_weight"`` or ``"side_by_side"``.

    Raises
    ------
    EngineUnavailable
        If `engine` is "gpu" and there is none, or "reference".
    TypeError, ValueError
        If `A` is not square or complex, or an option is out of range.
    numpy.linalg.LinAlgError
        If the block tridiagonal matrix is singular.

    Notes
    -----
    The weight between two pairs is the sum over the at most four edges between them; the blocks
    hold all entries of `A` within a pair and between neighbours in a path, in both directions.

    With ``period=1`` and five rounds, few vertices of a path of equal weights find a mate, and the
    blocks contain the same entries as `algebraic_tridiagonal`.  With ``period=5`` mates are random,
    and vertices left between two pairs break the path.  Hence for ``period=None``

    - ``"by_weight"``: the heaviest edges first, among equal ones that to the smaller index, as in
      `weighted_matching`;
    - ``"side_by_side"``: strong edges that both ends have among their two heaviest form paths.
      Paths are matched by the weight between them and laid side by side, in the direction and
      with the shift that put most weight into the blocks.  Where one direction is strong, the
      blocks then hold two lines of it and the weaker edges between them.  This way is taken if it
      leaves out at least a tenth less weight: where both contain the same weight, ``"by_weight"``
      needs fewer iterations.

    The number of iterations of BiCGStab varies by 20 per cent and more between right-hand sides, so
    compare medians over several.

    References
    ----------
    .. [1] C. Klein, R. Strzodka. Highly parallel linear forest extraction from a weighted graph
       on GPUs. ICPP 2022. doi:10.1145/3545008.3545035

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.aniso(2, (50, 50))
    >>> M = matchwood.preconditioners.algebraic_block_tridiagonal(A)
    >>> M.shape, M.pairs, round(M.coverage, 1)
    ((2500, 2500), 'side_by_side', 0.8)
    """
    caller = "algebraic_block_tridiagonal"
    words = {"ties": "index", **options_in_words(caller, options, FACTOR_OPTIONS)}
    period = words.pop("period", period)  # where it was given by its old name, m
    if period is not None:
        count(caller, "period", period, 1)
    flags = {"definite": definite, "allow_singular": allow_singular}
    G = matrix_on(A, caller, engine, threads, **flags)
    clock = SetupClock(G.engine)
    if period is not None:
        best = _block_pattern(G, "by_factor", clock, threads, {**words, "period": period})
    else:
        best = _block_pattern(G, "by_weight", clock, threads, words)
        other = _block_pattern(G, "side_by_side", clock, threads, words)
        total = _weight_off_diagonal(G)
        if total - other.inside < LEFT_OUT * (total - best.inside):
            best = other
        clock.lap("comparison")

    def coverage() -> float:
        total = _weight_off_diagonal(G)
        return best.inside / total if total > 0 else 0.0

    return solving_operator(
        G, caller, clock, block_tridiagonal.factorize, best.blocks, coverage,
        order=best.members, what="pairs", definite=definite, allow_singular=allow_singular,
        threads=threads, forest=best.forest, pairs=best.pairs,
    )  # fmt: skip


class _Pattern(NamedTuple):
    pairs: str
    forest: Any
    members: Any
    blocks: tuple[Any, Any, Any]

    @property
    def inside(self) -> float:
        """Weight off the diagonal that the blocks hold."""
        d = self.blocks[1]
        if engines.location(d) == "gpu":
            gpu = engines.load(__name__, "gpu")
            return gpu.weight_inside(*self.blocks)  # type: ignore[no-any-return]
        total = sum(float(abs(block).sum(dtype=np.float64)) for block in self.blocks)
        return total - sum(float(abs(d[:, i, i]).sum(dtype=np.float64)) for i in (0, 1))


def _weight_off_diagonal(G: Any) -> float:
    if G.engine == "gpu":
        gpu = engines.load(__name__, "gpu")
        return gpu.weight_off_diagonal(G.directed_weights())  # type: ignore[no-any-return]
    total = float(abs(G.directed_weights().data).sum(dtype=np.float64))
    return total - float(abs(G.sparse_weights().diagonal()).sum(dtype=np.float64))


def _block_pattern(
    G: Any, how: str, clock: SetupClock, threads: int | None, options: dict[str, Any]
) -> _Pattern:
    if how == "by_factor":
        mate = degree_factor(G, 1, threads=threads, **options).neighbours[:, 0]
    else:
        pairs = by_weight if how == "by_weight" else side_by_side
        mate = pairs(G, rng=options.get("rng", 0), ties=options["ties"], threads=threads)
    clock.lap("pairs")
    coarse = coarsen(G, mate, threads=threads)
    clock.lap("coarse graph")
    forest = linear_forest(coarse.matrix, threads=threads, **options)
    clock.skip(lambda: forest.seconds)
    members = _members_of(coarse.map, mate, forest)
    clock.lap("permutation of pairs")
    view = G.directed_weights()
    kind = view.indices.dtype
    # place of each vertex's pair in the order; whether the path goes on to the next pair
    place = forest.place[coarse.map].astype(kind, copy=False)
    position = forest.position[forest.perm].astype(kind, copy=False)
    pairs_of_kind = members.astype(kind, copy=False)
    engine = engines.load(__name__, G.engine)
    blocks = engine.blocks(view, place, position, pairs_of_kind, threads=threads)
    if G.engine == "cpu":
        members = members.astype(np.int64)  # the CPU solver takes int64
    clock.lap("coefficients")
    return _Pattern(how, forest, members, blocks)


# The entries of the blocks


def _members_of(map: Any, mate: Any, forest: Any) -> Any:
    """(pairs, 2) array, pairs in the order of the forest: the smaller vertex, its mate or -1."""
    if engines.location(map) == "gpu":
        return engines.load(__name__, "gpu").members(map, mate, forest.place)
    kind = mate.dtype
    vertices = np.arange(map.shape[0], dtype=kind)
    first = (mate < 0) | (vertices < mate)
    members = np.empty((forest.perm.shape[0], 2), kind)
    place = forest.place[map[first]]
    members[place, 0] = vertices[first]
    members[place, 1] = mate[first]
    return members


# Which vertices share a block


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
        return engines.load(__name__, "gpu").side_by_side(view, rng=rng, ties=ties)
    rows = _rows(view.indptr, view.nnz)
    _, top = strongest_neighbours(view.indptr, view.indices, view.data, 1, threads=threads)
    heaviest = top[:, 0]
    strong = view.data >= STRONG * np.maximum(heaviest[rows], heaviest[view.indices])
    strong_edges = (view.indptr, view.indices, np.where(strong, view.data, 0))
    forest = linear_forest(strong_edges, rounds=1, period=1, rng=rng, ties=ties, threads=threads)
    path, position = (array.astype(np.int64) for array in (forest.path, forest.position))
    # of every edge between two paths: its ends in the lower and in the upper path, and its weight
    kept = (rows < view.indices) & (path[rows] != path[view.indices])
    u, v = rows[kept], view.indices[kept]
    swap = path[u] > path[v]
    u, v = np.where(swap, v, u), np.where(swap, u, v)
    lower, upper, here, there = path[u], path[v], position[u], position[v]
    weights = view.data[kept].astype(np.float64)
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


def _alignment(
    shape: tuple[int, int], lower: Any, here: Any, there: Any, weights: Any, threads: int | None
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
