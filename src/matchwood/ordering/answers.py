"""What checks of orders ask: a permutation, and keys that ascend along it."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed


def permutation(caller: str, problem: str, perm: Any, n: int) -> Any:
    """`perm`, or the perm of a result, as an int64 array on the CPU that holds 0..n-1 once each."""
    given = getattr(perm, "perm", perm)
    order = answers.integers(caller, problem, "perm", given, (n,), "cpu")
    at = answers.first((order < 0) | (order >= n))
    if at is not None:
        raise CheckFailed(f"{problem}: perm holds {order[at]} at {at}, which is no vertex")
    seen = np.zeros(n, bool)
    seen[order] = True
    at = answers.first(~seen)
    if at is not None:
        raise CheckFailed(f"{problem}: vertex {at} is missing")
    return order


def check_ascending(problem: str, order: Any, *keys: Any) -> None:
    """Raise unless (keys of v, v) ascends along the order."""
    before, after = order[:-1], order[1:]
    right = before < after
    for key in reversed(keys):
        one, other = key[before], key[after]
        right = (one < other) | ((one == other) & right)
    at = answers.first(~right)
    if at is not None:
        raise CheckFailed(
            f"{problem}: vertex {after[at]} must come before vertex {before[at]}, "
            f"which has place {at}"
        )
