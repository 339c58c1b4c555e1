"""Is this CSR matrix sorted, free of duplicates, and made of just these edges?"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed


def check_canonical(indptr: Any, indices: Any, columns: int) -> None:
    """Raise `CheckFailed` unless the arrays are CSR with strictly ascending rows."""
    answers.of_kind("check_canonical", "iu", indptr=indptr, indices=indices)
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise CheckFailed("CSR: indptr must start at 0, not decrease, and end at len(indices)")
    if len(indices) and not (0 <= indices.min() and indices.max() < columns):
        raise CheckFailed(f"CSR: an index is outside 0..{columns - 1}")
    falls = np.flatnonzero(np.diff(indices) <= 0) + 1
    inside = np.setdiff1d(falls, indptr)
    if inside.size:
        row = int(np.searchsorted(indptr, inside[0], side="right")) - 1
        raise CheckFailed(f"CSR: row {row} is not strictly ascending at entry {int(inside[0])}")


def check_assembled(n_rows: int, n_cols: int, rows: Any, cols: Any, csr: Any) -> None:
    """Raise `CheckFailed` unless the pattern of `csr` is the set of the given edges."""
    indptr, indices, _ = csr
    if len(indptr) != n_rows + 1:
        raise CheckFailed(f"CSR: {len(indptr) - 1} rows, expected {n_rows}")
    check_canonical(indptr, indices, n_cols)
    stored = np.repeat(np.arange(n_rows, dtype=np.int64), np.diff(indptr)) * n_cols + indices
    given = rows.astype(np.int64) * n_cols + cols
    for some, others, what in ((given, stored, "is missing"), (stored, given, "was not given")):
        lost = some[~np.isin(some, others)]
        if lost.size:
            r, c = divmod(int(lost[0]), n_cols)
            raise CheckFailed(f"CSR: edge ({r}, {c}) {what}")
