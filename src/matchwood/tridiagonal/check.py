"""Does x solve the system?  Decided by the residual of each row, in double precision.

Row i is solved well when |b - A x| is no more than `tolerance` times |A| |x| + |b| there: then x
solves exactly a system whose entries differ from the given ones by that much (Oettli and Prager).
A pivoted elimination stays within a small multiple of rounding measured by the largest row and
unknown nearby, so the sizes are taken over the neighbours of a row as far as couplings reach.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.errors import CheckFailed

Array = np.ndarray[Any, Any]


def check_tridiagonal_solution(
    dl: Any, d: Any, du: Any, b: Any, x: Any, *, tolerance: float | None = None
) -> None:
    """Raise `CheckFailed` unless `x` solves the tridiagonal (or 2x2 block) system.

    Parameters
    ----------
    dl, d, du, b : as given to `tridiagonal.solve` or `block_tridiagonal.solve`
    x : their answer
    tolerance : float or None
        Largest allowed ``max|b - A x| / (max|A| max|x| + max|b|)``; None is 200 times the
        rounding unit of x.

    Examples
    --------
    >>> import matchwood
    >>> system = [0, 1], [2, 1], [1, 0], [3, 2]
    >>> matchwood.check.check_tridiagonal_solution(*system, [1.0, 1.0])
    >>> matchwood.check.check_tridiagonal_solution(*system, [1.0, 1.5])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: tridiagonal: row 0 is off by 0.5, ...
    """
    found = np.asarray(engines.moved(x, "cpu"))
    lower, diagonal, upper, right = (
        np.asarray(engines.moved(array, "cpu")).astype(np.float64) for array in (dl, d, du, b)
    )
    if found.shape != right.shape:
        raise CheckFailed(f"tridiagonal: x must have shape {right.shape}, got {found.shape}")
    unit = np.finfo(found.dtype).eps if found.dtype.kind == "f" else np.finfo(np.float64).eps
    allowed = 200 * float(unit) if tolerance is None else float(tolerance)
    if found.size == 0:
        return
    bad = np.argwhere(~np.isfinite(found))
    if bad.size:
        raise CheckFailed(f"tridiagonal: x is not finite at row {int(bad[0][0])}")
    left = _product(lower, diagonal, upper, found.astype(np.float64))
    off = np.abs(left - right).reshape(len(right), -1).max(axis=1)
    largest = max(np.abs(diagonal).max(), np.abs(lower[1:]).max(initial=0))
    largest = max(largest, np.abs(upper[:-1]).max(initial=0))
    size = largest * np.abs(found).max() + np.abs(right).max()
    worst = int(np.argmax(off))
    if off[worst] > allowed * size:
        raise CheckFailed(
            f"tridiagonal: row {worst} is off by {off[worst]:.3g}, more than "
            f"{allowed:.3g} of {size:.3g}"
        )


def _product(dl: Array, d: Array, du: Array, x: Array) -> Array:
    """A x; the first and the last coefficient beside the diagonal are not read."""
    result = _times(d, x)
    result[1:] += _times(dl[1:], x[:-1])
    result[:-1] += _times(du[:-1], x[1:])
    return result


def _times(a: Array, x: Array) -> Array:
    if a.ndim == 3:
        return np.einsum("nij,nj...->ni...", a, x)
    return a.reshape(-1, *(1,) * (x.ndim - 1)) * x
