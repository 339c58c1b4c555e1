"""Which local vertices of a block belong to which owner."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.dist.grid import Grid

Array = np.ndarray[Any, Any]


class Stripes(NamedTuple):
    """The vertices of a block by their owner: those of one are base + place * step."""

    owner: Array
    base: Array
    step: Array
    size: Array


def stripes_of(grid: Grid) -> Stripes:
    """Of the row group first, by column of the grid; then of the rest of the column group."""
    rows = [(grid.r * grid.C + c, c, grid.C, grid.row_counts[c]) for c in range(grid.C)]
    others = [r for r in range(grid.R) if r != grid.r]
    columns = [
        (r * grid.C + grid.c, grid.n_rows + k, grid.R - 1, grid.column_counts[r])
        for k, r in enumerate(others)
    ]
    return Stripes(*(np.array(column, np.int64) for column in zip(*rows, *columns, strict=True)))
