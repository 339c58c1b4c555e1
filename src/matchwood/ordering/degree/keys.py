"""By which number each rule sorts; equal numbers keep the order of the vertices.

    "degree"    largest degree - degree
    "sort"      the same for hubs; the largest degree, which no hub has, for all others
    "cluster"   0 for hubs, 1 for others
    "group"     how many of the eight groups lie above

A hub has degree > m / n, m being the number of entries.  Compared as degree * n > m: exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines

DOUBLED = (64, 32, 16, 8, 4, 2, 1)  # twice the limits of the groups, in averages


def keys(view: Any, rule: str) -> Any:
    """The number of each vertex, uint32 or uint64, where the pattern lives."""
    xp = engines.xp(view.indptr)
    degree = xp.diff(view.indptr).astype(np.int64)
    unsigned = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    n, m = view.n, view.nnz
    if n == 0:
        return degree.astype(unsigned)
    if rule == "group":
        group = xp.zeros(n, np.int64)
        for limit in DOUBLED:
            group += degree < -(-limit * m // (2 * n))
        return group.astype(unsigned)
    most = degree.max()
    hub = degree > m // n
    if rule == "cluster":
        return (~hub).astype(unsigned)
    down = most - degree
    return (xp.where(hub, down, most) if rule == "sort" else down).astype(unsigned)
