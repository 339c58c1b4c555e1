"""Is this the matrix in another order?  Entries are compared one by one, both sides sorted."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import csr, engines
from matchwood.errors import CheckFailed


def check_permuted(A: Any, perm: Any, B: Any) -> None:
    """Raise `CheckFailed` unless ``B[i, j] = A[perm[i], perm[j]]``, with sorted rows.

    Parameters
    ----------
    A, perm : as given to `permute`
    B : sparse matrix

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(3)
    >>> matchwood.check.check_permuted(A, [1, 0, 2], matchwood.permute(A, [1, 0, 2]))
    >>> matchwood.check.check_permuted(A, [1, 0, 2], A)
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: permuted: row 0, column 2 must be 1.0, but is not stored
    """
    G = csr.as_graph(A, "check_permuted").on("cpu")
    data = G.data if G.data is not None else np.ones(G.indices.size, np.float32)
    order = np.asarray(engines.moved(getattr(perm, "perm", perm), "cpu"))
    n = G.n
    if B.shape != (n, n):
        raise CheckFailed(f"permuted: shape must be {(n, n)}, got {B.shape}")
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    rows = np.repeat(np.arange(n), np.diff(G.indptr))
    wanted = _keyed(place[rows], place[G.indices], data, n)
    indptr, indices, values = (
        np.asarray(engines.moved(array, "cpu")) for array in (B.indptr, B.indices, B.data)
    )
    found_rows = np.repeat(np.arange(n), np.diff(indptr))
    keys = found_rows * np.int64(n) + indices
    unsorted = np.flatnonzero(np.diff(keys) <= 0)
    if unsorted.size:
        k = int(unsorted[0])
        raise CheckFailed(f"permuted: row {found_rows[k + 1]} is not sorted, or has a column twice")
    absent = np.flatnonzero(~np.isin(wanted[0], keys))
    if absent.size:
        i, j = divmod(int(wanted[0][absent[0]]), n)
        value = wanted[1][absent[0]]
        raise CheckFailed(f"permuted: row {i}, column {j} must be {value}, but is not stored")
    extra = np.flatnonzero(~np.isin(keys, wanted[0]))
    if extra.size:
        i, j = divmod(int(keys[extra[0]]), n)
        raise CheckFailed(f"permuted: row {i}, column {j} is stored, but not so in A")
    other = np.flatnonzero(values != wanted[1])
    if other.size:
        k = int(other[0])
        i, j = divmod(int(keys[k]), n)
        raise CheckFailed(
            f"permuted: row {i}, column {j} is {values[k]}, but must be {wanted[1][k]}"
        )


def _keyed(rows: Any, columns: Any, values: Any, n: int) -> tuple[Any, Any]:
    keys = rows * np.int64(n) + columns
    order = np.argsort(keys, kind="stable")
    return keys[order], np.asarray(values)[order]
