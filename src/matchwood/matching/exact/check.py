"""Can this matching be the heaviest?  It must not be lighter than the greedy one, nor too heavy.

An optimum can be confirmed by duals of all odd sets of vertices, which SciPy and rustworkx do
not hand out; so this check only finds answers that are wrong for sure.
"""

from __future__ import annotations

from typing import Any

from matchwood.errors import CheckFailed
from matchwood.matching.bound import upper_bound
from matchwood.matching.check import ROUNDING, check_matching
from matchwood.matching.weighted import weighted_matching


def check_exact(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` where `answer` is no matching, or certainly not the heaviest."""
    check_matching(A, answer, weighted=True)
    other = weighted_matching(A)
    if answer.weight < other.weight * (1 - ROUNDING):
        raise CheckFailed(
            f"matching: the weight is {answer.weight}, but there is one of {other.weight}"
        )
    bound = upper_bound(A, other).value
    if answer.weight > bound * (1 + ROUNDING):
        raise CheckFailed(f"matching: the weight is {answer.weight}, more than the bound {bound}")
