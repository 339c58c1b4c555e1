"""Vertices by (degree, vertex), and rows whose neighbours come in that order."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device
from matchwood.ordering.rcm.cpu_sort import ONE, ZERO, fetch_rows

Array = np.ndarray[Any, Any]


@device
def count_degrees(indptr: Array, indices: Array, loops: bool, degree: Array) -> None:
    n = np.uint64(degree.size)
    for v in range(n):
        degree[v] = indptr[v + ONE] - indptr[v]
    if loops:
        for v in range(n):
            own = indices.dtype.type(v)
            found = degree.dtype.type(0)
            for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + ONE])):
                found += degree.dtype.type(indices[k] == own)
            degree[v] -= found


@device
def rank(degree: Array, ranked: Array, count: Array) -> None:
    """The vertices by (degree, vertex); `count` has room for a number for each degree."""
    n = np.uint64(degree.size)
    one = count.dtype.type(1)
    most = degree.dtype.type(0)
    for v in range(n):
        most = max(most, degree[v])
    for d in range(np.uint64(most) + ONE):
        count[d] = 0
    for v in range(n):
        count[degree[v]] += one
    total = count.dtype.type(0)
    for d in range(np.uint64(most) + ONE):
        here = count[d]
        count[d] = total
        total += here
    for v in range(n):
        d = degree[v]
        ranked[count[d]] = v
        count[d] += one


@device
def first_of_least(degree: Array) -> Any:
    """The vertex of least (degree, vertex)."""
    n = np.uint64(degree.size)
    least = degree[0]
    for v in range(n):
        least = min(least, degree[v])
    first: Any = ZERO
    while degree[first] != least:
        first += ONE
    return first


@device
def sort_rows(indptr: Array, indices: Array, ranked: Array, place: Array, sorted_: Array) -> bool:
    """Append every vertex, by (degree, vertex), to the rows of its neighbours.

    False if a row does not get the length that it should have: the pattern is not symmetric.
    """
    n, room = np.uint64(ranked.size), np.uint64(indices.size)
    one = indptr.dtype.type(1)
    for v in range(n):
        place[v] = indptr[v]
    for r in range(n):
        fetch_rows(indptr, indices, ranked, r, n)
        v = ranked[r]
        for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + one])):
            u = indices[k]
            at = place[u]
            if np.uint64(at) >= room:
                return False
            sorted_[at] = v
            place[u] = at + one
    right = True
    for v in range(n):
        right &= place[v] == indptr[v + ONE]
    return right
