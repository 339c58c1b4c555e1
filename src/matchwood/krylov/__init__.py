"""Iterative solution of linear systems: SciPy's and CuPy's Krylov solvers, with a history.

Read on in problem.py, choosing.py, history.py, check.py and norm.py.  The engines are the solvers
of SciPy and CuPy; there is no reference engine.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import time
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments
from matchwood.errors import EngineUnavailable
from matchwood.krylov.choosing import PRECONDITIONERS as PRECONDITIONERS
from matchwood.krylov.choosing import candidates
from matchwood.krylov.columns import solve_columns
from matchwood.krylov.history import Recorder, Solution
from matchwood.krylov.problem import Problem, problem

__all__ = ["Solution", "solve"]

METHODS = ("auto", "bicgstab", "cg", "gmres", "minres")
AUTO = "bicgstab"  # needs no symmetry, and little memory

# Default tolerances, relative to |b|: well above the rounding error of the type.
RTOL = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-8}
MINRES_MARGIN = 0.1  # MINRES measures its residual in units of |A| |x|, which may be more than |b|
MOST_STARTS = 10  # starts of a method; it is restarted where it stopped too early


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
        the call, and `x` comes back; `Solution.preconditioner` stays there.
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
        return solve_columns(solve, A, b, x0, true_solution, options)
    atol = arguments.real(caller, "atol", atol, 0.0)
    maxiter = arguments.count(caller, "maxiter", maxiter)
    history = arguments.flag(caller, "history", history)
    asked = problem(A, b, x0, true_solution, caller, engine, threads)
    rtol = RTOL[asked.matrix.dtype] if rtol is None else arguments.real(caller, "rtol", rtol, 0.0)
    atol = float(np.ldexp(atol, -asked.right_shift))
    run = _Run(asked, Limits(method, rtol, atol, maxiter, restart), history)
    tried: list[tuple[str, str]] = []
    best: Solution | None = None
    automatic = isinstance(preconditioner, str) and preconditioner == "auto"
    for name, make in candidates(asked.G, preconditioner, method, threads):
        begin = time.perf_counter()
        try:
            operator = make()
        except ValueError as error:  # LinAlgError is one
            if not automatic:
                raise
            tried.append((name, str(error)))
            continue
        found = run(operator, time.perf_counter() - begin)
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


class Limits(NamedTuple):
    """A method, and when it stops."""

    method: str
    rtol: float
    atol: float
    maxiter: int
    restart: int | None


class _Run:
    """One method on one problem, with one preconditioner after another."""

    def __init__(self, asked: Problem, limits: Limits, history: bool) -> None:
        self._asked, self._limits, self._history = asked, limits, history
        method = limits.method
        place = "cupyx.scipy" if asked.G.engine == "gpu" else "scipy"
        self._solve: Any = getattr(importlib.import_module(f"{place}.sparse.linalg"), method, None)
        if self._solve is None:
            raise EngineUnavailable(f"solve: this version of CuPy has no {method}")

    def __call__(self, operator: Any, set_up: float) -> Solution:
        asked = self._asked
        recorder = Recorder(asked.matrix, asked.right, asked.start, asked.true, self._history)
        limits = self._limits
        allowed = max(limits.rtol * recorder.size, limits.atol)
        options: dict[str, Any] = {"M": operator, "rtol": limits.rtol, "atol": limits.atol}
        if limits.method == "gmres":
            options |= {"callback": recorder.estimate, "callback_type": "pr_norm"}
            options |= {"restart": limits.restart}
        else:
            options["callback"] = recorder.step
        if limits.method == "minres":  # knows one limit only, CuPy's by another name
            del options["atol"]
            named = "rtol" if "rtol" in inspect.signature(self._solve).parameters else "tol"
            options[named] = allowed / (recorder.size or 1.0) * MINRES_MARGIN
            if named != "rtol":
                del options["rtol"]
        begin = time.perf_counter()
        x, info = (0 * asked.right if asked.start is None else asked.start), 0
        residual: float | None = None
        before = np.inf
        for _ in range(MOST_STARTS if asked.G.n else 0):
            rounds = limits.maxiter - recorder.rounds
            if rounds <= 0:  # with maxiter=0 SciPy's methods fail, or say that they converged
                break
            with np.errstate(all="ignore"):  # a breakdown shows in the residual
                x, info = self._solve(asked.matrix, asked.right, x0=x, maxiter=rounds, **options)
            recorder.rounds_of(limits.method)
            residual = recorder.residual(x)
            left = residual * recorder.size
            if info != 0 or left <= allowed or not left < 0.5 * before:
                break
            before = left
        if residual is None:  # no method was started
            residual = recorder.residual(x)
        seconds = {"setup": set_up, "iterations": time.perf_counter() - begin}
        return recorder.solution(x, int(info), residual, allowed, operator, seconds)

    def failed(self, found: Solution) -> bool:
        """Did it break down, or end with no smaller residual than it began with?"""
        first, last = found.residuals[0], found.residuals[-1]
        return found.info < 0 or not last < first

    def reason(self, found: Solution) -> str:
        """Why a solution did not converge."""
        if found.info < 0:
            return f"the method broke down at iteration {found.iterations}"
        if self.failed(found):
            return f"no nearer to the solution after {found.iterations} iterations"
        return f"not converged after {found.iterations} iterations"
