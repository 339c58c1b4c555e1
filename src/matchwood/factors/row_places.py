"""Places within the rows of a sorted list: a step of the checks."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def place_in_row(rows: Array) -> Array:
    """0, 1, ... within each run of equal rows."""
    at = np.arange(rows.size)
    starts = np.ones(rows.size, bool)
    starts[1:] = rows[1:] != rows[:-1]
    return at - np.maximum.accumulate(np.where(starts, at, 0))
