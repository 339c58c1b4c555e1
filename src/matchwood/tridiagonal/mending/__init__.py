"""Solutions that exceed the limit of trust.py: refined, or computed again row after row.

Where few rows are off, the engines mend them themselves (cpu_local.py and ../mend.cuh).  Other
solutions come here.  First they are refined once or twice: the same engine solves for the residual
in double precision.  This brings every row within the limit unless the pivots were very bad.
Otherwise the system is solved on one CPU thread with LAPACK's pivots (cpu_rows.py), and refined
with residuals of more digits; if that is not enough, once more with pivots of scaled rows.  The
best of all solutions is taken, so it is never worse than LAPACK's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.tridiagonal import trust
from matchwood.tridiagonal.mending import cpu_rows
from matchwood.tridiagonal.mending.precision import narrowed, widened

Array = np.ndarray[Any, Any]
ROUNDS = 2  # refinements, on the engine and on one thread
WORST_ACCEPTED = (
    2.0**-10
)  # a relative residual; with a larger one a vector does not count as a solution


def _off(xp: Any, matrix: Any, b: Any, x: Any) -> tuple[Any, float]:
    """The residual, and the largest relative residual of a row."""
    wide = [widened(a).astype(b.dtype, copy=False) for a in (*matrix, x)]
    with np.errstate(all="ignore"):
        residual = b - trust.product(*wide)
        size = trust.product(*(abs(a) for a in wide)) + abs(b)
        ratio = xp.where(size > 0, abs(residual) / size, abs(residual))
    worst = float(ratio.max())
    return residual, worst if xp.isfinite(x).all() and np.isfinite(worst) else np.inf


class _Best:
    """The best of several solutions for one right-hand side."""

    def __init__(self, xp: Any, matrix: Any, b: Any, wide: Any) -> None:
        self._xp, self._matrix = xp, matrix
        self._b = widened(b).astype(wide, copy=False)
        self.x: Any = None
        self.residual: Any = None
        self.worst = np.inf

    def offer(self, x: Any) -> bool:
        """Keep x if it is better; returns whether it is."""
        residual, worst = _off(self._xp, self._matrix, self._b, x)
        better = self.x is None or worst < self.worst
        if better:
            self.x, self.residual, self.worst = x, residual, worst
        return better

    @property
    def right(self) -> bool:
        return self.worst <= trust.limit(self.x.dtype)

    def refine(self, solve: Any) -> None:
        """Solve for the residual until every row is within the limit, or x gets no better."""
        for _ in range(ROUNDS):
            if self.right or not np.isfinite(self.worst):
                return
            kind = self.x.dtype
            with np.errstate(all="ignore"):
                step = solve(self.residual.astype(np.float64))
                made = narrowed(widened(self.x) + step, kind)
            if not self.offer(made):
                return


def mended(run: Any, xp: Any, matrix: Any, b: Any, x: Any, lacking: int) -> tuple[Any, int, bool]:
    """Better solutions for the rows of b, the row without a pivot or -1, and whether all are right.

    `run` is the engine's `solve`, `x` its solution; `matrix` is the triple dl, d, du.
    """
    double = [widened(a) for a in matrix]
    shape = matrix[1].shape[:2] if matrix[1].ndim == 3 else matrix[1].shape[:1]
    found, good = [], True
    for one, first in zip(b, x, strict=True):
        best = _Best(xp, matrix, one.reshape(shape), np.float64)
        if lacking < 0:
            best.offer(first.reshape(shape))
            if b.dtype != np.float64:
                best.offer(narrowed(_step(run, double, shape, one), b.dtype))
            best.refine(lambda right: _step(run, double, shape, right))
        if best.x is None or not best.right:
            row, other = _row_after_row(matrix, one.reshape(shape), best)
            # if only rounding made a pivot zero here, the engine's solution is kept
            if row < 0 or best.x is None or not best.worst < WORST_ACCEPTED:
                best = other
                if row >= 0:
                    return x, row, False
        good = good and best.right
        found.append(engines.moved(best.x, "gpu" if xp is not np else "cpu").reshape(-1))
    return xp.stack(found), -1, good


def _step(run: Any, matrix: Any, shape: Any, right: Any) -> Any:
    wide = widened(right).reshape(1, -1)
    return run(*matrix, wide)[0].reshape(shape)


def _row_after_row(matrix: Any, b: Any, so_far: _Best) -> tuple[int, _Best]:
    """Solve on one CPU thread, also where the engine is the GPU."""
    dl, d, du = (np.asarray(engines.moved(a, "cpu")) for a in matrix)
    right = np.asarray(engines.moved(b, "cpu"))
    best = _Best(np, (dl, d, du), right, np.longdouble)

    lacking = -1
    for scaled in (False, True):

        def solve(given: Array, scaled: bool = scaled) -> Array:
            return cpu_rows.solve(dl, d, du, given.reshape(-1), scaled)[0].reshape(given.shape)

        x, without = cpu_rows.solve(dl, d, du, right.reshape(-1), scaled)
        lacking = without if not scaled else lacking
        with np.errstate(all="ignore"):
            better = best.offer(x.reshape(right.shape).astype(right.dtype))
        if better:
            best.refine(solve)
        if best.right or lacking >= 0:
            break
    if (
        so_far.x is not None and so_far.worst < WORST_ACCEPTED
    ):  # else an overflow here must be reported
        best.offer(np.asarray(engines.moved(so_far.x, "cpu")))
    return lacking, best
