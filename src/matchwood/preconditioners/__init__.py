"""Preconditioners that a tridiagonal solver applies, as linear operators.

    jacobi                        the diagonal
    tridiagonal                   the diagonal and its neighbours, in the order as given
    algebraic_tridiagonal         the same along the paths of a linear forest: the strongest entries
    algebraic_block_tridiagonal   pairs of vertices, then paths of pairs: 2x2 blocks

Each returns a `scipy.sparse.linalg.LinearOperator`, or CuPy's where the matrix lies on a GPU: ready
for ``M=`` of their solvers.  Besides ``matvec``, ``matmat``, ``rmatvec`` and ``.H`` it has

    coverage      part of the weight off the diagonal that it contains
    definite      True or False: is it positive definite, as CG needs it?  None: not symmetric
    seconds       time of its setup by phase
    name

They can be pickled and copied where they lie on the CPU.

Read on in operator.py, definite.py and cpu_definite.py, pairs.py, gpu_pairs.py + gpu_pairs.cu,
blocks.py, cpu_blocks.py, gpu_blocks.py + gpu_blocks.cu.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import csr, engines
from matchwood.factors import coverage_of_order
from matchwood.forests import linear_forest, tridiagonal_of
from matchwood.matching import coarsen
from matchwood.preconditioners import pairs
from matchwood.preconditioners.blocks import blocks_of, members_of, weight_inside
from matchwood.preconditioners.definite import is_definite, made_definite
from matchwood.preconditioners.operator import Core, Known, Scaled, Solved, Stopwatch, operator
from matchwood.tridiagonal import block_tridiagonal, factorize

__all__ = ["algebraic_block_tridiagonal", "algebraic_tridiagonal", "jacobi", "tridiagonal"]


def _matrix(A: Any, caller: str) -> Any:
    """The Graph of A; complex and rectangular matrices end here."""
    G = csr.as_graph(A, caller)
    G.directed_weights(caller)
    return G


def _sparse(G: Any) -> Any:
    """The matrix of a Graph, as SciPy or CuPy has it, sharing its memory."""
    view = G.directed_weights()
    if G.engine == "gpu":
        from cupyx.scipy.sparse import csr_matrix

        return csr_matrix((view.data, view.indices, view.indptr), shape=(G.n, G.n))
    import scipy.sparse as sp

    return sp.csr_array((view.data, view.indices, view.indptr), shape=(G.n, G.n))


def jacobi(A: Any) -> Any:
    """The inverse of the diagonal.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes

    Returns
    -------
    M : LinearOperator
        Of the type of the values of `A`, where `A` lies.

    Raises
    ------
    TypeError, ValueError
        If `A` is not square or complex, or its diagonal has a number that is zero, not finite, or
        so small that its inverse is not; the message names the row.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import matchwood
    >>> M = matchwood.preconditioners.jacobi(sp.csr_array([[2., 1.], [0., 4.]]))
    >>> (M @ [2.0, 2.0]).tolist(), M.coverage
    ([1.0, 0.5], 0.0)
    """
    caller = "jacobi"
    G = _matrix(A, caller)
    clock = Stopwatch(G.engine)
    diagonal = _sparse(G).diagonal()
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        inverse = 1 / diagonal
    bad = ~np.isfinite(inverse) | (inverse == 0)
    if bool(bad.any()):
        row = int(bad.argmax())
        raise ValueError(
            f"{caller}: the diagonal must be finite and have a finite inverse, "
            f"got {float(diagonal[row]):g} at row {row}"
        )
    clock.lap("coefficients")

    def definite() -> bool:
        return bool((diagonal > 0).all())

    core = Core(
        caller, G.n, inverse.dtype, G.engine, Scaled(inverse), Known(0.0), clock.seconds, definite
    )
    return operator(core)


def tridiagonal(
    A: Any, *, allow_singular: bool = False, definite: bool = False, threads: int | None = None
) -> Any:
    """The inverse of the tridiagonal part of a matrix, in the order as given.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
    allow_singular : bool
        Go on where the tridiagonal part is singular, as `tridiagonal.solve` does.
    definite : bool
        Make it positive definite, for CG: along paths that are not, what lies off the diagonal is
        weakened as much as is needed.  `A` must be symmetric, its diagonal positive.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    M : LinearOperator
        Of the type of the values of `A`, where `A` lies.

    Raises
    ------
    TypeError, ValueError
        If `A` is not square or complex.
    numpy.linalg.LinAlgError
        If its tridiagonal part is singular (a zero on the diagonal alone need not be a fault).

    Examples
    --------
    Exact for a matrix that is tridiagonal:

    >>> import scipy.sparse as sp
    >>> import matchwood
    >>> A = sp.csr_array([[2., 1., 0.], [1., 2., 1.], [0., 1., 2.]])
    >>> M = matchwood.preconditioners.tridiagonal(A)
    >>> (M @ (A @ [1.0, 2.0, 3.0])).round(12).tolist(), M.coverage
    ([1.0, 2.0, 3.0], 1.0)
    """
    caller = "tridiagonal"
    G = _matrix(A, caller)
    clock = Stopwatch(G.engine)
    matrix = _sparse(G)
    xp = engines.cupy() if G.engine == "gpu" else np
    dl, d, du = (xp.zeros(G.n, matrix.dtype) for _ in range(3))
    d[:] = matrix.diagonal()
    if G.n > 1:
        dl[1:], du[:-1] = matrix.diagonal(-1), matrix.diagonal(1)
    clock.lap("coefficients")
    system = (dl, d, du)
    if definite:
        system = made_definite(G, system, caller, threads)
        clock.lap("definite")
    made = factorize(*system, allow_singular=allow_singular, threads=threads)
    clock.lap("solver")
    core = Core(
        caller, G.n, d.dtype, G.engine, Solved(made), lambda: coverage_of_order(G), clock.seconds,
        lambda: is_definite(G, system, threads),
    )  # fmt: skip
    return operator(core)


def algebraic_tridiagonal(
    A: Any,
    *,
    allow_singular: bool = False,
    definite: bool = False,
    threads: int | None = None,
    **options: Any,
) -> Any:
    """The inverse of the tridiagonal matrix along the paths of a linear forest.

    The forest holds strong entries of `A` wherever they lie; in its order they are next to the
    diagonal [1]_.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
    allow_singular : bool
        Go on where the tridiagonal matrix is singular, as `tridiagonal.solve` does.
    definite : bool
        Make it positive definite, for CG: along paths that are not, what lies off the diagonal is
        weakened as much as is needed.  `A` must be symmetric, its diagonal positive.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.
    **options
        For `degree_factor`: ``rounds``, ``period``, ``uncharged``, ``charge_probability``,
        ``rng``, ``ties``.

    Returns
    -------
    M : LinearOperator
        Of the type of the values of `A`, where `A` lies.  `forest` is the linear forest.

    Raises
    ------
    TypeError, ValueError
        If `A` is not square or complex, or an option is out of range.
    numpy.linalg.LinAlgError
        If the tridiagonal matrix is singular (a zero on the diagonal alone need not be a fault).

    References
    ----------
    .. [1] C. Klein, R. Strzodka. Highly parallel linear forest extraction from a weighted graph
       on GPUs. ICPP 2022. doi:10.1145/3545008.3545035

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.aniso(2, (50, 50))
    >>> M = matchwood.preconditioners.algebraic_tridiagonal(A)
    >>> round(M.coverage, 2), round(matchwood.coverage_of_order(A), 2)
    (0.67, 0.14)
    """
    caller = "algebraic_tridiagonal"
    G = _matrix(A, caller)
    forest = linear_forest(G, threads=threads, **options)
    clock = Stopwatch(G.engine, lambda: forest.seconds)
    system = tridiagonal_of(G, forest, threads=threads)
    clock.lap("coefficients")
    if definite:
        system = made_definite(G, system, caller, threads)
        clock.lap("definite")
    try:
        made = factorize(*system, allow_singular=allow_singular, threads=threads)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(f"{caller}, rows in the order of the forest: {error}") from None
    clock.lap("solver")
    core = Core(
        caller, G.n, system[1].dtype, G.engine, Solved(made, forest.perm), lambda: forest.coverage,
        clock.seconds, lambda: is_definite(G, system, threads),
    )  # fmt: skip
    return operator(core, forest=forest)


def algebraic_block_tridiagonal(
    A: Any,
    m: int | None = None,
    *,
    allow_singular: bool = False,
    definite: bool = False,
    threads: int | None = None,
    **options: Any,
) -> Any:
    """The inverse of a block tridiagonal matrix of strong entries, with 2x2 blocks.

    Vertices are paired, and in the graph of pairs a linear forest is found [1]_.  A vertex
    without a mate gets a ghost, whose row is ``1 x = 1``.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
    m : int or None
        A number makes the paper's preconditioner: a [0,1]-factor pairs the vertices, and charges
        are off in every m-th round of both factors; 1 never uses them.  The paper has 1 where
        weights tell neighbours apart, 5 where many are equal.  None pairs them in two other
        ways, below, and keeps the one that promises more.
    allow_singular : bool
        Go on where the block tridiagonal matrix is singular, as `block_tridiagonal.solve` does.
    definite : bool
        Make it positive definite, for CG: along paths that are not, what lies off the blocks is
        weakened as much as is needed.  `A` must be symmetric, its diagonal positive.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.
    **options
        For both factors: ``rounds``, ``uncharged``, ``charge_probability``, ``rng``, ``ties``.

    Returns
    -------
    M : LinearOperator
        Of the type of the values of `A`, where `A` lies.  `forest` is the linear forest of pairs,
        `pairs` how they were made: ``"by_factor"``, ``"by_weight"`` or ``"side_by_side"``.

    Raises
    ------
    TypeError, ValueError
        If `A` is not square or complex, or an option is out of range.
    numpy.linalg.LinAlgError
        If the block tridiagonal matrix is singular.

    Notes
    -----
    The weight between two pairs is the sum over the at most four edges between them; the blocks
    hold all entries of `A` within a pair and between neighbours in a path, in both directions.

    With ``m=1`` and five rounds, few vertices of a path of equal weights find a mate, so that the
    blocks contain what `algebraic_tridiagonal` does; with ``m=5`` mates are random, and pairs that
    miss each other break the path.  Hence for ``m=None``

    - ``"by_weight"``: the heaviest edges first, the one to the smaller index among equals, as
      `weighted_matching` takes them;
    - ``"side_by_side"``: strong edges that both ends have among their two heaviest form paths;
      paths are matched by the weight between them and laid side by side, in the direction and
      with the shift that put most weight into the blocks.  Where one direction is strong, this
      holds two lines of it and the weaker edges between them.  It is taken if it leaves out a
      tenth less weight: of pairs that contain the same, those of heavy edges do better.

    Counts of BiCGStab scatter by 20 per cent and more from one right-hand side to the next, so
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
    unknown = options.keys() - {
        "rounds", "uncharged", "charge_probability", "rng", "ties", "M", "k_m", "p",
    }  # fmt: skip
    if unknown:
        raise TypeError(f"{caller}: unknown argument {min(unknown)!r}")
    G = _matrix(A, caller)
    clock = Stopwatch(G.engine)
    if m is not None:
        best = _block_pattern(G, "by_factor", clock, threads, {**options, "period": m})
    else:
        best = _block_pattern(G, "by_weight", clock, threads, options)
        other = _block_pattern(G, "side_by_side", clock, threads, options)
        total = _weight_off_diagonal(G)
        if total - other.inside < LESS * (total - best.inside):
            best = other
        clock.lap("comparison")
    system = best.blocks
    if definite:
        system = made_definite(G, system, caller, threads)
        clock.lap("definite")
    try:
        made = block_tridiagonal.factorize(*system, allow_singular=allow_singular, threads=threads)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            f"{caller}, pairs in the order of the forest: {error}"
        ) from None
    clock.lap("solver")

    def coverage() -> float:
        total = _weight_off_diagonal(G)
        return best.inside / total if total > 0 else 0.0

    core = Core(
        caller, G.n, system[1].dtype, G.engine, Solved(made, best.members), coverage, clock.seconds,
        lambda: is_definite(G, system, threads),
    )  # fmt: skip
    return operator(core, forest=best.forest, pairs=best.pairs)


# Side by side must leave out less than this part of what is left out by weight: where it helps it
# is 0.5 to 0.75 of it, and bcsstk10 at 0.99 needs three times the iterations.
LESS = 0.9


class _Pattern(NamedTuple):
    pairs: str
    forest: Any
    members: Any
    blocks: tuple[Any, Any, Any]

    @property
    def inside(self) -> float:
        """Weight off the diagonal."""
        return weight_inside(self.blocks)


def _weight_off_diagonal(G: Any) -> float:
    if G.engine == "gpu":
        from matchwood.preconditioners import gpu_blocks

        return gpu_blocks.weight_off_diagonal(G.directed_weights())
    total = float(abs(G.directed_weights().data).sum(dtype=np.float64))
    return total - float(abs(_sparse(G).diagonal()).sum(dtype=np.float64))


def _block_pattern(
    G: Any, how: str, clock: Stopwatch, threads: int | None, options: dict[str, Any]
) -> _Pattern:
    if how == "by_factor":
        mate = pairs.by_factor(G, threads=threads, **options)
    else:
        order = {"rng": options.get("rng", 0), "ties": options.get("ties", "index")}
        mate = getattr(pairs, how)(G, threads=threads, **order)
    clock.lap("pairs")
    coarse = coarsen(G, mate, threads=threads)
    clock.lap("coarse graph")
    forest = linear_forest(coarse.matrix, threads=threads, **options)
    clock.skip(lambda: forest.seconds)
    members = members_of(coarse.map, mate, forest)
    clock.lap("permutation of pairs")
    blocks = blocks_of(G, coarse.map, forest, members, threads=threads)
    if G.engine == "cpu":
        members = members.astype(np.int64)  # as the solver there wants them
    clock.lap("coefficients")
    return _Pattern(how, forest, members, blocks)
