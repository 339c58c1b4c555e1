"""What right answers of the instances of row_reduce are."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed
from matchwood.primitives.row_reduce import lowest


def check_spmv(indptr: Any, indices: Any, data: Any, x: Any, y: Any) -> None:
    """Raise `CheckFailed` unless y is the product within what rounding explains; all finite.

    Adding k terms in any order errs by at most k eps times the sum of their sizes; eps is that of
    the narrowest type among `data`, `x` and `y`, and 0 for integers.
    """
    rows = _check_rows("spmv", indptr, y)
    wide = np.int64 if y.dtype.kind == "i" else np.longdouble
    values = np.ones(indices.size, y.dtype) if data is None else data
    terms = values.astype(wide) * x[indices].astype(wide)
    exact, size = np.zeros(y.size, wide), np.zeros(y.size, wide)
    np.add.at(exact, rows, terms)
    np.add.at(size, rows, np.abs(terms))
    kinds = [array.dtype for array in (values, x, y) if array.dtype.kind == "f"]
    eps = max((np.finfo(kind).eps for kind in kinds), default=0)
    allowed = eps * (np.diff(indptr) + 2) * size
    _first("spmv", ~(np.abs(y.astype(wide) - exact) <= allowed), y, exact)


def check_strongest_neighbours(
    indptr: Any, indices: Any, data: Any, n: int, columns: Any, weights: Any
) -> None:
    """Raise `CheckFailed` unless each row lists its n heaviest neighbours, heaviest first.

    Listed pairs are entries of the row, in order and different; the list is full or has all
    neighbours; and no neighbour that is left out belongs before the last that is listed.
    """
    answers.of_kind("check_strongest_neighbours", "iu", columns=columns)
    expected = (indptr.size - 1, n)
    if columns.shape != expected or weights.shape != expected:
        raise CheckFailed(
            f"strongest: arrays of shape {expected} expected, got {columns.shape}, {weights.shape}"
        )
    for i in range(indptr.size - 1):
        entries = range(int(indptr[i]), int(indptr[i + 1]))
        row = [(-float(data[k]), int(indices[k])) for k in entries if indices[k] != i]
        row = [pair for pair in row if pair[0] == pair[0]]
        filled = int(np.count_nonzero(columns[i] >= 0))
        listed = [(-float(weights[i, s]), int(columns[i, s])) for s in range(filled)]
        if filled != min(n, len(row)):
            raise CheckFailed(
                f"strongest: row {i} has {len(row)} neighbours, {filled} of {n} are listed"
            )
        if (columns[i, filled:] != -1).any() or (weights[i, filled:] != 0).any():
            raise CheckFailed(f"strongest: row {i} must end in columns -1 with weight 0")
        left = list(row)
        for pair in listed:
            if pair not in left:
                raise CheckFailed(
                    f"strongest: row {i} lists column {pair[1]} with weight {-pair[0]}, "
                    "which it does not have (any more)"
                )
            left.remove(pair)
        if listed != sorted(listed):
            raise CheckFailed(f"strongest: row {i} is not listed heaviest first")
        if listed and left and min(left) < listed[-1]:
            raise CheckFailed(
                f"strongest: row {i} leaves out column {min(left)[1]} with weight {-min(left)[0]}"
            )


def check_minimum_label(indptr: Any, indices: Any, label: Any, smallest: Any) -> None:
    """Raise `CheckFailed` unless ``smallest[i]`` is the least label of i and its neighbours."""
    answers.of_kind("check_minimum_label", "iu", smallest=smallest)
    rows = _check_rows("minimum label", indptr, smallest)
    best = label.copy()
    np.minimum.at(best, rows, label[indices])
    _first("minimum label", smallest != best, smallest, best)


def check_maximum_neighbour(indptr: Any, indices: Any, x: Any, largest: Any) -> None:
    """Raise `CheckFailed` unless ``largest[i]`` is the largest ``x[j]`` of i's neighbours."""
    rows = _check_rows("maximum neighbour", indptr, largest)
    best = np.full(largest.size, lowest(x.dtype), x.dtype)
    numbers = x[indices] == x[indices]
    np.maximum.at(best, rows[numbers], x[indices][numbers])
    _first("maximum neighbour", largest != best, largest, best)


def _check_rows(name: str, indptr: Any, answer: Any) -> Any:
    """The row of every entry, after a check of the size of the answer."""
    n = indptr.size - 1
    if answer.shape != (n,):
        raise CheckFailed(f"{name}: one value for each of {n} rows expected, got {answer.shape}")
    return np.repeat(np.arange(n), np.diff(indptr))


def _first(name: str, wrong: Any, got: Any, right: Any) -> None:
    if (i := answers.first(wrong)) is not None:
        raise CheckFailed(f"{name}: row {i} must be {right[i]}, got {got[i]}")
