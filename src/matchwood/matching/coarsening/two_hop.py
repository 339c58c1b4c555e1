"""Pairs for vertices that a matching leaves free, so that coarsening does not stall.

A matching of a star has one edge, and merging it removes one vertex of a million.  But any two
leaves have the same neighbour: they are two hops apart.  So free vertices with the same heaviest
neighbour make up a group (of equally heavy neighbours the smaller index counts), and vertices
without any neighbour another.  Each group is paired in the order of its vertices.

Of each group at most one vertex stays free.  After a maximal matching of M edges the heaviest
neighbours are matched vertices, so at most 2 M + 1 stay free, and of n vertices at most
3 n / 4 + 1 are left: a hierarchy of any graph has O(log n) levels.
"""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.primitives.row_reduce import (
    trusted_strongest_neighbours as strongest_neighbours,
)
from matchwood.primitives.sort import radix_sort


def pair_free(view: Any, mate: Any, *, threads: int | None = None) -> Any:
    """A copy of `mate` in which free vertices with the same heaviest neighbour are paired."""
    xp = engines.xp(mate)
    mate = mate.copy()
    free = xp.flatnonzero(mate < 0).astype(mate.dtype)
    if free.size < 2:
        return mate
    heaviest, _ = strongest_neighbours(view.indptr, view.indices, view.data, 1, threads=threads)
    keys = xp.ascontiguousarray(heaviest[free, 0])
    keys, free = radix_sort(keys, free, threads=threads)
    place = xp.arange(free.size)
    within = place - xp.searchsorted(keys, keys, "left")  # place in the group
    first = xp.flatnonzero((within[:-1] % 2 == 0) & (keys[1:] == keys[:-1]))
    u, v = free[first], free[first + 1]
    mate[u], mate[v] = v, u
    return mate
