"""Is this the greedy factor?  Decided from the definition, without making it.

The greedy factor is the one in which every edge outside has an end that is full with edges that
come before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.errors import CheckFailed

Array = np.ndarray[Any, Any]


def check_greedy(u: Array, v: Array, rank: Array, taken: Array, n: int) -> None:
    """Raise `CheckFailed` unless the entries (u, v) that are `taken` are the greedy factor."""
    size = int(u.max(initial=-1)) + 1
    degree = np.bincount(u[taken], minlength=size)
    weakest = np.full(size, -1)
    np.maximum.at(weakest, u[taken], rank[taken])
    blocked_by_tail = (degree[u] == n) & (weakest[u] < rank)
    blocked_by_head = (degree[v] == n) & (weakest[v] < rank)
    wrong = ~taken & ~blocked_by_tail & ~blocked_by_head
    if wrong.any():
        k = int(wrong.argmax())
        raise CheckFailed(
            f"factor: edge ({u[k]}, {v[k]}) comes before an edge of each of its ends, or fits"
        )
