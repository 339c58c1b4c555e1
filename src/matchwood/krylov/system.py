"""One linear system: its gate, the preconditioners to try, and a run of a Krylov method.

A system is checked, converted to one type, and scaled where its numbers are extreme (`problem`).

Of the preconditioners, `auto` begins with the one that contains most weight.  It goes on to the
next one if a preconditioner cannot be made, if the method breaks down with it, or if the method
ends with no smaller residual than it began with (`candidates`).
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from matchwood import calls, engines
from matchwood import preconditioners as ready
from matchwood.arguments import one_of, plain
from matchwood.errors import EngineUnavailable
from matchwood.factors import coverage_of_order
from matchwood.gate import graph as csr
from matchwood.gate.views import sparse_matrix
from matchwood.krylov import cpu, flexible
from matchwood.krylov.result import Recorder, Solution
from matchwood.stopwatch import Stopwatch

# Exponents e: for numbers between 2^-e and 2^e, squares and products of a few do not overflow.
SAFE_EXPONENT = {np.dtype(np.float32): 30, np.dtype(np.float64): 250}

PRECONDITIONERS = {
    "jacobi": ready.jacobi,
    "tridiagonal": ready.tridiagonal,
    "algebraic_tridiagonal": ready.algebraic_tridiagonal,
    "algebraic_block_tridiagonal": ready.algebraic_block_tridiagonal,
    "multilevel": ready.multilevel,
}

SYMMETRIC = ("cg", "minres")  # methods for symmetric matrices, and definite preconditioners
LINEAR = (*SYMMETRIC, "gmres")  # methods for preconditioners that are linear operators

# Rows from which "auto" takes the multilevel preconditioner for symmetric matrices.  Its CPU time
# was 0.5 to 1.0 of that of the best tridiagonal one, with CG or BiCGStab, on bcsstk08 to bcsstk21,
# and 0.1 to 0.3 on diffusion problems of 90,000 rows (docs/problems/solving.rst).
MULTILEVEL_ROWS = 1000
# It gains nothing where every diagonal entry is 1 / DOMINATED times the sum of the others of its
# row, since CG needs 30 iterations then, nor where more than half of the weight off the diagonal is
# positive: errors that a smoother leaves are not constant on groups there.  A mesh of 27 points
# with random weights and 30 on the diagonal took 14 times as long.
DOMINATED = 0.8
MOST_POSITIVE = 0.5
NARROW = 1e-20  # smallest over largest diagonal entry from which "auto" takes float32 inside
Make = Callable[[], Any]

RESTART = 20  # steps of GMRES between two restarts, as in SciPy
MINRES_MARGIN = 0.1  # MINRES measures its residual in units of |A| |x|, which may be more than |b|
MOST_STARTS = 10  # starts of a method; it is restarted where it stopped too early


# The system


@dataclass(frozen=True)
class Problem:
    """``A x = b``; matrix and right-hand side are multiplied by powers of two where needed.

    That does not change the digits of the solution, only its exponent, by `shift`.
    """

    G: Any
    matrix: Any
    right: Any
    start: Any
    true: Any
    shift: int
    right_shift: int
    place: str  # where the solution goes: where the matrix was given


def problem(
    A: Any, b: Any, x0: Any, true_solution: Any, caller: str, engine: str | None = None,
    threads: int | None = None,
) -> Problem:  # fmt: skip
    """The gate of `solve`.  The type is the wider one of `A` and `b`."""
    call = calls.enter(A, caller, engine, threads)
    if call.engine == "reference":
        raise EngineUnavailable(f"{caller} has no 'reference' engine")
    G, place = call.graph, call.given.engine
    view = G.directed_weights(caller)
    data = view.data
    size = largest(data)
    if not np.isfinite(size):  # also where one is NaN
        G.undirected_weights(caller)  # names the entry
    right = call.here(_vector(b, "b", G.n, place))
    kind = np.result_type(data.dtype, right.dtype)
    kind = np.dtype(np.float32) if kind == np.float32 else np.dtype(np.float64)
    start, true = (
        None
        if array is None
        else call.here(_vector(array, name, G.n, place)).astype(kind, copy=False)
        for array, name in ((x0, "x0"), (true_solution, "true_solution"))
    )
    right = right.astype(kind, copy=False)
    power, right_power = int(exponent(size, kind)), int(exponent(largest(right), kind))
    if power or data.dtype != kind:
        wide = data.astype(kind, copy=False)
        G = csr.as_graph((view.indptr, view.indices, scaled(wide, -power)), caller)
    shift = right_power - power
    start, true = (None if array is None else scaled(array, -shift) for array in (start, true))
    right = scaled(right, -right_power)
    if not bool(right.any()):  # then x is 0, as for SciPy
        start = None
    return Problem(G, G.sparse_weights(), right, start, true, shift, right_power, place)


def unscaled(caller: str, x: Any, power: Any, place: str) -> Any:
    """The solution of the system that was given, times 2^power for each column, where it was."""
    answer = scaled(x, power)
    if answer is not x:
        tiny = np.finfo(x.dtype).tiny
        largest, there = (abs(array).max(axis=0) for array in (x, answer))
        lost = ~((there >= tiny) & (there < np.inf)) & (largest > 0) & (largest < np.inf)
        if bool(lost.any()):
            raise OverflowError(f"{caller}: the solution is beyond the range of {x.dtype}")
    return engines.moved(answer, place)


def scaled(array: Any, power: Any) -> Any:
    """The array, or its columns, times 2^power; itself where there is nothing to do."""
    if not np.any(power):
        return array
    xp = engines.xp(array)
    with np.errstate(over="ignore", under="ignore"):
        return xp.ldexp(array, power if isinstance(power, int) else xp.asarray(power))


def largest(array: Any) -> Any:
    """The largest absolute value of each column; NaN where there is one."""
    return engines.moved(abs(array).max(axis=0), "cpu") if len(array) else np.zeros(array.shape[1:])


def exponent(largest: Any, kind: Any) -> Any:
    """The exponents of the numbers that are outside SAFE_EXPONENT, 0 for others."""
    power = np.frexp(largest)[1]
    return np.where(abs(power) > SAFE_EXPONENT[np.dtype(kind)], power, 0)


def _vector(array: Any, name: str, n: int, where: str) -> Any:
    """A vector of n finite real numbers on the engine of the matrix."""
    if engines.location(array) == "cpu":
        array = plain("solve", name, array)
    if engines.location(array) != where:
        raise TypeError(f"solve: {name} must lie where A does, on the {where.upper()}")
    if array.shape != (n,):
        raise ValueError(f"solve: {name} must have shape ({n},), got {array.shape}")
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise TypeError(f"solve: {name} must be real, float64 at most, got {array.dtype}")
    if array.dtype.kind == "f":
        good = engines.xp(array).isfinite(array)
        if not bool(good.all()):
            at = int(good.argmin())
            raise ValueError(f"solve: {name} must be finite, got {float(array[at])} at {at}")
    return array


# Its preconditioners


def candidates(
    G: Any, given: Any, method: str, threads: int | None = None, near: dict[str, Any] | None = None
) -> Iterator[tuple[str, Make]]:
    """Names, and functions that make the preconditioners, in the order in which to try them.

    `near` are options of the multilevel one, the only one where there are candidates.
    """
    near = near or {}
    if near.get("near_nullspace") is not None:
        precision = _precision(G) if given == "auto" and method == "auto" else None
        options: dict[str, Any] = {"precision": precision, "threads": threads, **near}
        cycle = "V" if method in LINEAR else "auto"
        yield "multilevel", lambda: _with_candidates(G, cycle, options)
    elif near.get("blocksize") is not None:
        raise ValueError("solve: blocksize needs near_nullspace")
    elif given is None or (isinstance(given, str) and given == "none"):
        yield "none", lambda: None
    elif not isinstance(given, str):
        made = _own(given, method)
        yield getattr(given, "name", type(given).__name__), lambda: made
    elif given == "auto":
        yield from _in_turn(G, method, threads)
    else:
        yield given, lambda: _made(G, given, method, threads)


def _with_candidates(G: Any, cycle: str, options: dict[str, Any]) -> Any:
    try:
        return ready.multilevel(G, cycle=cycle, **options)
    except (TypeError, ValueError) as error:  # candidates are an argument of ours
        raise type(error)(str(error).replace("multilevel:", "solve:", 1)) from error


def expect_preconditioner(caller: str, given: Any, n: int) -> None:
    """A name that there is, None, or an operator of n rows."""
    if isinstance(given, str):
        one_of(caller, "preconditioner", given, ("auto", "none", *PRECONDITIONERS))
    elif given is not None:
        shape = getattr(given, "shape", None)
        if shape != (n, n):
            raise ValueError(f"{caller}: preconditioner must have shape {(n, n)}, got {shape}")


def _own(given: Any, method: str) -> Any:
    """The user's preconditioner, if it fits the method."""
    if method in SYMMETRIC and getattr(given, "definite", None) is False:
        raise ValueError(
            f"solve: preconditioner must be positive definite for {method!r}, and this "
            f"{given.name} is not; make it with definite=True"
        )
    if method in LINEAR and getattr(given, "cycle", None) == "K":
        raise ValueError(
            f"solve: preconditioner must be linear for {method!r}, and a K-cycle is not; make it "
            "with cycle='V', or take a flexible method"
        )
    return given


def fitting(G: Any, preconditioner: Any) -> str:
    """The method that "auto" is for a preconditioner: flexible CG for cycles, else BiCGStab."""
    name = getattr(preconditioner, "name", preconditioner)
    if isinstance(name, str) and name == "multilevel":
        return "fcg" if G.has_symmetric_values else "fbicgstab"
    return "bicgstab"


def _suits_multilevel(G: Any) -> bool:
    """Symmetric, not small, the diagonal positive and not dominant, the others mostly negative."""
    if G.n < MULTILEVEL_ROWS or not G.has_symmetric_values:
        return False
    diagonal, view = G.diagonal(), G.directed_weights("solve")
    if not bool((diagonal > 0).all()):
        return False
    sizes = abs(view.data)
    if G.engine == "cpu":
        others = np.add.reduceat(sizes, view.indptr[:-1]) - diagonal  # no row is empty
    else:
        ones = engines.xp(sizes).ones(G.n, sizes.dtype)
        others = sparse_matrix(view.indptr, view.indices, sizes, G.shape) @ ones - diagonal
    weight = float(others.sum())
    positive = (weight + float(view.data.sum()) - float(diagonal.sum())) / 2
    return positive <= MOST_POSITIVE * weight and bool((others > DOMINATED * diagonal).any())


def _precision(G: Any) -> str | None:
    """float32 inside, where that holds the inverse of the diagonal and products of a few."""
    diagonal = G.diagonal()
    return "float32" if G.n and float(diagonal.min()) > NARROW * float(diagonal.max()) else None


def _in_turn(G: Any, method: str, threads: int | None) -> Iterator[tuple[str, Make]]:
    forest, singular = "algebraic_tridiagonal", False
    if method == "auto" and _suits_multilevel(G):
        yield "multilevel", lambda: ready.multilevel(G, precision=_precision(G), threads=threads)
    if method == "minres":
        yield forest, lambda: _made(G, forest, method, threads)
        yield "none", lambda: None
        return

    def first() -> Any:
        nonlocal singular
        try:
            made = _made(G, forest, method, threads)
        except np.linalg.LinAlgError:
            singular = True
            raise
        if coverage_of_order(G) > made.coverage:
            return _made(G, "tridiagonal", method, threads)
        return made

    yield forest, first
    yield "jacobi", lambda: ready.jacobi(G, threads=threads)
    if singular:
        options: dict[str, Any] = {"allow_singular": True, "threads": threads}
        yield f"{forest}, singular", lambda: ready.algebraic_tridiagonal(G, **options)
    yield "none", lambda: None


def _made(G: Any, name: str, method: str, threads: int | None) -> Any:
    """The preconditioner of that name; positive definite for CG if possible, for MINRES always."""
    make: Callable[..., Any] = PRECONDITIONERS[name]
    if name == "multilevel":
        return make(G, cycle="V" if method in LINEAR else "auto", threads=threads)
    if method == "minres":
        if name == "jacobi" and not bool((G.diagonal() > 0).all()):
            raise ValueError("solve: 'minres' needs a positive diagonal for 'jacobi'")
        return make(G, threads=threads, **({} if name == "jacobi" else {"definite": True}))
    if method == "cg" and name != "jacobi" and G.has_symmetric_values:
        try:
            return make(G, definite=True, threads=threads)
        except np.linalg.LinAlgError:
            raise
        except ValueError:  # the matrix is not positive definite itself
            return make(G, threads=threads)
    return make(G, threads=threads)


# A method


class Limits(NamedTuple):
    """A method, and when it stops."""

    method: str
    rtol: float
    atol: float
    maxiter: int
    restart: int | None


class Run:
    """One method on one problem, with one preconditioner after another."""

    def __init__(
        self, asked: Problem, limits: Limits, history: bool, threads: int | None
    ) -> None:  # fmt: skip
        self._asked, self._limits, self._history = asked, limits, history
        method = limits.method
        place = "cupyx.scipy" if asked.G.engine == "gpu" else "scipy"
        self._linalg = importlib.import_module(f"{place}.sparse.linalg")
        self._solve: Any = flexible.METHODS.get(method) or getattr(self._linalg, method, None)
        if method == "fcg" and asked.G.engine == "cpu":
            self._solve = functools.partial(cpu.fcg, threads=threads)
        elif method == "fcg":
            self._solve = functools.partial(flexible.noticed_fcg, late=not history)
        elif self._solve is None:
            raise EngineUnavailable(f"solve: this version of CuPy has no {method}")

    def __call__(self, operator: Any, watch: Stopwatch) -> Solution:
        asked = self._asked
        recorder = Recorder(asked.matrix, asked.right, asked.start, asked.true, self._history)
        limits = self._limits
        allowed = max(limits.rtol * recorder.size, limits.atol)
        M: Any = operator
        if M is not None and asked.shift != asked.right_shift:  # it may be for the given matrix
            apply = getattr(M, "__matmul__", None) or M.matvec
            power = -int(exponent(largest(apply(asked.right)), asked.right.dtype))
            M = self._linalg.LinearOperator(
                M.shape, lambda r: scaled(apply(r), power), dtype=asked.right.dtype
            )
        options: dict[str, Any] = {"M": M, "rtol": limits.rtol, "atol": limits.atol}
        if limits.method in ("gmres", "fgmres"):
            options |= {"callback": recorder.estimate, "restart": limits.restart or RESTART}
            if limits.method == "gmres":
                options["callback_type"] = "pr_norm"
        else:
            options["callback"] = recorder.step
        named = ""
        if limits.method == "minres":  # knows one limit only, CuPy's by another name
            del options["atol"]
            named = "rtol" if "rtol" in inspect.signature(self._solve).parameters else "tol"
            options[named] = allowed / (recorder.size or 1.0) * MINRES_MARGIN
            if named != "rtol":
                del options["rtol"]
        watch.go_on()
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
            left = residual * (recorder.size or 1.0)
            if info != 0 or left <= allowed or not left < 0.5 * before:
                break
            before = left
            if named:  # with the same limit it would stop at once
                options[named] *= MINRES_MARGIN
        if residual is None:  # no method was started
            residual = recorder.residual(x)
        watch.lap("iterations")
        return recorder.solution(x, int(info), residual, allowed, operator, watch.seconds)

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
