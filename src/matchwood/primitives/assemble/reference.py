"""Edges into a dictionary of rows, in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np


def assemble(
    n_rows: int, n_cols: int, rows: Any, cols: Any, data: Any = None, *, symmetric: bool = False,
    loops: bool = True, reduce: str = "sum", threads: int | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    dtype = np.dtype(np.float32) if data is None else data.dtype
    weights = np.ones(len(rows), dtype) if data is None else data
    entries = list(zip(rows.tolist(), cols.tolist(), weights, strict=True))
    if symmetric:
        entries += [(c, r, w) for r, c, w in entries]
    if reduce == "keep":
        kept = [entry for entry in entries if loops or entry[0] != entry[1]]
        return csr_of(kept, n_rows, rows.dtype, data)
    table: dict[tuple[int, int], Any] = {}
    for r, c, w in entries:
        if r == c and not loops:
            continue
        if (r, c) not in table:
            table[r, c] = w
        elif data is not None:
            table[r, c] = dtype.type(_joined(reduce, table[r, c], w))
    return csr_of([(*key, w) for key, w in table.items()], n_rows, rows.dtype, data)


def _joined(reduce: str, x: Any, y: Any) -> Any:
    if reduce == "sum":
        return x + y
    if reduce == "heaviest":
        return y if abs(y) > abs(x) else x
    if reduce == "first":
        return x
    return min(x, y) if reduce == "min" else max(x, y)  # both take the first of equal ones


def csr_of(entries: Any, n_rows: int, kind: Any, data: Any) -> tuple[Any, Any, Any]:
    """CSR arrays of entries (row, column, value); without values where `data` is None."""
    entries = sorted(entries, key=lambda entry: entry[:2])
    indptr = np.zeros(n_rows + 1, kind)
    for r, _, _ in entries:
        indptr[r + 1] += 1
    indices = np.array([c for _, c, _ in entries], kind)
    values = None if data is None else np.array([w for _, _, w in entries], data.dtype)
    return np.cumsum(indptr, dtype=kind), indices, values


def canonical(
    indptr: Any, indices: Any, data: Any, columns: int, *, reduce: str = "sum",
    ordered: bool = False, threads: int | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)).astype(indices.dtype)
    return assemble(len(indptr) - 1, columns, rows, indices, data, reduce=reduce)
