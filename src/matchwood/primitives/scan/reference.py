"""Exclusive scan: the definition, one addition after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.scan import does_not_fit


def exclusive_scan(counts: Any, *, threads: int | None = None, dtype: Any = None) -> Any:
    dtype = np.dtype(counts.dtype if dtype is None else dtype)
    limits = np.iinfo(dtype)
    offsets = np.zeros(counts.size + 1, dtype)
    total = 0
    for i in range(counts.size):
        total += int(counts[i])
        if not limits.min <= total <= limits.max:
            raise does_not_fit(dtype)
        offsets[i + 1] = total
    return offsets
