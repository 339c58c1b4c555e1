"""The tridiagonal matrix along the paths of a linear forest, as a preconditioner."""

from __future__ import annotations

from typing import Any

from matchwood.factors.plan import options_in_words
from matchwood.forests import linear_forest, tridiagonal_of
from matchwood.forests.result import trusted
from matchwood.preconditioners.operator import SetupClock, matrix_on, solving_operator
from matchwood.tridiagonal import factorize

OPTIONS = ("rounds", "period", "uncharged", "charge_probability", "rng", "ties", "directed")


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
    allow_singular : bool
        Go on where the tridiagonal matrix is singular, as `tridiagonal.solve` does.
    definite : bool
        Make it positive definite, for CG: along paths that are not, the entries off the diagonal
        are multiplied by a number below 1.  `A` must be symmetric, its diagonal positive.
    engine : {None, "cpu", "gpu"}
        None takes the engine where `A` lives.  The operator lives on the engine, and takes vectors
        there.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.
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
    words = options_in_words(caller, options, OPTIONS)
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
