"""The order of shingles by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.hashing.reference import hash2_number

NONE = (1 << 64) - 1  # the key of a vertex without neighbours: no hash is larger


def order(view: Any, seed: int, *, threads: int | None = None) -> Any:
    def key(v: int) -> tuple[int, int, int]:
        row = view.indices[view.indptr[v] : view.indptr[v + 1]].tolist()
        first, second = (
            min((hash2_number(u, number, seed) for u in row), default=NONE) for number in (0, 1)
        )
        return first, second, v

    return np.array(sorted(range(view.n), key=key), view.indptr.dtype)
