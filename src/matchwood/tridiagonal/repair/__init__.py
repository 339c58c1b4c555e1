"""Solutions that exceed the limit of check.py: refined, or computed again row after row.

Where few rows are off, the engines repair them themselves (cpu.py and ../passes.cuh).  Others are
repaired here.  First they are refined once or twice: the same engine solves for the residual
in double precision.  This brings every row within the limit unless the pivots were very bad.
Otherwise the system is solved on one CPU thread with LAPACK's pivots (cpu.py), and refined
with residuals of more digits; if that is not enough, once more with pivots of scaled rows.  The
best of all solutions is taken, so it is never worse than LAPACK's.

In: the engine, the system and its solution.  Out: a better solution, the row without a pivot or -1,
and whether all rows are within the limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.tridiagonal import check as accuracy
from matchwood.tridiagonal.repair import cpu

Array = np.ndarray[Any, Any]
ROUNDS = 2  # refinements, on the engine and on one thread
WORST_ACCEPTED = 2.0**-10  # a relative residual; a vector with a larger one is no solution
_STEP = 2.0**-149  # distance of neighbouring subnormal float32 numbers
_LEAST = 2.0**-126  # the smallest float32 number that is not subnormal
_SIGN = np.uint32(1 << 31)
_MANTISSA = np.uint32((1 << 23) - 1)


def _off(xp: Any, matrix: Any, b: Any, x: Any) -> tuple[Any, float]:
    """The residual, and the largest relative residual of a row."""
    wide = [widened(a).astype(b.dtype, copy=False) for a in (*matrix, x)]
    with np.errstate(all="ignore"):
        residual = b - accuracy.product(*wide)
        size = accuracy.product(*(abs(a) for a in wide)) + abs(b)
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
        return self.worst <= accuracy.limit(self.x.dtype)

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


def repaired(run: Any, xp: Any, matrix: Any, b: Any, x: Any, lacking: int) -> tuple[Any, int, bool]:
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
            return cpu.solve_row_by_row(dl, d, du, given.reshape(-1), scaled)[0].reshape(
                given.shape
            )

        x, without = cpu.solve_row_by_row(dl, d, du, right.reshape(-1), scaled)
        lacking = without if not scaled else lacking
        with np.errstate(all="ignore"):
            better = best.offer(x.reshape(right.shape).astype(right.dtype))
        if better:
            best.refine(solve)
        if best.right or lacking >= 0:
            break
    # else an overflow here must be reported
    if so_far.x is not None and so_far.worst < WORST_ACCEPTED:
        best.offer(np.asarray(engines.moved(so_far.x, "cpu")))
    return lacking, best


# Float32 to float64 and back without loss on either engine.  CuPy's kernels treat subnormal float32
# numbers, those below 2^-126, as zeros.  So on the GPU these numbers are converted by their bits.


def widened(a: Any) -> Any:
    """The array in double precision; itself if it is so already."""
    if a.dtype != np.float32 or engines.location(a) == "cpu":
        return a.astype(np.float64, copy=False)
    return from_bits(engines.xp(a), a)


def narrowed(a: Any, kind: Any) -> Any:
    """The double precision array in that type, rounded; too large numbers become infinite."""
    if np.dtype(kind) != np.float32 or engines.location(a) == "cpu":
        with np.errstate(all="ignore"):
            return a.astype(kind, copy=False)
    return to_bits(engines.xp(a), a)


def from_bits(xp: Any, a: Any) -> Any:
    """`widened` where arithmetic treats subnormal numbers as zeros."""
    bits = xp.ascontiguousarray(a).view(np.uint32)
    small = (bits & _MANTISSA).astype(np.float64) * _STEP
    small = xp.where((bits & _SIGN) != 0, -small, small)
    return xp.where((bits & ~(_MANTISSA | _SIGN)) == 0, small, a.astype(np.float64))


def to_bits(xp: Any, a: Any) -> Any:
    """`narrowed` where arithmetic would round subnormal results to zero."""
    steps = xp.rint(xp.minimum(abs(a), _LEAST) / _STEP).astype(np.uint32)
    small = steps | xp.where(xp.signbit(a), _SIGN, np.uint32(0))
    with np.errstate(all="ignore"):
        usual = xp.ascontiguousarray(a.astype(np.float32)).view(np.uint32)
    return xp.where(abs(a) < _LEAST, small, usual).astype(np.uint32).view(np.float32)
