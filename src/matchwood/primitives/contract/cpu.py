"""Contraction on a team: which method takes which call.

Entries are listed where the diagonal is not needed: a symmetric matrix is then read by half.  They
are tallied where it is, and where they are only counted.  Both add up in the order of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.contract import sums_type
from matchwood.primitives.contract.listed.cpu import list_and_sort
from matchwood.primitives.contract.pairs.cpu import contract_pairs as contract_pairs
from matchwood.primitives.contract.tallied.cpu import quotient
from matchwood.primitives.contract.tallied.cpu import sums_by_label as sums_by_label
from matchwood.primitives.tally.cpu import word

Array = np.ndarray[Any, Any]


def contract(
    indptr: Array,
    indices: Array,
    data: Array | None,
    inner: Array | None,
    labels: Array,
    count: int,
    *,
    loops: bool,
    symmetric: bool,
    threads: int | None = None,
    ordered: bool = True,
    most: int | None = None,
) -> Any:
    if loops or data is None:
        kind = sums_type(data) if most is None else np.dtype(word(most))
        found = quotient(
            indptr, indices, data, inner, labels, count, symmetric, threads,
            ordered=ordered, kind=kind,
        )  # fmt: skip
        return found if loops else (*found[:3], None)
    values = data.astype(sums_type(data), copy=False)
    made = list_and_sort(
        indptr, indices, values, labels, count, symmetric=symmetric, threads=threads
    )
    return (*made, None)


def contract_pattern(
    indptr: Array, indices: Array, labels: Array, count: int, threads: int | None
) -> Any:
    return list_and_sort(indptr, indices, None, labels, count, symmetric=False, threads=threads)[:2]
