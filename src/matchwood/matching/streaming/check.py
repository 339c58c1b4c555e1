"""Is this matching as heavy as one pass over the edges promises?"""

from __future__ import annotations

from typing import Any

from matchwood.errors import CheckFailed
from matchwood.matching.check import check_matching
from matchwood.matching.streaming import EPSILON

ROUNDED_UP = 8  # units of 2^-1074 per vertex, by which a bound may have been rounded up


def check_streaming(A: Any, answer: Any, *, epsilon: float = EPSILON) -> None:
    """Raise `CheckFailed` unless `answer` is a matching within 2 + 2 epsilon of its bound."""
    check_matching(A, answer, weighted=True)
    promised = answer.bound / (2 + 2 * epsilon)
    least = promised * (1 - 1e-9) - ROUNDED_UP * len(answer.mate) * 2.0**-1074
    if not answer.weight >= least:
        raise CheckFailed(f"matching: the weight is {answer.weight}, but {promised} was promised")
