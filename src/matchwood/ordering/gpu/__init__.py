"""Sorted places of all rows at once: what gaps and refinement share on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np


def sorted_places(caller: str, n: int, rows: Any, places: Any) -> Any:
    """The places of each row, ascending; `rows` is the row of each entry, ascending."""
    shift = max(n - 1, 1).bit_length()  # of the row, above the place
    if 2 * shift > 64:
        raise ValueError(f"{caller}: a matrix of {n} rows is too large for the GPU")
    keys = rows.astype(np.uint64)
    keys <<= np.uint64(shift)
    keys |= places.astype(np.uint64)
    keys.sort()
    keys &= np.uint64((1 << shift) - 1)
    return keys.astype(rows.dtype)
