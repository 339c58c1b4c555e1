"""Is this the graph of the groups?  Decided by SciPy's sums, entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood.errors import CheckFailed

ROUNDING = {"float32": 1e-5, "float64": 1e-12}  # error of a sum of a few weights, relative to it


def check_contracted(
    view: Any, labels: Any, count: int, found: Any, what: str, *, inner: Any = None
) -> None:
    """Raise `CheckFailed` unless the arrays `found` are `contract` of these arrays, on the CPU.

    `view` is (indptr, indices, data).  `found` is the same of `count` rows, in any order, and may
    end with the diagonal, to which `inner` adds; without it no diagonal is looked for.  `labels`
    are within 0 .. count - 1; `what` begins messages.  All entries are read, also of a symmetric
    matrix: the result is the same.
    """
    indptr, indices, data = view
    rows, columns = np.repeat(labels, np.diff(indptr)), labels[indices]
    values = np.ones(indices.size, np.int64) if data is None else data
    between = rows != columns
    wanted, margin = _sums(rows[between], columns[between], values[between], count)
    _compare(found[:3], wanted, margin, what)
    if len(found) < 4 or found[3] is None:
        return
    inside, values = rows[~between], values[~between]
    if inner is not None:
        inside, values = np.concatenate([inside, labels]), np.concatenate([values, inner])
    wanted, margin = _sums(inside, np.zeros_like(inside), values, count)
    i = np.repeat(np.arange(count), np.diff(wanted.indptr))
    right, allowed = np.zeros(count, wanted.dtype), np.zeros(count)
    right[i], allowed[i] = wanted.data, margin
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = ~(np.abs(found[3] - right) <= allowed)  # also where one is NaN
    if wrong.any():
        at = int(wrong.argmax())
        raise CheckFailed(f"{what}: inner[{at}] is {found[3][at]}, must be {right[at]}")


def _sums(rows: Any, columns: Any, values: Any, count: int) -> tuple[Any, Any]:
    """The sums by place, and how far from them a sum in another order may be."""
    wide = values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)
    wanted = _added(rows, columns, wide, count)
    if values.dtype.kind != "f":
        return wanted, np.zeros(wanted.nnz)
    sizes = _added(rows, columns, abs(wide), count)
    terms = _added(rows, columns, np.ones_like(wide), count)
    with np.errstate(over="ignore", invalid="ignore"):
        step = np.finfo(values.dtype).eps * terms.data
        return wanted, np.maximum(ROUNDING[values.dtype.name], step) * sizes.data


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
