"""What a right exclusive scan is."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed


def check_exclusive_scan(counts: Any, offsets: Any) -> None:
    """Raise `CheckFailed` unless `offsets` is the exclusive scan of `counts`."""
    answers.of_kind("check_exclusive_scan", "iu", offsets=offsets)
    if offsets.shape != (counts.size + 1,):
        raise CheckFailed(
            f"exclusive scan: {counts.size + 1} offsets expected, got shape {offsets.shape}"
        )
    if offsets[0] != 0:
        raise CheckFailed(f"exclusive scan: offsets[0] must be 0, got {offsets[0]}")
    steps = np.diff(offsets.astype(np.int64))
    if (i := answers.first(steps != counts)) is not None:
        raise CheckFailed(
            f"exclusive scan: offsets[{i + 1}] - offsets[{i}] is {steps[i]}, "
            f"but counts[{i}] is {counts[i]}"
        )
