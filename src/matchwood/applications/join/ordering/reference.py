"""Pairs in order, in the plainest way."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.applications.join import together
from matchwood.applications.join.result import scores_of


def in_order(
    parts: list[Any], sizes: tuple[np.ndarray, ...], scored: bool, threads: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """left, right and score of all pairs, by (left, right).  `parts` is empty afterwards."""
    left, right, weight = (array.astype(np.int64) for array in together(parts))
    parts.clear()
    order = np.lexsort((right, left))
    left, right, weight = left[order], right[order], weight[order]
    if not scored:
        return left, right, None
    return left, right, scores_of(weight, sizes[0][left] + sizes[1][right])
