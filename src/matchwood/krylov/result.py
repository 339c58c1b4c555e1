"""What `solve` returns, and how it is recorded: residuals and errors by iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from matchwood.krylov.check import check_solution, norm


@dataclass(frozen=True, eq=False)
class Solution:
    """What `solve` returns.  Unpacks as SciPy's answer: ``x, info``.

    Attributes
    ----------
    x : (n,) or (n, k) array, as the right-hand side
    info : int
        0 when it converged, else what SciPy's or CuPy's `info` says: the number of iterations, or
        below 0 that the method broke down.
    converged : bool
        Whether ``|b - A x| <= max(rtol |b|, atol)``, computed from `x` in float64.
    iterations : int
    residuals : (iterations + 1,) array
        ``|b - A x| / |b|`` at the start and after each iteration; without a history only the first
        and the last.  The last one is that of `x`, computed in float64.
    errors : array or None
        ``|x - true| / |true|``, likewise; for GMRES only the first and the last.
    preconditioner : LinearOperator or None
    seconds : dict
        ``setup`` of the preconditioner and ``iterations``.
    tried : tuple of (str, str)
        The preconditioners that were tried, by name, and the result of each: ``"used"``, or why it
        was given up.
    method : str
        The Krylov method that was taken.
    columns : tuple of Solution
        One for each column of a right-hand side of shape (n, k), otherwise empty.  The other
        attributes are then those of all columns, but `iterations`, `residuals` and `errors`, which
        are of the column that ended with the largest residual.
    """

    x: Any = field(repr=False)
    info: int
    converged: bool
    iterations: int
    residuals: Any = field(repr=False)
    errors: Any = field(repr=False)
    preconditioner: Any = field(repr=False)
    seconds: dict[str, float] = field(repr=False)
    tried: tuple[tuple[str, str], ...] = ()
    method: str = ""
    columns: tuple[Solution, ...] = field(default=(), repr=False)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.x, self.info))

    def check(self, A: Any, b: Any, *, rtol: float = 1e-8, atol: float = 0.0) -> None:
        """Raise `CheckFailed` unless ``|b - A x| <= max(rtol |b|, atol)``, computed again."""
        check_solution(A, b, self, rtol=rtol, atol=atol)


class Recorder:
    """Callbacks for the methods; makes the Solution from what they recorded."""

    def __init__(self, matrix: Any, b: Any, x0: Any, true: Any, enabled: bool) -> None:
        self._matrix, self._b, self._true, self._enabled = matrix, b, true, enabled
        self._exact: Any = None
        self.size = norm(b)
        # Where x is zero the residual is b itself, and needs no product.
        self._residuals = [float(self.size > 0) if x0 is None else self._residual(x0)]
        self._errors = [np.nan if true is None else self._error(0 * b if x0 is None else x0)]
        self._steps = 0
        self._last: Any = None
        self.rounds = 0  # iterations, as `maxiter` counts them

    def rounds_of(self, method: str) -> None:
        """Count the iterations of one start of a method; GMRES has no count, and adds one."""
        self.rounds = self.rounds + 1 if method.endswith("gmres") else self._steps

    def _residual(self, x: Any) -> float:
        return norm(self._b - self._matrix @ x) / (self.size or 1.0)

    def residual(self, x: Any) -> float:
        """``|b - A x| / |b|`` in float64, for any type of the matrix."""
        if self._matrix.dtype == np.float64:
            return self._residual(x)
        if self._exact is None:
            self._exact = self._matrix.astype(np.float64)
        wide = self._b.astype(np.float64) - self._exact @ x.astype(np.float64)
        return norm(wide) / (self.size or 1.0)

    def _error(self, x: Any) -> float:
        if self._true is None:
            return np.nan
        return norm(x - self._true) / (norm(self._true) or 1.0)

    def step(self, x: Any) -> None:
        """Called by CG, MINRES and BiCGStab after each iteration."""
        self._steps += 1
        if self._enabled:
            self._residuals.append(self._residual(x))
            self._errors.append(self._error(x))
            if self._last is None:
                self._last = x.copy()
            self._last[...] = x

    def estimate(self, norm: Any) -> None:
        """Called by GMRES after each step, with the residual of the preconditioned system."""
        self._steps += 1
        if self._enabled:
            self._residuals.append(float(norm))

    def solution(
        self, x: Any, info: int, residual: float, allowed: float, preconditioner: Any,
        seconds: dict[str, float],
    ) -> Solution:  # fmt: skip
        """The Solution, given the residual of `x` in float64.

        BiCGStab may stop in the middle of an iteration, without a callback; this counts as one.
        """
        residuals, errors, steps = self._residuals, self._errors, self._steps
        if self._last is None:  # GMRES, or no history
            if self._enabled and len(residuals) > 1:
                residuals[-1] = residual
            else:
                residuals.append(residual)
            errors.append(self._error(x))
        elif bool((self._last == x).all()):
            residuals[-1] = residual
        else:
            steps += 1
            residuals.append(residual)
            errors.append(self._error(x))
        converged = bool(np.isfinite(residual) and residual * (self.size or 1.0) <= allowed)
        if converged:
            info = 0
        elif info == 0:  # the method reports convergence, or was allowed no iteration
            info = max(steps, 1)
        return Solution(
            x=x,
            info=info,
            converged=converged,
            iterations=steps,
            residuals=np.array(residuals),
            errors=None if self._true is None else np.array(errors),
            preconditioner=preconditioner,
            seconds=seconds,
        )
