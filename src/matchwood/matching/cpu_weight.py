"""The weight of a matching on a team, the same to the last bit at any number of threads.

Each vertex has the weight of its own edge, so every edge is counted twice.  Half of a sum is exact.
Blocks of a fixed size are summed one by one, then their sums, so the order of additions depends
neither on the number of threads nor on the method.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, device, share

Array = np.ndarray[Any, Any]
BLOCK = 4096  # vertices


def block_sums(n: int) -> Array:
    """The array that `sum_blocks` fills."""
    return np.zeros(-(-n // BLOCK), np.float64)


@device
def sum_blocks(team: Team, weights: Array, sums: Array) -> None:
    """sums[b] = the weights of block b; weights are final, and 0 for free vertices."""
    lo, hi = share(team, sums.size)
    for b in range(lo, hi):
        total = 0.0
        part = weights[b * BLOCK : min((b + 1) * BLOCK, weights.size)]
        for i in range(part.size):
            total += np.float64(part[i])
        sums[b] = total


def matched_weight(sums: Array) -> float:
    """The weight of the matching from its blocks; infinite where twice the weight overflows."""
    with np.errstate(over="ignore"):
        return float(sums.sum()) / 2
