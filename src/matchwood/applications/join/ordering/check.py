"""Are these the pairs that were given, by (left, right), each with its score?"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from matchwood.applications.join import ONE
from matchwood.errors import CheckFailed


def check_in_order(found: Any, parts: Any, sizes: tuple[np.ndarray, ...]) -> None:
    """Raise `CheckFailed` unless `found` = (left, right, score or None) is `parts` in order."""
    left, right, score = found
    pairs = list(zip(left.tolist(), right.tolist(), strict=True))
    given = {(i, j): w for part in parts for i, j, w in zip(*part, strict=True)}
    for k, (pair, after) in enumerate(itertools.pairwise(pairs)):
        if after <= pair:
            raise CheckFailed(f"ordering: pair {k + 1}, {after}, does not come after {pair}")
    if given.keys() != set(pairs):
        raise CheckFailed(f"ordering: {len(pairs)} pairs are not the {len(given)} that were given")
    for k, (i, j) in enumerate([] if score is None else pairs):
        whole = (sizes[0][i] + sizes[1][j]) * ONE - given[i, j]
        if score[k] != np.float64(given[i, j]) / np.float64(whole):
            raise CheckFailed(f"ordering: the pair {(i, j)} has another score than {score[k]}")
