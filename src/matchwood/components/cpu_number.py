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
    number = np.int64(0)
    for member in range(team.rank):
        number += sums[member]
    for v in range(lo, hi):
        if parent[v] == v:
            labels[v] = number
            number += 1
    if team.rank == team.size - 1:
        sums[team.size] = number
    if barrier(team):
        return
    for v in range(lo, hi):
        if parent[v] != v:
            labels[v] = labels[parent[v]]
