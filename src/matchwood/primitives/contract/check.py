"""Is this the graph of the groups?  Decided by SciPy's sums, entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood.errors import CheckFailed

ROUNDING = {"float32": 1e-5, "float64": 1e-12}  # of a sum of a few weights, relative


def check_contracted(view: Any, label: Any, count: int, found: Any, what: str) -> None:
    """Raise `CheckFailed` unless the matrix `found` is `contract` of these arrays, on the CPU.

    `view` has indptr, indices and data, `label` is within 0 .. count - 1; `what` begins messages.
    """
    indptr, indices, data = view
    rows, columns = np.repeat(label, np.diff(indptr)), label[indices]
    between = rows != columns
    values = data[between].astype(np.float64)
    with np.errstate(over="ignore"):
        wanted = sp.coo_array((values, (rows[between], columns[between])), (count, count)).tocsr()
    _compare(sp.coo_array(found), wanted, ROUNDING[data.dtype.name], what)


def _compare(found: Any, wanted: Any, rounding: float, what: str) -> None:
    # keys of the entries, so that a missing one and a superfluous one can be named
    size = max(1, found.shape[0])
    wanted = wanted.tocoo()
    wanted.sum_duplicates()
    ours = found.row.astype(np.int64) * size + found.col
    theirs = wanted.row.astype(np.int64) * size + wanted.col
    ascending = np.sort(ours)
    twice = ascending[1:] == ascending[:-1]
    if twice.any():
        i, j = divmod(int(ascending[1:][twice][0]), size)
        raise CheckFailed(f"{what}: entry ({i}, {j}) of the matrix is stored twice")
    for keys, text in (
        (np.setdiff1d(theirs, ours), "is missing"),
        (np.setdiff1d(ours, theirs), "joins nothing"),
    ):
        if keys.size:
            i, j = divmod(int(keys[0]), size)
            raise CheckFailed(f"{what}: entry ({i}, {j}) of the matrix {text}")
    a, b = found.data[np.argsort(ours)], wanted.data[np.argsort(theirs)]
    if a.dtype.kind not in "iuf":
        raise TypeError(f"check_{what}: the matrix must be real, got {a.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = ~(np.abs(a - b) <= rounding * np.abs(b))  # also where one is NaN
    if wrong.any():
        at = int(wrong.argmax())
        i, j = divmod(int(np.sort(ours)[at]), size)
        raise CheckFailed(f"{what}: entry ({i}, {j}) of the matrix is {a[at]}, must be {b[at]}")
