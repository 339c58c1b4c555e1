"""Edges into a dictionary of rows, in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np


def assemble(
    n_rows: int,
    n_cols: int,
    rows: Any,
    cols: Any,
    data: Any = None,
    *,
    symmetric: bool = False,
    loops: bool = True,
    reduce: str = "sum",
    threads: int | None = None,
) -> tuple[Any, Any, Any]:
    dtype = np.dtype(np.float32) if data is None else data.dtype
    weights = np.ones(len(rows), dtype) if data is None else data
    entries = list(zip(rows.tolist(), cols.tolist(), weights, strict=True))
    if symmetric:
        entries += [(c, r, w) for r, c, w in entries]
    table: dict[tuple[int, int], Any] = {}
    for r, c, w in entries:
        if r == c and not loops:
            continue
        if (r, c) not in table:
            table[r, c] = w
        elif reduce == "sum":
            table[r, c] = dtype.type(table[r, c] + w) if data is not None else w
    keys = sorted(table)
    indptr = np.zeros(n_rows + 1, rows.dtype)
    for r, _ in keys:
        indptr[r + 1] += 1
    np.cumsum(indptr, out=indptr)
    indices = np.array([c for _, c in keys], rows.dtype)
    return indptr, indices, None if data is None else np.array([table[k] for k in keys], dtype)


def canonical(
    indptr: Any, indices: Any, data: Any, columns: int, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)).astype(indices.dtype)
    return assemble(len(indptr) - 1, columns, rows, indices, data)
