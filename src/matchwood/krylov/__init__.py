"""Iterative solution of linear systems: SciPy's and CuPy's Krylov solvers, with a history.

Read on in system.py (the gate, the preconditioners, a run of a method), result.py and check.py.
The engines are the solvers of SciPy and CuPy; there is no reference engine.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.gate import graph as csr
from matchwood.krylov.result import Solution
from matchwood.krylov.system import PRECONDITIONERS as PRECONDITIONERS
from matchwood.krylov.system import Limits, Run, candidates, problem
from matchwood.stopwatch import Stopwatch

__all__ = ["Solution", "solve"]

METHODS = ("auto", "bicgstab", "cg", "gmres", "minres")
AUTO = "bicgstab"  # needs no symmetry, and little memory

# Default tolerances, relative to |b|: well above the rounding error of the type.
RTOL = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-8}


def solve(
    A: Any,
    b: Any,
    *,
    preconditioner: Any = "auto",
    method: str = "auto",
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int = 1000,
    restart: int | None = None,
    x0: Any = None,
    true_solution: Any = None,
    history: bool = True,
    engine: str | None = None,
    threads: int | None = None,
) -> Solution:
    """Solve a sparse linear system with a preconditioned Krylov method.

    The methods are those of `scipy.sparse.linalg`, or of `cupyx.scipy.sparse.linalg` on a GPU.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        float32 or float64; integers are taken as float64.
    b : (n,) or (n, k) array, where `A` lies
        The wider type of `A` and `b` is that of the calculation and of `x`.  Columns are solved one
        after the other, with one preconditioner.
    preconditioner : str, LinearOperator, sparse matrix or None
        ``"jacobi"``, ``"tridiagonal"``, ``"algebraic_tridiagonal"``,
        ``"algebraic_block_tridiagonal"``, or an operator.  ``"auto"`` takes the tridiagonal
        part in the order as given, or that of a linear forest if it contains more weight.  Where
        that is singular, or the method breaks down or diverges with it, Jacobi is tried, and then
        no preconditioner.  None and ``"none"``: no preconditioner.
    method : {"auto", "bicgstab", "cg", "gmres", "minres"}
        ``"auto"`` is ``"bicgstab"``: it needs no symmetry, and its memory does not grow with the
        iterations.  ``"cg"`` needs a symmetric positive definite matrix and preconditioner.  The
        preconditioners that are named here are made positive definite for it, where the matrix is
        symmetric.  ``"minres"`` needs a symmetric matrix, definite or not, and a preconditioner
        that is positive definite; where none of them is, it goes without.
    rtol, atol : float
        Stop when ``|b - A x| <= max(rtol |b|, atol)``.  An `rtol` of None is 1e-8 in float64 and
        1e-5 in float32.
    maxiter : int
        Most iterations (of GMRES: restarts), for each preconditioner that is tried.
    restart : int or None
        Of GMRES: iterations between restarts; None is 20.  It keeps this number of vectors.
    x0 : array of the shape of `b`, or None
        The starting vector; None is zero.
    true_solution : array of the shape of `b`, or None
        When given, the history also has the forward relative error.
    history : bool
        Record the residual after every iteration, which costs one more product with `A` each.
    engine : {None, "cpu", "gpu"}
        None takes the engine where `A` lives.  With another, matrix and vectors are moved there for
        the call, and `x` is moved back; `Solution.preconditioner` stays there.
    threads : int or None
        CPU threads of the preconditioner; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Solution
        Unpacks as SciPy's answer, ``x, info``; also `converged`, `iterations`, `residuals`,
        `errors`, `preconditioner`, `tried` and `seconds`; of several columns also `columns`.

    Raises
    ------
    TypeError, ValueError
        If `A` is not square or complex, a number is not finite, shapes do not fit, or a name is
        unknown.
    numpy.linalg.LinAlgError, ValueError
        If the preconditioner asked for by name cannot be made.
    EngineUnavailable
        If `engine` is "gpu" and there is none, or "reference".
    OverflowError
        If the solution is beyond the range of its type, or so small that it would be zero.

    Notes
    -----
    A method updates its residual from step to step, and this value may become smaller than the
    true residual.  Where the method stops too early, it is started again from the vector reached.
    `converged` is decided by the residual of `x` itself, in float64.

    Very large and very small numbers are multiplied by powers of two inside.

    An iteration of BiCGStab has two products with `A` and two with the preconditioner; one of CG,
    MINRES or GMRES has one each.  For GMRES the history has the residual of the preconditioned
    system, as the method estimates it at every step.  CuPy's GMRES gives it at restarts only, which
    then count as iterations.

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
    arguments.one_of(caller, "method", method, METHODS)
    method = AUTO if method == "auto" else method
    if restart is not None:
        restart = arguments.count(caller, "restart", restart, 1)
        if method != "gmres":
            raise ValueError(f"{caller}: restart is for method 'gmres', got {method!r}")
    if getattr(b, "ndim", 1) == 2 or (isinstance(b, (list, tuple)) and np.ndim(b) == 2):
        options: dict[str, Any] = {
            "preconditioner": preconditioner, "method": method, "rtol": rtol, "atol": atol,
            "maxiter": maxiter, "restart": restart, "history": history, "engine": engine,
            "threads": threads,
        }  # fmt: skip
        return _solve_columns(A, b, x0, true_solution, options)
    atol = arguments.real(caller, "atol", atol, 0.0)
    maxiter = arguments.count(caller, "maxiter", maxiter)
    history = arguments.flag(caller, "history", history)
    asked = problem(A, b, x0, true_solution, caller, engine, threads)
    rtol = RTOL[asked.matrix.dtype] if rtol is None else arguments.real(caller, "rtol", rtol, 0.0)
    atol = float(np.ldexp(atol, -asked.right_shift))
    run = Run(asked, Limits(method, rtol, atol, maxiter, restart), history)
    tried: list[tuple[str, str]] = []
    best: Solution | None = None
    automatic = isinstance(preconditioner, str) and preconditioner == "auto"
    for name, make in candidates(asked.G, preconditioner, method, threads):
        watch = Stopwatch()
        try:
            operator = make()
        except ValueError as error:  # LinAlgError is one
            if not automatic:
                raise
            tried.append((name, str(error)))
            continue
        watch.lap("setup")
        found = run(operator, watch)
        if automatic and operator is not None and "," not in name:
            name = operator.name
        tried.append((name, "used" if found.converged else run.reason(found)))
        if best is None or _better(found, best):
            best = found
            used = len(tried) - 1
        if found.converged or not run.failed(found):
            break
    assert best is not None
    if len(tried) > 1 or not best.converged:
        name, said = tried[used]
        tried[used] = (name, "used" if said == "used" else f"used; {said}")
    return dataclasses.replace(best, x=asked.unscaled(best.x), tried=tuple(tried))


def _better(one: Solution, other: Solution) -> bool:
    """Whether `one` has the smaller residual; NaN counts as the largest."""
    return bool(one.residuals[-1] < other.residuals[-1] or np.isnan(other.residuals[-1]))


def _solve_columns(
    A: Any, b: Any, x0: Any, true_solution: Any, options: dict[str, Any]
) -> Solution:
    """`solve` for (n, k) right-hand sides: one after the other, with one preconditioner."""
    caller = "solve"
    G = csr.as_graph(A, caller)
    given = {"b": b, "x0": x0, "true_solution": true_solution}
    for name, array in given.items():
        if array is None:
            continue
        if engines.location(array) == "cpu":
            array = given[name] = arguments.plain(caller, name, array)
        if array.ndim != 2 or array.shape != (G.n, given["b"].shape[1]):
            wanted = f"({G.n}, {given['b'].shape[1]})" if name != "b" else f"({G.n}, k)"
            raise ValueError(f"{caller}: {name} must have shape {wanted}, got {array.shape}")
    if given["b"].shape[1] == 0:
        seconds = {"setup": 0.0, "iterations": 0.0}
        return Solution(given["b"].copy(), 0, True, 0, np.zeros(1), None, None, seconds)
    preconditioner = options["preconditioner"]
    found: list[Solution] = []
    for j in range(given["b"].shape[1]):
        b_j, x_j, true_j = (
            None if array is None else engines.xp(array).ascontiguousarray(array[:, j])
            for array in given.values()
        )
        answer = solve(G, b_j, x0=x_j, true_solution=true_j, **options)
        found.append(answer)
        if isinstance(preconditioner, str) and answer.converged:
            made = answer.preconditioner
            options = {**options, "preconditioner": "none" if made is None else made}
    return _together(found)


def _together(found: list[Solution]) -> Solution:
    """One Solution: the histories are those of the column that ended with the largest residual."""
    worst = max(found, key=lambda one: (np.isnan(one.residuals[-1]), one.residuals[-1]))
    names = found[0].seconds
    return dataclasses.replace(
        worst,
        x=engines.xp(worst.x).stack([one.x for one in found], axis=1),
        info=next((one.info for one in found if one.info != 0), 0),
        converged=all(one.converged for one in found),
        preconditioner=found[0].preconditioner,
        seconds={name: sum(one.seconds[name] for one in found) for name in names},
        tried=found[0].tried,
        columns=tuple(found),
    )
