"""Which local vertices of a block belong to which owner."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.ranks.grid import Grid

Array = np.ndarray[Any, Any]


class Stripes(NamedTuple):
    """The vertices of a block by their owner: those of one are base + place * step."""

    owner: Array
    base: Array
    step: Array
    size: Array


def column_stripes(grid: Grid) -> list[tuple[int, int, int]]:
    """Of the ranks of the column: base, step and size of their vertices, the own ones too."""
    found = []
    for r, size in enumerate(grid.column_counts):
        if r == grid.r:
            found.append((grid.c, grid.C, size))
        else:
            found.append((grid.n_rows + r - (r > grid.r), grid.R - 1, size))
    return found


def stripes_of(grid: Grid) -> Stripes:
    """Of the row group first, by column of the grid; then of the rest of the column group."""
    rows = [(grid.r * grid.C + c, c, grid.C, grid.row_counts[c]) for c in range(grid.C)]
    columns = [
        (r * grid.C + grid.c, *stripe)
        for r, stripe in enumerate(column_stripes(grid))
        if r != grid.r
    ]
    return Stripes(*(np.array(column, np.int64) for column in zip(*rows, *columns, strict=True)))
