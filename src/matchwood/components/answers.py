"""What the checks of components take as an answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines


def count_and_labels(answer: Any) -> tuple[int | None, Any]:
    """From `Components`, a pair as SciPy returns it, or labels alone (then the count is None)."""
    count: int | None = None
    if hasattr(answer, "labels"):
        count, answer = answer.count, answer.labels
    elif isinstance(answer, tuple):
        count, answer = answer
    return count, np.asarray(engines.moved(answer, "cpu"), np.int64)
