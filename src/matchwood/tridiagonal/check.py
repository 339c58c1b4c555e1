"""When is a solution right?  The limit that every engine keeps, and the check of an answer.

The measure is the residual of a row relative to its terms, |b - A x| / (|A| |x| + |b|).  This is
the smallest relative change of its entries that makes the equation true (Oettli and Prager 1964).

An engine's own solution: the measure must be at most UNITS rounding units in every row, for systems
of any size; a row that exceeds the limit is "off".  The residual is itself rounded, by at most
HIDDEN units: 2 in a plain row, 3.5 in a block row.

The promise for a system: the largest measure of its rows is at most TIMES that of LAPACK's solution
(gtsv, for blocks gbsv), or within the limit, whichever is larger.  Measured exactly, the limit is
UNITS + HIDDEN units.

Elimination alone does not keep this limit, neither here nor in LAPACK.  Where the terms of a row
happen to be much smaller than those of its neighbours, the rounding errors of the neighbours are
large for it.  On random matrices this happens in one row in a thousand.  If few rows are off, they
are repaired by a change of the unknowns around (repair/cpu.py, passes.cuh).  If many are off, or
if that is not enough, the whole system is solved again (repair/).

The check of an answer allows more, and computes residuals in a type with more digits than x.  Every
row of every right-hand side is checked by itself, so a wrong row is found also where numbers in
other rows are large.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import plain, real
from matchwood.errors import CheckFailed

Array = np.ndarray[Any, Any]

UNITS = 8.0  # rounding units; the limit for a row
HIDDEN = {False: 2.0, True: 3.5}  # rounding units of the residual itself; True: of blocks
TIMES = 10.0  # the largest ratio to LAPACK's measure
# Rows are repaired locally if at most this many are off: FEW_ROWS, or one in ROWS_PER_REPAIRED,
# whichever is more.
FEW_ROWS = 16
ROWS_PER_REPAIRED = 64

# At most how many rows of a random system are off before they are repaired.
ROWS_WITHOUT_CHANCE = 8192  # rows; none in a system of up to this size
ROWS_PER_CHANCE = 256  # rows; in a larger system one in 256, of block rows one in 128
ROWS_PER_UNIT = 4  # such a row of a system of n rows is off by no more than n / 4 units

# An engine's verdict on its solution: wrong; right, but the matrix is hard; right.
WRONG, HARD, RIGHT = range(3)

ANSWER_UNITS = 256, 4  # units that an answer may have: 256, or 4 for each row, whichever is more
LARGEST_TOLERANCE = 2.0**-6  # the largest default tolerance


def limit(kind: Any) -> float:
    """The largest relative residual that a row may have."""
    return UNITS * float(np.finfo(kind).eps)


def few(equations: int) -> int:
    """If more of the equations than this are off, the whole system is solved again."""
    return max(FEW_ROWS, equations // ROWS_PER_REPAIRED)


def by_chance(n: int, p: int = 1) -> int:
    """How many equations of n rows, or block rows of p, may be off in a matrix that is not hard."""
    return 0 if n <= ROWS_WITHOUT_CHANCE else n * p // (ROWS_PER_CHANCE // p)


def worst_by_chance(n: int) -> float:
    """How far these equations may be off, in multiples of the limit."""
    return max(1.0, n / ROWS_PER_UNIT / UNITS)


def product(dl: Any, d: Any, du: Any, x: Any) -> Any:
    """A x, for x of shape (n,) or (n, p); the outermost coefficients are not read."""
    result = _times(d, x)
    result[1:] += _times(dl[1:], x[:-1])
    result[:-1] += _times(du[:-1], x[1:])
    return result


def _times(a: Any, x: Any) -> Any:
    if a.ndim == 3:
        return a[:, :, 0] * x[:, :1] + a[:, :, 1] * x[:, 1:]
    return a * x


# The check of an answer


def check_tridiagonal_solution(
    dl: Any, d: Any, du: Any, b: Any, x: Any, *, tolerance: float | None = None
) -> None:
    """Raise `CheckFailed` unless `x` solves the tridiagonal (or 2x2 block) system.

    ``|b - A x| <= tolerance (|A| |x| + |b|)`` must hold in every row of every right-hand side,
    with the absolute value of every entry.

    Parameters
    ----------
    dl, d, du, b : as given to `tridiagonal.solve` or `block_tridiagonal.solve`
    x : the solution that they returned
    tolerance : float or None
        None is max(256, 4 n) times the rounding unit of x, and 1/64 at most.

    Notes
    -----
    `tridiagonal.solve` promises more than this default asks for; see there.  It accepts the
    solutions of other stable solvers too.

    Why this default: a stable elimination leaves a few rounding units in most rows, but no
    elimination bounds the residual of each row by the row's own terms.  Where three neighbouring
    unknowns happen to be small, rounding errors of the rows around are large for that row.  In
    random matrices the fraction of rows that are off by more than t units falls like 1/t.  So the
    worst of n rows grows like n: some n / 300 units, for LAPACK's ``gtsv`` as for the engines here.
    4 n is a thousand times that, and a row that is off by more is not explained by rounding.  If
    rows differ much in size, ``gtsv``, which does not scale rows, may leave much more; its solution
    is then not accepted.

    Where x is subnormal, half of its last digit is allowed as well.

    Examples
    --------
    >>> import matchwood
    >>> system = [0, 1], [2, 1], [1, 0], [3, 2]
    >>> matchwood.check.check_tridiagonal_solution(*system, [1.0, 1.0])
    >>> matchwood.check.check_tridiagonal_solution(*system, [1.0, 1.5])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: tridiagonal: row 1 is off by 0.5, ...
    """
    caller = "check_tridiagonal_solution"
    found = plain(caller, "x", engines.moved(x, "cpu"))
    if found.dtype.kind not in "fiub":
        raise CheckFailed(f"tridiagonal: x must hold real numbers, got {found.dtype}")
    given = {"dl": dl, "d": d, "du": du, "b": b}
    lower, diagonal, upper, right = (_wide(caller, *named) for named in given.items())
    block = diagonal.ndim == 3
    if diagonal.ndim not in (1, 3) or (block and diagonal.shape[1:] != (2, 2)):
        raise ValueError(f"{caller}: d must have shape (n,) or (n, 2, 2), got {diagonal.shape}")
    for name, array in (("dl", lower), ("du", upper)):
        if array.shape != diagonal.shape:
            raise ValueError(
                f"check_tridiagonal_solution: {name} must have the shape of d, {diagonal.shape}, "
                f"got {array.shape}"
            )
    if right.shape[: 1 + block] != diagonal.shape[: 1 + block] or right.ndim > 2 + block:
        raise ValueError(
            f"check_tridiagonal_solution: b must have a right-hand side for each row of d, "
            f"of shape {diagonal.shape}, got shape {right.shape}"
        )
    if found.shape != right.shape:
        raise CheckFailed(f"tridiagonal: x must have shape {right.shape}, got {found.shape}")
    if found.size == 0:
        return
    bad = np.argwhere(~np.isfinite(found))
    if bad.size:
        raise CheckFailed(f"tridiagonal: x is not finite at row {int(bad[0][0])}")
    kind = np.finfo(found.dtype if found.dtype.kind == "f" else np.float64)
    units = max(ANSWER_UNITS[0], ANSWER_UNITS[1] * len(found))
    allowed = min(units * float(kind.eps), LARGEST_TOLERANCE)
    if tolerance is not None:
        allowed = real(caller, "tolerance", tolerance, 0)
    columns = 1 + block
    rights = right.reshape(*right.shape[:columns], -1)
    answers = found.reshape(*right.shape[:columns], -1).astype(np.longdouble)
    for k in range(rights.shape[-1]):
        which = "" if right.ndim == columns else f" of right-hand side {k}"
        matrix = (lower, diagonal, upper)
        _check_one(matrix, rights[..., k], answers[..., k], allowed, kind.smallest_subnormal, which)


def _wide(caller: str, name: str, value: Any) -> Array:
    array = plain(caller, name, engines.moved(value, "cpu"))
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{caller}: {name} must hold real numbers, got {array.dtype}")
    return np.asarray(array, np.longdouble)


def _check_one(matrix: Any, b: Array, x: Array, allowed: float, least: Any, which: str) -> None:
    dl, d, du = matrix
    sizes = abs(dl), abs(d), abs(du)
    with np.errstate(all="ignore"):
        off = abs(b - product(dl, d, du, x))
        size = product(*sizes, abs(x)) + abs(b)
        limit = allowed * size + least * (1 + product(*sizes, np.ones_like(x)))
        holds = off <= limit  # false where anything is not a number
        ratio = np.where(holds, 0, np.where(np.isfinite(off / limit), off / limit, np.inf))
    if holds.all():
        return
    row = int(np.argmax(ratio.reshape(len(b), -1).max(axis=1)))
    rest = np.argmax(ratio.reshape(len(b), -1)[row])
    here, terms = (a.reshape(len(b), -1)[row, rest] for a in (off, size))
    raise CheckFailed(
        f"tridiagonal: row {row}{which} is off by {here:.3g}, "
        f"more than {allowed:.3g} of {terms:.3g}"
    )
