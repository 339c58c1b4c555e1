"""Is this the graph of the groups?  Decided by SciPy's sums, entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood.errors import CheckFailed

ROUNDING = {"float32": 1e-5, "float64": 1e-12}  # of a sum of a few weights, relative to it


def check_contracted(
    view: Any, label: Any, count: int, found: Any, what: str, *, loops: bool = False
) -> None:
    """Raise `CheckFailed` unless the arrays `found` are `contract` of these arrays, on the CPU.

    `view` is (indptr, indices, data), `found` the same of `count` rows, in any order; both have
    values.  `label` is within 0 .. count - 1; `what` begins messages.  Of a symmetric matrix all
    entries are read here, so the result is the same.
    """
    indptr, indices, data = view
    rows, columns = np.repeat(label, np.diff(indptr)), label[indices]
    kept = slice(None) if loops else rows != columns
    wide = data[kept].astype(np.int64 if data.dtype.kind in "iu" else np.float64)
    wanted = _added(rows[kept], columns[kept], wide, count)
    sizes = _added(rows[kept], columns[kept], abs(wide), count)
    terms = _added(rows[kept], columns[kept], np.ones_like(wide), count)
    allowed = np.zeros(wanted.nnz)
    if data.dtype.kind == "f":
        step = np.finfo(data.dtype).eps
        with np.errstate(over="ignore", invalid="ignore"):
            allowed = np.maximum(ROUNDING[data.dtype.name], step * terms.data) * sizes.data
    _compare(found, wanted, allowed, what)


def _added(rows: Any, columns: Any, values: Any, count: int) -> Any:
    """Sums by place, in the order of rows and columns; entries stay where a sum is zero."""
    with np.errstate(over="ignore"):
        made = sp.coo_array((values, (rows, columns)), shape=(count, count)).tocsr()
    made.sum_duplicates()
    return made


def _compare(found: Any, wanted: Any, allowed: Any, what: str) -> None:
    # keys of the entries, so that a missing one and a superfluous one can be named
    indptr, indices, data = found
    size = max(1, wanted.shape[0])
    ours = np.repeat(np.arange(wanted.shape[0]), np.diff(indptr)) * size + indices
    theirs = np.repeat(np.arange(wanted.shape[0]), np.diff(wanted.indptr)) * size + wanted.indices
    order = np.argsort(ours)
    ours = ours[order]
    twice = ours[1:] == ours[:-1]
    if twice.any():
        i, j = divmod(int(ours[1:][twice][0]), size)
        raise CheckFailed(f"{what}: entry ({i}, {j}) of the matrix is stored twice")
    for keys, text in (
        (np.setdiff1d(theirs, ours), "is missing"),
        (np.setdiff1d(ours, theirs), "joins nothing"),
    ):
        if keys.size:
            i, j = divmod(int(keys[0]), size)
            raise CheckFailed(f"{what}: entry ({i}, {j}) of the matrix {text}")
    a, b = data[order], wanted.data
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = ~(np.abs(a - b) <= allowed)  # also where one is NaN
    if wrong.any():
        at = int(wrong.argmax())
        i, j = divmod(int(ours[at]), size)
        raise CheckFailed(f"{what}: entry ({i}, {j}) of the matrix is {a[at]}, must be {b[at]}")
