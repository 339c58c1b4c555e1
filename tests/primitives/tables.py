"""Two-neighbour tables: paths and cycles of given lengths, under shuffled names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def table_of(
    paths: Sequence[int],
    cycles: Sequence[int],
    *,
    seed: int = 0,
    shuffled: bool = True,
    dtype: Any = np.int32,
) -> Any:
    """An (n, 2) table; in shuffled ones the two neighbours of a vertex come in any order."""
    rng = np.random.default_rng(seed)
    lengths = np.array([*paths, *cycles], np.int64)
    n = int(lengths.sum())
    last = np.cumsum(lengths) - 1
    first = last - lengths + 1
    before, after = np.arange(-1, n - 1), np.arange(1, n + 1)
    before[first], after[last] = last, first  # round
    straight = np.arange(lengths.size) < len(paths)
    before[first[straight]] = after[last[straight]] = -1
    if not shuffled:
        return np.stack((before, after), axis=1).astype(dtype)
    name = rng.permutation(n)
    named = np.append(name, -1)
    table = np.empty((n, 2), dtype)
    turned = rng.integers(0, 2, n)
    table[name, turned] = named[before]
    table[name, 1 - turned] = named[after]
    return table
