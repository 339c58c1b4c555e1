"""The arithmetic of `Grid` for kernels: device functions on a GridShape."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import device


@device
def original(grid: Any, local: Any) -> Any:
    """The id of a local vertex."""
    p = grid.R * grid.C
    x = np.int64(local)
    if x < grid.rows:
        return x // grid.C * p + (grid.r * grid.C + x % grid.C)
    x -= grid.rows
    stripe = x % (grid.R - 1)
    if stripe >= grid.r:
        stripe += 1
    return x // (grid.R - 1) * p + (stripe * grid.C + grid.c)


@device
def owner(grid: Any, v: Any) -> Any:
    """The rank that owns a vertex, by its id."""
    return np.int64(v) % (grid.R * grid.C)


@device
def place(grid: Any, v: Any) -> Any:
    """The place of a vertex at its owner, by its id."""
    return np.int64(v) // (grid.R * grid.C)
