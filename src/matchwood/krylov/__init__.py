"""Iterative solution of linear systems: SciPy's and CuPy's Krylov solvers, with a history.

Read on in history.py.
"""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np

from matchwood import csr, engines
from matchwood import preconditioners as ready
from matchwood.errors import EngineUnavailable
from matchwood.factors import coverage_of_order
from matchwood.krylov.history import Recorder, Solution

__all__ = ["Solution", "solve"]

METHODS = ("bicgstab", "cg", "gmres")
PRECONDITIONERS = {
    "jacobi": ready.jacobi,
    "tridiagonal": ready.tridiagonal,
    "algebraic_tridiagonal": ready.algebraic_tridiagonal,
    "algebraic_block_tridiagonal": ready.algebraic_block_tridiagonal,
}


def solve(
    A: Any,
    b: Any,
    *,
    preconditioner: Any = "auto",
    method: str = "bicgstab",
    rtol: float = 1e-8,
    atol: float = 0.0,
    maxiter: int = 1000,
    x0: Any = None,
    true_solution: Any = None,
    history: bool = True,
) -> Solution:
    """Solve a sparse linear system with a preconditioned Krylov method.

    The methods are those of `scipy.sparse.linalg`, or of `cupyx.scipy.sparse.linalg` where `A` lies
    on a GPU.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        float32 or float64; integers are taken as float64.
    b : (n,) array, where `A` lies
    preconditioner : str, LinearOperator, sparse matrix or None
        ``"jacobi"``, ``"tridiagonal"``, ``"algebraic_tridiagonal"``,
        ``"algebraic_block_tridiagonal"``, or one made already.  ``"auto"`` takes the tridiagonal
        part in the order as given, or that of a linear forest if it contains more weight.
        None and ``"none"``: without.
    method : {"bicgstab", "cg", "gmres"}
        ``"cg"`` needs a symmetric positive definite matrix and preconditioner.
    rtol, atol : float
        Stop when ``|b - A x| <= max(rtol |b|, atol)``.
    maxiter : int
        Iterations at most (of GMRES: restarts).
    x0 : (n,) array or None
        Where to start; None is zero.
    true_solution : (n,) array or None
        When given, the history also has the forward relative error.
    history : bool
        Record the residual after every iteration, at the price of one more product with `A`.

    Returns
    -------
    Solution
        Unpacks as SciPy's answer, ``x, info``; also `converged`, `iterations`, `residuals`,
        `errors`, `preconditioner` and `seconds`.

    Raises
    ------
    TypeError, ValueError
        If `A` is not square or complex, shapes do not fit, or a name is unknown.

    Notes
    -----
    An iteration of BiCGStab has two products with `A` and two with the preconditioner, one of CG
    and GMRES one each.  Of GMRES the history has the residual of the preconditioned system, as the
    method estimates it at every step; CuPy's tells it at restarts only, which then count as
    iterations.

    Examples
    --------
    >>> import numpy as np
    >>> import matchwood
    >>> A = matchwood.generators.aniso(2, (40, 40))
    >>> b = A @ np.ones(1600)
    >>> found = matchwood.solve(A, b, true_solution=np.ones(1600))
    >>> found.converged, bool(found.residuals[-1] < 1e-8), bool(found.errors[-1] < 1e-5)
    (True, True, True)
    >>> plain = matchwood.solve(A, b, preconditioner="jacobi")
    >>> found.iterations < plain.iterations
    True
    """
    caller = "solve"
    if method not in METHODS:
        expected = ", ".join(repr(name) for name in METHODS)
        raise ValueError(f"{caller}: method must be one of {expected}, got {method!r}")
    G = csr.as_graph(A, caller)
    matrix = ready._sparse(G)
    n, kind = G.n, matrix.dtype
    right = _vector(b, "b", n, G.engine, kind)
    start = None if x0 is None else _vector(x0, "x0", n, G.engine, kind)
    true = None if true_solution is None else _vector(
        true_solution, "true_solution", n, G.engine, kind
    )  # fmt: skip
    begin = time.perf_counter()
    operator = _preconditioner(G, preconditioner)
    set_up = time.perf_counter() - begin
    recorder = Recorder(matrix, right, start, true, enabled=history)
    options: dict[str, Any] = {"rtol": rtol, "atol": atol, "maxiter": maxiter, "M": operator}
    if method == "gmres":
        options |= {"callback": recorder.estimate, "callback_type": "pr_norm"}
    else:
        options["callback"] = recorder.step
    place = "cupyx.scipy.sparse.linalg" if G.engine == "gpu" else "scipy.sparse.linalg"
    run = getattr(importlib.import_module(place), method, None)
    if run is None:
        raise EngineUnavailable(f"{caller}: this version of CuPy has no {method}")
    begin = time.perf_counter()
    x, info = run(matrix, right, x0=start, **options)
    taken = time.perf_counter() - begin
    return recorder.solution(x, int(info), max(rtol * recorder.size, atol), operator, set_up, taken)


def _vector(array: Any, name: str, n: int, where: str, kind: Any) -> Any:
    """A real vector of n numbers on the engine of the matrix."""
    if engines.location(array) == "cpu":
        array = np.asarray(array)
    if engines.location(array) != where:
        raise TypeError(f"solve: {name} must lie where A does, on the {where.upper()}")
    if array.shape != (n,):
        raise ValueError(f"solve: {name} must have shape ({n},), got {array.shape}")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"solve: {name} must be real, got {array.dtype}")
    return array.astype(kind, copy=False)


def _preconditioner(G: Any, given: Any) -> Any:
    if given is None or (isinstance(given, str) and given == "none"):
        return None
    if not isinstance(given, str):
        shape = getattr(given, "shape", None)
        if shape != (G.n, G.n):
            raise ValueError(f"solve: preconditioner must have shape {(G.n, G.n)}, got {shape}")
        return given
    if given == "auto":
        chosen = ready.algebraic_tridiagonal(G, allow_singular=True)
        if coverage_of_order(G) > chosen.coverage:
            return ready.tridiagonal(G, allow_singular=True)
        return chosen
    if given not in PRECONDITIONERS:
        expected = ", ".join(repr(name) for name in ("auto", "none", *PRECONDITIONERS))
        raise ValueError(f"solve: preconditioner must be one of {expected}, got {given!r}")
    return PRECONDITIONERS[given](G)
