"""What a right compaction is."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed


def check_compact(mask: Any, values: Any, kept: Any) -> None:
    """Raise `CheckFailed` unless `kept` is what `mask` keeps of `values` (None: positions).

    As many as the mask marks, and the r-th of them belongs to the r-th mark.
    """
    expected = int(np.count_nonzero(mask))
    if kept.shape != (expected,):
        raise CheckFailed(f"compact: the mask keeps {expected}, got shape {kept.shape}")
    marks = np.flatnonzero(mask)
    source = marks if values is None else values[marks]
    answers.of_kind(
        "check_compact", "iu" if source.dtype.kind in "iu" else source.dtype.kind, kept=kept
    )
    r = answers.first(~((kept == source) | ((kept != kept) & (source != source))))
    if r is not None:
        raise CheckFailed(f"compact: element {r} must be {source[r]}, of {marks[r]}, got {kept[r]}")
