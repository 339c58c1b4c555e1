"""The order of edges as a key that Python compares."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.arguments import index_type
from matchwood.primitives.hashing.reference import hash2_number

Key = tuple[float, int, int, int]


def edge_key(w: float, u: int, v: int, seed: int = 0, by_hash: bool = True) -> Key:
    """The key of an edge: the smaller key is first in the order."""
    low, high = (u, v) if u < v else (v, u)
    return -float(w), -hash2_number(low, high, seed) if by_hash else 0, low, high


def order_edges(
    u: Any, v: Any, w: Any, *, seed: int = 0, by_hash: bool = True, threads: int | None = None
) -> Any:
    keys = [
        edge_key(*edge, seed, by_hash)
        for edge in zip(w.tolist(), u.tolist(), v.tolist(), strict=True)
    ]
    perm = sorted(range(len(keys)), key=keys.__getitem__)
    return np.array(perm, dtype=index_type(len(keys)))
