"""Compaction: the definition, one flag after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.arguments import index_type


def compact(mask: Any, values: Any = None, *, threads: int | None = None) -> Any:
    dtype = index_type(mask.size) if values is None else values.dtype
    kept = [i if values is None else values[i] for i in range(mask.size) if mask[i] != 0]
    return np.array(kept, dtype=dtype)
