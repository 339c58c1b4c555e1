"""One pass of a merge sort, for kernels that sort rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device

Array = np.ndarray[Any, Any]


@device
def merge_runs(source: Array, target: Array, count: int, run: int) -> None:
    """Merge sorted runs of that length, two by two, from `source` into `target`."""
    for first in range(0, count, 2 * run):
        a, b = first, min(first + run, count)
        a_end, b_end = b, min(first + 2 * run, count)
        for x in range(first, b_end):
            if a < a_end and (b >= b_end or source[a] < source[b]):
                target[x] = source[a]
                a += 1
            else:
                target[x] = source[b]
                b += 1
