"""What a Krylov method did: residuals and errors by iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Solution:
    """What `solve` returns.  Unpacks as SciPy's answer: ``x, info``.

    Attributes
    ----------
    x : (n,) array
    info : int
        0 when the method says that it converged, else what SciPy's or CuPy's `info` says.
    converged : bool
        Whether the residual of `x`, calculated anew, is as small as asked for (up to a factor of
        10, by which residuals that methods update may drift away from true ones).
    iterations : int
    residuals : (iterations + 1,) array
        ``|b - A x| / |b|`` at the start and after each iteration; the first and the last only
        where no history was asked for.
    errors : array or None
        ``|x - true| / |true|``, likewise; of GMRES the first and the last.
    preconditioner : LinearOperator or None
    seconds : dict
        ``setup`` of the preconditioner and ``iterations``.
    """

    x: Any = field(repr=False)
    info: int
    converged: bool
    iterations: int
    residuals: Any = field(repr=False)
    errors: Any = field(repr=False)
    preconditioner: Any = field(repr=False)
    seconds: dict[str, float] = field(repr=False)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.x, self.info))


class Recorder:
    """Callbacks for the methods, and the Solution that comes of them."""

    def __init__(self, matrix: Any, b: Any, x0: Any, true: Any, *, enabled: bool) -> None:
        self._matrix, self._b, self._true, self._enabled = matrix, b, true, enabled
        self.size = _norm(b)
        start = 0 * b if x0 is None else x0
        self._residuals = [self._residual(start)]
        self._errors = [self._error(start)]
        self._steps = 0
        self._last: Any = None

    def _residual(self, x: Any) -> float:
        return _norm(self._b - self._matrix @ x) / (self.size or 1.0)

    def _error(self, x: Any) -> float:
        if self._true is None:
            return np.nan
        return _norm(x - self._true) / (_norm(self._true) or 1.0)

    def step(self, x: Any) -> None:
        """Called by CG and BiCGStab after each iteration."""
        self._steps += 1
        if self._enabled:
            self._residuals.append(self._residual(x))
            self._errors.append(self._error(x))
            self._last = x.copy() if self._steps == 1 else self._keep(x)

    def _keep(self, x: Any) -> Any:
        self._last[...] = x
        return self._last

    def estimate(self, norm: Any) -> None:
        """Called by GMRES after each step, with the residual of the preconditioned system."""
        self._steps += 1
        if self._enabled:
            self._residuals.append(float(norm))

    def solution(
        self, x: Any, info: int, allowed: float, preconditioner: Any, set_up: float, taken: float
    ) -> Solution:
        """The answer; a last half step, after which no callback came, is counted as one."""
        residual = self._residual(x)
        residuals, errors, steps = self._residuals, self._errors, self._steps
        if self._last is None:  # GMRES, or no history
            if self._enabled and len(residuals) > 1:
                residuals[-1] = residual
            else:
                residuals.append(residual)
            errors.append(self._error(x))
        elif not bool((self._last == x).all()):
            steps += 1
            residuals.append(residual)
            errors.append(self._error(x))
        return Solution(
            x=x,
            info=info,
            converged=bool(np.isfinite(residual) and residual * self.size <= 10 * allowed),
            iterations=steps,
            residuals=np.array(residuals),
            errors=None if self._true is None else np.array(errors),
            preconditioner=preconditioner,
            seconds={"setup": set_up, "iterations": taken},
        )


def _norm(x: Any) -> float:
    return float((x.astype(np.float64) ** 2).sum()) ** 0.5
