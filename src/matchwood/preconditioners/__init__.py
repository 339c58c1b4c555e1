"""Preconditioners, as linear operators: a tridiagonal solver applies most of them.

    jacobi                        the diagonal
    tridiagonal                   the three middle diagonals, in the order as given
    algebraic_tridiagonal         the same along the paths of a linear forest: strong entries
    algebraic_block_tridiagonal   pairs of vertices, then paths of pairs: 2x2 blocks
    multilevel                    aggregation multigrid, with one of the first three as smoother

Each returns a `scipy.sparse.linalg.LinearOperator`, or CuPy's where the engine is a GPU: ready
for ``M=`` of their solvers.  Besides ``matvec``, ``matmat``, ``rmatvec`` and ``.H`` it has

    coverage      fraction of the weight off the diagonal that it contains
    definite      True or False: is it positive definite, as CG needs it?  None: not symmetric
    seconds       time of its setup by phase
    name

On the CPU they can be pickled and copied.

Read on in operator.py (the class that all return), blocks/, multilevel/, definite/ (makes a
preconditioner positive definite for CG) and check.py (what holds for each).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.factors import coverage_of_order
from matchwood.factors.plan import options_in_words
from matchwood.forests import linear_forest, tridiagonal_of
from matchwood.forests.result import trusted
from matchwood.preconditioners.blocks import algebraic_block_tridiagonal
from matchwood.preconditioners.multilevel import multilevel
from matchwood.preconditioners.operator import (
    Core,
    Known,
    Scaled,
    SetupClock,
    matrix_on,
    operator,
    solving_operator,
)
from matchwood.tridiagonal import factorize

__all__ = [
    "algebraic_block_tridiagonal",
    "algebraic_tridiagonal",
    "jacobi",
    "multilevel",
    "tridiagonal",
]

FACTOR_OPTIONS = ("rounds", "period", "uncharged", "charge_probability", "rng", "ties", "directed")


def jacobi(A: Any, *, engine: str | None = None, threads: int | None = None) -> Any:
    """The inverse of the diagonal.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
    engine : {None, "cpu", "gpu"}
        None takes the engine where `A` lives.  The operator lives on the engine, and takes vectors
        there.
    threads : int or None
        Not used: the work is a few operations on arrays.

    Returns
    -------
    M : LinearOperator
        Of the type of the values of `A`, on the engine.

    Raises
    ------
    EngineUnavailable
        If `engine` is "gpu" and there is none, or "reference".
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
    G = matrix_on(A, caller, engine, threads)
    clock = SetupClock(G.engine)
    diagonal = G.sparse_weights().diagonal()
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
    A: Any,
    *,
    allow_singular: bool = False,
    definite: bool = False,
    engine: str | None = None,
    threads: int | None = None,
) -> Any:
    """The inverse of the tridiagonal part of a matrix, in the order as given.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
    allow_singular : bool
        Go on where the tridiagonal part is singular, as `tridiagonal.solve` does.
    definite : bool
        Make it positive definite, for CG: along paths that are not, the entries off the diagonal
        are multiplied by a number below 1.  `A` must be symmetric, its diagonal positive.
    engine : {None, "cpu", "gpu"}
        None takes the engine where `A` lives.  The operator lives on the engine, and takes vectors
        there.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    M : LinearOperator
        Of the type of the values of `A`, on the engine.

    Raises
    ------
    EngineUnavailable
        If `engine` is "gpu" and there is none, or "reference".
    TypeError, ValueError
        If `A` is not square or complex.
    numpy.linalg.LinAlgError
        If its tridiagonal part is singular.  (A zero on the diagonal alone need not make it so.)

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
    flags = {"definite": definite, "allow_singular": allow_singular}
    G = matrix_on(A, caller, engine, threads, **flags)
    clock = SetupClock(G.engine)
    matrix = G.sparse_weights()
    xp = engines.xp(matrix.data)
    dl, d, du = (xp.zeros(G.n, matrix.dtype) for _ in range(3))
    d[:] = matrix.diagonal()
    if G.n > 1:
        dl[1:], du[:-1] = matrix.diagonal(-1), matrix.diagonal(1)
    clock.lap("coefficients")
    return solving_operator(
        G, caller, clock, factorize, (dl, d, du), lambda: coverage_of_order(G),
        definite=definite, allow_singular=allow_singular, threads=threads,
    )  # fmt: skip


def algebraic_tridiagonal(
    A: Any,
    *,
    allow_singular: bool = False,
    definite: bool = False,
    engine: str | None = None,
    threads: int | None = None,
    **options: Any,
) -> Any:
    """The inverse of the tridiagonal matrix along the paths of a linear forest.

    The forest holds strong entries of `A` wherever they lie; in its order they are next to the
    diagonal [1]_.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
    allow_singular, definite, engine, threads
        As for `tridiagonal`.
    **options
        For `degree_factor`: ``rounds``, ``period``, ``uncharged``, ``charge_probability``,
        ``rng``, ``ties``, ``directed``.

    Returns
    -------
    M : LinearOperator
        Of the type of the values of `A`, on the engine.  `forest` is the linear forest.

    Raises
    ------
    EngineUnavailable
        If `engine` is "gpu" and there is none, or "reference".
    TypeError, ValueError
        If `A` is not square or complex, or an option is out of range.
    numpy.linalg.LinAlgError
        If the tridiagonal matrix is singular.  (A zero on the diagonal alone need not make it so.)

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
    words = options_in_words(caller, options, FACTOR_OPTIONS)
    flags = {"definite": definite, "allow_singular": allow_singular}
    G = matrix_on(A, caller, engine, threads, **flags)
    forest = linear_forest(G, threads=threads, **words)
    clock = SetupClock(G.engine, lambda: forest.seconds)
    system = tridiagonal_of(G, forest, threads=threads)
    clock.lap("coefficients")
    order = getattr(trusted(forest), "perm", forest.perm)
    return solving_operator(
        G, caller, clock, factorize, system, lambda: forest.coverage, order=order,
        definite=definite, allow_singular=allow_singular, threads=threads, forest=forest,
    )  # fmt: skip
