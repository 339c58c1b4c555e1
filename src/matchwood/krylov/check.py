"""Is this a solution?  Its residual decides, computed again in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, arguments, calls, engines
from matchwood.errors import CheckFailed

SMALLEST_SQUARE = 1e-280  # sums of squares between this and its inverse lost nothing


def check_solution(A: Any, b: Any, x: Any, *, rtol: float = 1e-8, atol: float = 0.0) -> None:
    """Raise `CheckFailed` unless ``|b - A x| <= max(rtol |b|, atol)``, computed again.

    Parameters
    ----------
    A, b : as given to `solve`
    x : Solution, or array of the shape of `b`
        Of a `Solution` also `info`, `converged`, the number of iterations against that of
        residuals, and the last residual are checked.  Earlier residuals cannot be checked: only the
        method had those vectors.
    rtol, atol : float
        As given to `solve`, where `rtol` is 1e-5 by default for float32.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from matchwood.krylov.check import check_solution
    >>> A = sp.csr_array([[2.0, 1.0], [0.0, 4.0]])
    >>> check_solution(A, [3.0, 4.0], [1.0, 1.0])
    >>> check_solution(A, [3.0, 4.0], [1.0, 2.0])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: solution: the residual is 4.12311, more than 5e-08
    """
    caller = "check_solution"
    rtol = arguments.real(caller, "rtol", rtol, 0.0)
    atol = arguments.real(caller, "atol", atol, 0.0)
    G = calls.enter(A, caller, "cpu").graph
    matrix = G.sparse_weights().astype(np.float64)
    given = arguments.plain(caller, "b", engines.moved(b, "cpu"))
    if given.ndim == 2 and given.shape[0] == G.n:
        _check_columns(G, given, x, rtol, atol, caller)
        return
    right = arguments.numbers(caller, "b", given).astype(np.float64)
    if right.shape != (G.n,):
        raise ValueError(f"{caller}: b must have shape ({G.n},), got {right.shape}")
    found = np.asarray(engines.moved(getattr(x, "x", x), "cpu"))
    if found.dtype.kind not in "iuf":
        raise TypeError(f"{caller}: x must hold real numbers, got {found.dtype}")
    found = found.astype(np.float64)
    if found.shape != (G.n,):
        raise CheckFailed(f"solution: x must have {G.n} elements, got shape {found.shape}")
    if not np.isfinite(found).all():
        raise CheckFailed(f"solution: x[{int((~np.isfinite(found)).argmax())}] is not finite")
    with np.errstate(over="ignore", invalid="ignore"):
        residual = norm(right - matrix @ found)
        size = norm(right)
    allowed = max(rtol * size, atol)
    if not residual <= allowed:
        raise CheckFailed(f"solution: the residual is {residual:g}, more than {allowed:g}")
    if hasattr(x, "residuals"):
        _check_record(x, residual, size, allowed, caller)


def _check_columns(G: Any, right: Any, x: Any, rtol: float, atol: float, caller: str) -> None:
    """Check column by column; the attributes of a `Solution` must be those of its columns."""
    found = np.asarray(engines.moved(getattr(x, "x", x), "cpu"))
    if found.shape != right.shape:
        raise CheckFailed(f"solution: x must have shape {right.shape}, got {found.shape}")
    for j in range(right.shape[1]):
        check_solution(G, right[:, j], found[:, j], rtol=rtol, atol=atol)
    if not hasattr(x, "columns"):
        return
    if x.info != 0 or not arguments.flag(caller, "converged", x.converged):
        raise CheckFailed(f"solution: x is one, but info is {x.info}, converged {x.converged}")
    if len(x.columns) != right.shape[1]:
        raise CheckFailed(f"solution: {right.shape[1]} columns, but {len(x.columns)} answers")
    for j, one in enumerate(x.columns):
        if not np.array_equal(engines.moved(one.x, "cpu"), found[:, j]):
            raise CheckFailed(f"solution: column {j} of x is not that of its own answer")
        check_solution(G, right[:, j], one, rtol=rtol, atol=atol)


def _check_record(found: Any, residual: float, size: float, allowed: float, caller: str) -> None:
    info = arguments.integer(caller, "info", found.info)
    iterations = arguments.integer(caller, "iterations", found.iterations)
    if info != 0 or not arguments.flag(caller, "converged", found.converged):
        raise CheckFailed(f"solution: x is one, but info is {info}, converged {found.converged}")
    history = np.asarray(found.residuals)
    if history.dtype.kind != "f":
        raise TypeError(f"{caller}: residuals must hold real numbers, got {history.dtype}")
    if iterations < 0 or history.shape not in ((iterations + 1,), (2,)):
        raise CheckFailed(
            f"solution: {iterations} iterations, but residuals of shape {history.shape}"
        )
    if (at := answers.first(~(np.isfinite(history) & (history >= 0)))) is not None:
        raise CheckFailed(f"solution: residual {at} of the history is {history[at]}")
    last = float(history[-1])
    if not np.isclose(last * (size or 1.0), residual, rtol=1e-3, atol=1e-3 * allowed):
        raise CheckFailed(
            f"solution: the residual is {residual:g}, but its history ends at {last:g} of |b|"
        )


def norm(x: Any) -> float:
    """The Euclidean norm, also where squares overflow or underflow."""
    wide = x.astype(np.float64, copy=False)
    with np.errstate(over="ignore", under="ignore"):
        square = float((wide**2).sum())
    if SMALLEST_SQUARE < square < 1 / SMALLEST_SQUARE or square != square:
        return square**0.5
    largest = float(abs(wide).max()) if wide.size else 0.0
    if largest == 0 or not np.isfinite(largest):
        return largest
    power = np.ldexp(1.0, min(-int(np.frexp(largest)[1]), 1000))  # exact
    return float((((wide * power) ** 2).sum()) ** 0.5) / float(power)
