"""What is compiled here and sees arrays only: half of the entries, hashes to numbers, queues.

No Python object is touched, so these run without the interpreter lock.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import device, interrupted, kernel


@kernel
def upper(team: Any, indptr: Any, indices: Any, u: Any, v: Any, count: Any) -> None:
    """The entries at or right of the diagonal, row by row; `u` and `v` have room for all."""
    place = 0
    for i in range(indptr.size - 1):
        if interrupted(team, i):
            return
        row = indices[indptr[i] : indptr[i + 1]]
        for k in range(row.size):
            u[place] = i
            v[place] = row[k]
            place += row[k] >= i
    count[0] = place


# From hashes to numbers.  `slots` has a power of two of places, at least twice as many as nodes.


@device
def _slot(value: int, slots: Any) -> Any:
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(slots.size - 1))


@kernel
def enter(hashes: Any, slots: Any) -> int:
    """Put every node into the table; `slots` comes filled with -1.  0 when two hashes are equal."""
    for v in range(hashes.size):
        s = _slot(hashes[v], slots)
        while slots[s] >= 0:
            if hashes[slots[s]] == hashes[v]:
                return 0
            s = (s + 1) & (slots.size - 1)
        slots[s] = v
    return 1


@kernel
def look_up(team: Any, wanted: Any, hashes: Any, slots: Any, found: Any) -> None:
    """Number of the node that has each of the wanted hashes, -1 where there is none."""
    each = (wanted.size + team.size - 1) // team.size
    lo, hi = min(team.rank * each, wanted.size), min((team.rank + 1) * each, wanted.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        s = _slot(wanted[k], slots)
        while slots[s] >= 0 and hashes[slots[s]] != wanted[k]:
            s = (s + 1) & (slots.size - 1)
        found[k] = slots[s]


@kernel
def queue_order(
    team: Any, indptr: Any, indices: Any, order: Any, parent: Any, layers: Any, limit: int
) -> None:
    """Breadth-first search in the order of a queue that looks at each row from its beginning.

    Serial: the order is that of the queue.  `order` begins with the sources, layers[0] of them,
    for which `parent` is already set to themselves; elsewhere it is -1.  layers[d] becomes the
    number of vertices at most d arcs away, layers[-1] the number of layers.
    """
    begin, end, depth = 0, layers[0], 0
    while begin < end and depth < limit:
        last = end
        for i in range(begin, last):
            if interrupted(team, i):
                return
            u = order[i]
            row = indices[indptr[u] : indptr[u + 1]]
            for k in range(row.size):
                v = row[k]
                if parent[v] < 0:
                    parent[v] = u
                    order[end] = v
                    end += 1
        begin = last
        depth += 1
        layers[depth] = end
    if begin == end and depth > 0:  # the last layer was empty
        depth -= 1
    layers[layers.size - 1] = depth + 1
