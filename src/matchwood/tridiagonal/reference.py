"""The definition: Gaussian elimination with partial pivoting, one row after the other.

As in LAPACK's gtsv, and for blocks as well.  But it uses the longest floating type of the machine,
and equations are scaled by powers of two, so that rows on different scales keep their digits.  Slow
on purpose.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.tridiagonal import check as accuracy

Array = np.ndarray[Any, Any]


def solve(
    dl: Array, d: Array, du: Array, b: Array, *, threads: int | None = None
) -> tuple[Array, int, int]:
    """The solution for every row of b; the row without a pivot or -1; a verdict (check.py)."""
    if not all(np.isfinite(a).all() for a in (dl[1:], d, du[:-1], b)):
        return b.copy(), -1, accuracy.WRONG
    if d.size == 0 or b.shape[0] == 0:
        return b.copy(), -1, accuracy.RIGHT
    matrix = banded(*(array.astype(np.longdouble) for array in (dl, d, du)))
    right = b.T.astype(np.longdouble)
    equilibrate(matrix, right)
    x, lacking = eliminate(matrix, right, 1 if d.ndim == 1 else 3)
    with np.errstate(over="ignore", under="ignore"):
        return x.astype(b.dtype), lacking, accuracy.RIGHT


def equilibrate(rows: list[dict[int, Any]], right: Array) -> None:
    """Multiply every equation by a power of two such that its largest coefficient is about 1."""
    for i, row in enumerate(rows):
        largest = max((abs(value) for value in row.values()), default=0)
        if largest > 0:
            power = -int(np.frexp(largest)[1])
            for k in row:
                row[k] = np.ldexp(row[k], power)
            right[i] = np.ldexp(right[i], power)


def banded(dl: Array, d: Array, du: Array) -> list[dict[int, Any]]:
    """The equations as dictionaries {unknown: coefficient}; blocks become single equations."""
    n, p = d.shape[0], (d.shape[1] if d.ndim == 3 else 1)
    rows: list[dict[int, Any]] = []
    for i in range(n):
        for e in range(p):
            row = {}
            for block, j in ((dl, i - 1), (d, i), (du, i + 1)):
                if 0 <= j < n:
                    for k in range(p):
                        row[j * p + k] = block[i, e, k] if d.ndim == 3 else block[i]
            rows.append(row)
    return rows


def eliminate(rows: list[dict[int, Any]], x: Array, reach: int) -> tuple[Array, int]:
    """Forward with row pivoting among the next `reach` rows, then backward."""
    n = len(rows)
    p = 1 if reach == 1 else 2
    lacking = -1
    for j in range(n):
        below = range(j, min(n, j + reach + 1))
        best = max(below, key=lambda i: abs(rows[i].get(j, 0)))
        rows[j], rows[best] = rows[best], rows[j]
        x[[j, best]] = x[[best, j]]
        if rows[j].get(j, 0) == 0:
            lacking = j if lacking < 0 else lacking
            rows[j][j] = np.finfo(x.dtype).eps
        for i in below:
            if i > j and rows[i].get(j, 0) != 0:
                factor = rows[i].pop(j) / rows[j][j]
                for k, value in rows[j].items():
                    if k > j:
                        rows[i][k] = rows[i].get(k, 0) - factor * value
                x[i] -= factor * x[j]
    for j in range(n - 1, -1, -1):
        for k, value in rows[j].items():
            if k > j:
                x[j] -= value * x[k]
        x[j] /= rows[j][j]
    return np.ascontiguousarray(x.T), lacking // p
