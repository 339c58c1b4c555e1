"""The arithmetic of `Grid` for kernels: device functions on a GridShape.

Numbers are unsigned: Numba's signed division asks for signs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import device

ONE = np.uint64(1)


@device
def column_place(shape: Any, x: Any) -> Any:
    """For a column, by its local id: the owner's row of the grid, and the place there."""
    local = np.uint64(x)
    if local < shape.rows:
        return shape.r, local // shape.C
    local -= shape.rows
    rank = local % shape.others
    if rank >= shape.r:
        rank += ONE
    return rank, local // shape.others


@device
def column_id(shape: Any, x: Any) -> Any:
    """The id of a column, by its local id."""
    r, place = column_place(shape, x)
    return (place * shape.R + r) * shape.C + shape.c


@device
def row_id(shape: Any, x: Any) -> Any:
    """The id of a row, by its local id."""
    place = np.uint64(x) // shape.C
    return (place * shape.R + shape.r) * shape.C + (np.uint64(x) - place * shape.C)
