"""Marked entries on a team: a bit for each, and the edges from the bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import atomic_or, barrier, crew, device, fail, interrupted, kernel, share
from matchwood.engines.cpu.hints import trailing_zeros
from matchwood.spanning.forest.cpu_order import BROKEN, ERRORS, ONE

Array = np.ndarray[Any, Any]

_SIX, _LOW = np.uint64(6), np.uint64(63)


@device
def mark(marks: Array, k: Any) -> None:
    """Take entry k into the forest."""
    k = np.uint64(k)
    atomic_or(marks, k >> _SIX, ONE << (k & _LOW))


@device
def _row_of(indptr: Array, k: Any) -> int:
    """The row that holds entry k."""
    low, high = 0, indptr.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if np.uint64(indptr[middle]) <= k:
            low = middle
        else:
            high = middle
    return low


@device
def _ones(word: Any) -> int:
    count = 0
    while word:
        word &= word - ONE
        count += 1
    return count


@kernel
def _collect(
    team: Any,
    indptr: Array,
    indices: Array,
    data: Array,
    marks: Array,
    sums: Array,
    edges: Array,
    weights: Array,
) -> None:
    """sums[size] = how many are marked; their ends and weights in the order of entries."""
    lo, hi = share(team, marks.size)
    count = 0
    for i in range(lo, hi):
        if marks[i]:
            count += _ones(marks[i])
    sums[team.rank] = count
    if barrier(team):
        return
    place = 0
    for member in range(team.rank):
        place += sums[member]
    if team.rank == team.size - 1:
        sums[team.size] = place + count
    if place + count > edges.shape[0]:
        fail(team, BROKEN, place + count)
        return
    if count == 0:
        return
    u = -1
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        word = marks[i]
        while word:
            k = (np.uint64(i) << _SIX) + np.uint64(trailing_zeros(word))
            word &= word - ONE
            if u < 0:
                u = _row_of(indptr, k)
            while np.uint64(indptr[u + 1]) <= k:
                u += 1
            edges[place, 0] = u
            edges[place, 1] = indices[k]
            weights[place] = data[k]
            place += 1


def no_marks(nnz: int) -> Array:
    """A bitmap of entries, none of them marked."""
    return np.zeros(-(-nnz // 64), np.uint64)


def forest_of(costs: Any, marks: Array, threads: int | None) -> tuple[Array, Array]:
    """Edges, shape (m, 2), and weights of what is marked."""
    team = crew(threads, work=costs.n + marks.size)
    sums = np.zeros(team.size + 1, np.int64)
    edges = np.empty((costs.n, 2), costs.indices.dtype)
    weights = np.empty(costs.n, costs.data.dtype)
    team.run(_collect, *costs[:3], marks, sums, edges, weights, errors=ERRORS)
    count = int(sums[-1])
    return edges[:count], weights[:count]
