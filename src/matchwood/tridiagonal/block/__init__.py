"""Tridiagonal systems of 2x2 blocks.  Read on in ../reference.py, cpu/, gpu.py + gpu.cu."""

from __future__ import annotations

from typing import Any

from matchwood.tridiagonal.system import Factorization, system

__all__ = ["factorize", "solve"]


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
    """Solve a block tridiagonal system with 2x2 blocks.

    Block row i is ``dl[i] X[i-1] + d[i] X[i] + du[i] X[i+1] = b[i]``.

    Parameters
    ----------
    dl, d, du : (n, 2, 2) arrays
        Below, on and above the diagonal.  ``dl[0]`` and ``du[n-1]`` are not read.
    b : (n, 2) or (n, 2, k) array
        One right-hand side or k of them, on the CPU up to eight in one pass.
    allow_singular : bool
        Where an unknown has no pivot, go on with a pivot of the size of rounding errors instead of
        raising.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where the arrays lie.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    x : array with the shape of b
        float32 when all arrays are, else float64; where the input lies.

    Raises
    ------
    numpy.linalg.LinAlgError
        If an unknown has no pivot; the message names its block row.
    OverflowError
        If an unknown is beyond the range of its type.
    TypeError, ValueError
        If shapes do not fit, numbers are complex or not finite, arrays lie on different engines.

    Notes
    -----
    As `tridiagonal.solve`; rows are exchanged within and between blocks.  The CPU computes in
    double precision for any type of the arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import matchwood
    >>> d = np.tile([[0.0, 1.0], [1.0, 0.0]], (3, 1, 1))
    >>> off = np.tile(np.eye(2), (3, 1, 1))
    >>> x = matchwood.block_tridiagonal.solve(off, d, off, [[2, 2], [3, 3], [2, 2]])
    >>> np.allclose(x, 1)
    True
    """
    made = system("block_tridiagonal.solve", __name__, dl, d, du, block=True)
    return made.solve(b, allow_singular=allow_singular, engine=engine, threads=threads)


def factorize(
    dl: Any, d: Any, du: Any, *, allow_singular: bool = False, threads: int | None = None
) -> Factorization:
    """Prepare a block tridiagonal matrix for many solves, with it or its transpose.

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
    >>> import numpy as np
    >>> import matchwood
    >>> d, off = np.tile(3 * np.eye(2), (4, 1, 1)), np.zeros((4, 2, 2))
    >>> matchwood.block_tridiagonal.factorize(off, d, off).solve(np.full((4, 2), 6.0))[0].tolist()
    [2.0, 2.0]
    """
    made = system("block_tridiagonal.factorize", __name__, dl, d, du, block=True, copy=True)
    return Factorization(made, allow_singular, threads)
