"""Are these the joins of a round?  Decided with NumPy's passes, without the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed
from matchwood.primitives.hashing import mix64


def expected_joins(
    rows: Any, columns: Any, weights: Any, volume: Any, names: Any, total: int, resolution: float
) -> Any:
    """The joins of a round on communities with edges rows[i] - columns[i], stored both ways.

    Rows ascend.
    """
    n = volume.size
    keep = rows != columns
    r, u, w = rows[keep], columns[keep], weights[keep].astype(np.float64)
    k = volume.astype(np.float64)
    gain = w - resolution * k[r] * k[u] / max(total, 1)
    good = gain > 0
    r, u, gain = r[good], u[good], gain[good]
    by_rank = np.argsort(mix64(names.astype(np.uint64)))
    rank = np.empty(n, np.int64)
    rank[by_rank] = np.arange(n)
    # of each row the largest gain, and of those who offer it the highest rank
    starts = np.flatnonzero(np.diff(r, prepend=-1))
    most = np.repeat(np.maximum.reduceat(gain, starts), np.diff(starts, append=r.size))
    highest = np.maximum.reduceat(np.where(gain == most, rank[u], -1), starts)
    pick = np.arange(n)
    pick[r[starts]] = by_rank[highest]
    up = (volume < volume[pick]) | ((volume == volume[pick]) & (rank < rank[pick]))
    return np.where(up, pick, np.arange(n))


def check_joins(
    pattern: tuple[Any, Any, Any], volume: Any, names: Any, total: int, target: Any, *,
    resolution: float = 1.0,
) -> None:  # fmt: skip
    """Raise `CheckFailed` unless `target` are the joins that the rule asks for."""
    indptr, indices, weights = pattern
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    w = np.ones(indices.size, np.int64) if weights is None else weights
    right = expected_joins(rows, indices, w, volume, names, total, resolution)
    if (r := answers.first(right != target)) is not None:
        raise CheckFailed(f"joins: {r} must join {right[r]}, not {target[r]}")
