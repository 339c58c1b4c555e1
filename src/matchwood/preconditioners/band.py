"""The tridiagonal part of a matrix, in the order as given, as a preconditioner."""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.factors import coverage_of_order
from matchwood.preconditioners.operator import SetupClock, matrix_on, solving_operator
from matchwood.tridiagonal import factorize


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
