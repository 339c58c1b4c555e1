"""A list of the open vertices: where the methods that search among them begin."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.strong.cpu_arcs import OPEN
from matchwood.engines.cpu import barrier, device, share

Array = np.ndarray[Any, Any]


@device
def list_open(team: Any, mark: Array, listed: Array, sums: Array) -> Any:
    """Write the open vertices to `listed`, ascending; returns how many, -1: the team stops.

    All members call, after a barrier; ends with one.
    """
    lo, hi = share(team, mark.size)
    count = 0
    for v in range(lo, hi):
        count += mark[v] == OPEN
    sums[team.rank] = count
    if barrier(team):
        return -1
    at = np.int64(0)
    total = np.int64(0)
    for member in range(team.size):
        if member == team.rank:
            at = total
        total += sums[member]
    for v in range(np.uint64(lo), np.uint64(hi)):
        if mark[v] == OPEN:
            listed[at] = v
            at += 1
    return -1 if barrier(team) else total
