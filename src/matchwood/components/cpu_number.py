"""Numbers for components, once every vertex knows the smallest of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import barrier, device, share

Array = np.ndarray[Any, Any]


@device
def number_roots(team: Any, parent: Array, labels: Array, sums: Array) -> None:
    """labels[v] = how many roots come before the root of v; sums[size] = how many there are.

    parent[v] is the root of v, the smallest vertex of its component.
    """
    lo, hi = share(team, parent.size)
    roots = 0
    for v in range(lo, hi):
        roots += parent[v] == v
    sums[team.rank] = roots
    if barrier(team):
        return
    number = total = np.int64(0)
    for member in range(team.size):
        if member == team.rank:
            number = total
        total += sums[member]
    if team.rank == team.size - 1:
        sums[team.size] = total
    if total == 1:
        labels[lo:hi] = 0
        return
    # Others get a number here too, which the second loop replaces, and a root its own once more:
    # no branches to foresee.
    for v in range(lo, hi):
        labels[v] = number
        number += parent[v] == v
    if barrier(team):
        return
    for v in range(lo, hi):
        labels[v] = labels[parent[v]]
