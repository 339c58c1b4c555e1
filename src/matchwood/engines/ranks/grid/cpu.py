"""The arithmetic of `Grid` for kernels: device functions on a GridShape.

Numbers are unsigned: Numba's signed division tests the signs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device

ONE = np.uint64(1)


@device
def column_place(shape: Any, x: Any) -> Any:
    """For a column, by its local id: the owner's row of the grid, and the place there."""
    local = np.uint64(x)
    in_row = local < shape.rows  # one division and no branch: none could be predicted
    step = shape.C if in_row else shape.others
    local -= np.uint64(0) if in_row else shape.rows
    place = local // step
    rank = local - place * step
    rank += ONE if rank >= shape.r else np.uint64(0)
    return (shape.r if in_row else rank), place


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
