"""The steps of ranks on one rank: cpu.py with its kernels, gpu.py + gpu.cu.

A class `Run` has them: `propose`, `choose`, `settle`, `tell` and `wake`, then `mate` and `weights`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines

Stripes = tuple[Any, Any, Any]


def group_columns(grid: Any) -> Stripes:
    """Of the ranks of a column: their vertices, the local id of the first, and the step."""
    ranks = np.arange(grid.R)
    base = grid.n_rows + ranks - (ranks > grid.r)
    stride = np.full(grid.R, grid.R - 1)
    base[grid.r], stride[grid.r] = grid.c, grid.C  # own vertices are in the row group
    return np.array(grid.column_counts, np.int64), base.astype(np.int64), stride.astype(np.int64)


def group_rows(grid: Any) -> Stripes:
    """The same of the ranks of a row."""
    ranks = np.arange(grid.C, dtype=np.int64)
    return np.array(grid.row_counts, np.int64), ranks, np.full(grid.C, grid.C, np.int64)


def numbers_of(G: Any, kind: Any) -> tuple[Any, Any]:
    """The grid's ids of all local vertices, and their names, of that type; kept by the graph."""

    def made(values: Any) -> Any:
        return engines.moved(np.ascontiguousarray(values, kind), G.engine)

    ids = G.keep(f"ids {kind}", lambda: made(G.grid.original_local()))
    if G.names is None:
        return ids, ids
    return ids, G.keep(f"names {kind}", lambda: made(G.names))
