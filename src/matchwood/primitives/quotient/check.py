"""What a right quotient is."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed


def check_quotient(
    indptr: Any, indices: Any, data: Any, labels: Any, found: Any, *, inner: Any = None
) -> None:
    """Raise `CheckFailed` unless `found` is the matrix added up by `labels`; NumPy arrays.

    Pairs of labels that entries join are sorted: they must be the stored ones and the diagonal,
    each with the sum of its entries.  Integers must be equal, floats near.
    """
    count = found.indptr.size - 1
    answers.of_kind("check_quotient", "iu", indptr=found.indptr, indices=found.indices)
    rows = labels[np.repeat(np.arange(labels.size), np.diff(indptr))].astype(np.int64)
    pairs = rows * count + labels[indices]
    kind = found.inner.dtype
    weights = np.ones(indices.size, kind) if data is None else data.astype(kind)
    distinct, at = np.unique(pairs, return_inverse=True)
    sums = np.zeros(distinct.size, kind)
    np.add.at(sums, at, weights)
    diagonal = np.zeros(count, kind)
    within = distinct // max(count, 1) == distinct % max(count, 1)
    diagonal[distinct[within] // max(count, 1)] = sums[within]
    if inner is not None:
        np.add.at(diagonal, labels, inner)
    stored = np.repeat(np.arange(count), np.diff(found.indptr)) * count + found.indices
    if not np.array_equal(stored, distinct[~within]):
        raise CheckFailed(
            f"quotient: {distinct.size - within.sum()} pairs of labels must be stored in order, "
            f"got {stored.size}, or others"
        )
    for name, got, right in (("data", found.data, sums[~within]), ("inner", found.inner, diagonal)):
        near = got == right if kind.kind == "i" else np.isclose(got, right, rtol=1e-5)
        wrong = answers.first(~near)
        if wrong is not None:
            raise CheckFailed(f"quotient: {name}[{wrong}] must be {right[wrong]}, got {got[wrong]}")
