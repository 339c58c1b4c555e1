"""Jacobi: the inverse of the diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.preconditioners.operator import (
    Core,
    Known,
    Scaled,
    SetupClock,
    matrix_on,
    operator,
)


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
