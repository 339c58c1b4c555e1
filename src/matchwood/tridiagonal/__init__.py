"""Tridiagonal systems, plain and with 2x2 blocks, solved in parallel with pivoting.

    solve               one system, one or many right-hand sides
    factorize           a matrix that is solved with many times, or transposed
    block_tridiagonal   the same for 2x2 blocks

Read on in system.py, reference.py and check.py; plain/ and block/ hold the engines, which share
elements/ with elements.cuh and passes.cuh.  check.py says which solutions are right.  repair/
repairs the others, and solves the systems that the engines cannot solve in parts.
"""

from __future__ import annotations

from typing import Any

from matchwood.tridiagonal import block as block_tridiagonal
from matchwood.tridiagonal.system import Factorization, system

__all__ = ["Factorization", "block_tridiagonal", "factorize", "solve"]


def solve(
    dl: Any,
    d: Any,
    du: Any,
    b: Any,
    *,
    allow_singular: bool = False,
    engine: str | None = None,
    threads: int | None = None,
) -> Any:
    """Solve a tridiagonal system of linear equations.

    Row i is ``dl[i] x[i-1] + d[i] x[i] + du[i] x[i+1] = b[i]``.

    Parameters
    ----------
    dl, d, du : (n,) arrays
        Below, on and above the diagonal.  ``dl[0]`` and ``du[n-1]`` are not read.
        Several independent systems can be put into one array, with zeros in ``dl`` and ``du``
        between them, at the same speed.
    b : (n,) or (n, k) array
        One right-hand side or k of them, on the CPU up to eight in one pass.
    allow_singular : bool
        Where an unknown has no pivot, go on with a pivot of the size of rounding errors instead of
        raising; the solution is then that of a nearby matrix.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where the arrays lie.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    x : array with the shape of b
        float32 when all arrays are, else float64; where the input lies.

    Raises
    ------
    numpy.linalg.LinAlgError
        If an unknown has no pivot; the message names its row.
    OverflowError
        If an unknown is beyond the range of its type; the message names its row.
    TypeError, ValueError
        If shapes do not fit, numbers are complex or not finite, arrays lie on different engines.

    Notes
    -----
    Rows are divided into parts of fixed length.  The inner unknowns of a part are eliminated by its
    own rows with scaled partial pivoting, which leaves two equations between its ends.  Those of
    neighbouring parts are joined in the same way, level by level, until two unknowns are left.
    Then everything is substituted back, with the elimination repeated instead of stored [1]_.
    Unlike in [1]_, both equations of a part are carried together and exchange rows: all rows that
    contain an unknown are candidates for its pivot, so it has one unless the matrix is singular.

    The residual of every row is computed, and must be within 8 rounding units of the row's terms.
    In a random system one row in a thousand is not; such rows are repaired locally, by a change of
    the unknowns around.  Where many rows are off, as with columns on very different scales, the
    whole solution is refined.  Where that is not enough, the system is solved row after row on one
    CPU thread, also from the GPU.  Both take longer.  So the rows of a system are off by no more
    than ten times the worst of LAPACK's ``gtsv`` or 8 units, whichever is larger.  (Measured
    exactly 10 units: the residual itself is rounded, by 2 at most.)

    Deterministic: the parts do not depend on the number of threads.  CPU and GPU have parts of
    different lengths, so their solutions agree up to rounding only.

    Work O(n); the arrays are read twice.  Memory besides the result: 0.2 n numbers on the CPU,
    0.5 n on the GPU.

    References
    ----------
    .. [1] C. Klein, R. Strzodka. Tridiagonal GPU solver with scaled partial pivoting at maximum
       bandwidth. ICPP 2021. doi:10.1145/3472456.3472484

    Examples
    --------
    >>> import matchwood
    >>> matchwood.tridiagonal.solve([0, 1, 1], [0, 0, 1], [1, 1, 0], [2.0, 4.0, 5.0]).tolist()
    [1.0, 2.0, 3.0]

    Its diagonal has zeros: elimination without row exchanges would fail.
    """
    made = system("tridiagonal.solve", f"{__name__}.plain", dl, d, du, block=False)
    return made.solve(b, allow_singular=allow_singular, engine=engine, threads=threads)


def factorize(
    dl: Any, d: Any, du: Any, *, allow_singular: bool = False, threads: int | None = None
) -> Factorization:
    """Prepare a tridiagonal matrix for many solves, with it or its transpose.

    Parameters
    ----------
    dl, d, du, allow_singular, threads
        As in `solve`.

    Returns
    -------
    Factorization
        With ``solve(b, transpose=False)``.

    Raises
    ------
    numpy.linalg.LinAlgError, TypeError, ValueError
        As in `solve`.

    Examples
    --------
    >>> import matchwood
    >>> made = matchwood.tridiagonal.factorize([0, 2, 2], [5, 5, 5], [1, 1, 0])
    >>> made.solve([6.0, 8.0, 7.0]).round(12).tolist()
    [1.0, 1.0, 1.0]
    """
    package = f"{__name__}.plain"
    made = system("tridiagonal.factorize", package, dl, d, du, block=False, copy=True)
    return Factorization(made, allow_singular, threads)
