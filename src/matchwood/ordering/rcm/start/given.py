"""The starts that a user gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines


def given_starts(start: Any, n: int, caller: str) -> np.ndarray[Any, Any]:
    """The argument `start`: distinct vertices, ascending, on the host; none for None."""
    if start is None:
        return np.empty(0, np.int64)
    array = np.atleast_1d(np.asarray(engines.moved(start, "cpu")))
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(
            f"{caller}: start must be an integer or a list of them, got {array.dtype} "
            f"of shape {array.shape}"
        )
    outside = (array < 0) | (array >= n)
    if outside.any():
        bad = int(array[outside.argmax()])
        raise ValueError(f"{caller}: start must be vertices 0..{n - 1}, got {bad}")
    distinct, counts = np.unique(array, return_counts=True)
    if distinct.size < array.size:
        twice = int(distinct[counts.argmax()])
        raise ValueError(f"{caller}: start must have every vertex once, got {twice} twice")
    return distinct.astype(np.int64)
