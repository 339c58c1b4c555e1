"""Sums over the rows of a pattern: what comes to each vertex along its arcs.

Used by the engine of one machine (cpu.py), which makes scores of the sums at once, and by a rank of
a grid (block/cpu.py), whose rows are parts of rows.

Rows are cut into windows: vertices that follow each other, WINDOW at most, with about TASK entries.
Where lengths of rows change often, the rows of a window are visited by length, since a row's end
that the processor does not foresee costs as much as 20 entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.teams import crew, device, kernel, next_chunk

Array = np.ndarray[Any, Any]

WINDOW = 4096  # vertices; a buffer of 16 or 32 KiB stays in the first-level cache
TASK = 1 << 16  # entries of a window, about: some 40 us of work
CALM = 8  # at most one in so many rows differs from the row before: then they are left as they are
LENGTHS = 1024  # rows of this length and longer are not told apart
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
LONG = np.uint64(1024)  # entries; longer rows are added up in pieces of this length
FIVE, SIX, SEVEN, EIGHT = np.uint64(5), np.uint64(6), np.uint64(7), np.uint64(8)


class Plan(NamedTuple):
    """Window w has the vertices starts[w] .. starts[w + 1] - 1, visited in the order of `order`."""

    starts: Any
    order: Any  # uint16: the vertex less the first of its window


@kernel
def _by_length(team: Any, indptr: Array, starts: Array, order: Array, counts: Array) -> None:
    """Sort the vertices of each window by the length of their rows; counting, so stable."""
    mine = counts[team.rank]
    window = next_chunk(team, starts.size - 1, 1)
    while window >= 0:
        first, last = starts[window], starts[window + 1]
        mine[:] = 0
        changes, before = 0, np.int64(-1)
        for v in range(first, last):
            length: Any = np.int64(indptr[v + 1]) - np.int64(indptr[v])
            if length != before:
                changes += 1
            mine[min(length, LENGTHS - 1)] += 1
            before = length
        at = first
        for length in range(LENGTHS):
            count = mine[length]
            mine[length] = at
            at += count
        for v in range(first, last):
            if changes * CALM <= last - first:
                order[v] = v - first
            else:
                length = min(np.int64(indptr[v + 1]) - np.int64(indptr[v]), LENGTHS - 1)
                order[mine[length]] = v - first
                mine[length] += 1
        window = next_chunk(team, starts.size - 1, 1)


@device
def _pulled(given: Array, indices: Array, k: Any, end: Any, zero: Any) -> Any:
    """The sum over a row.  Four sums at once, since each addition waits for the one before."""
    a, b, c, d = zero, zero, zero, zero
    while k + EIGHT <= end:
        a += given[indices[k]]
        b += given[indices[k + ONE]]
        c += given[indices[k + TWO]]
        d += given[indices[k + THREE]]
        a += given[indices[k + FOUR]]
        b += given[indices[k + FIVE]]
        c += given[indices[k + SIX]]
        d += given[indices[k + SEVEN]]
        k += EIGHT
    if k + FOUR <= end:
        a += given[indices[k]]
        b += given[indices[k + ONE]]
        c += given[indices[k + TWO]]
        d += given[indices[k + THREE]]
        k += FOUR
    if k + TWO <= end:
        a += given[indices[k]]
        b += given[indices[k + ONE]]
        k += TWO
    if k < end:
        c += given[indices[k]]
    return (a + b) + (c + d)


@device
def _pulled_by_weight(
    given: Array, indices: Array, weights: Array, k: Any, end: Any, zero: Any
) -> Any:
    total = zero
    while k < end:
        total += given[indices[k]] * weights[k]
        k += ONE
    return total


@device
def _pulled_in_pieces(
    given: Array, indices: Array, weights: Array, k: Any, end: Any, zero: Any
) -> Any:
    """The sum over a long row, whose digits would get lost in single precision."""
    total = 0.0
    while k < end:
        piece = min(k + LONG, end)
        if weights.size > 0:
            total += np.float64(_pulled_by_weight(given, indices, weights, k, piece, zero))
        else:
            total += np.float64(_pulled(given, indices, k, piece, zero))
        k = piece
    return total


@device
def pull_window(
    indptr: Array,
    indices: Array,
    weights: Array,
    order: Array,
    given: Array,
    sums: Array,
    zero: Any,
) -> None:
    """The sums of all rows of a window; `indptr` and `order` are its parts."""
    for at in range(order.size):
        v = np.uint64(order[at])
        begin, end = np.uint64(indptr[v]), np.uint64(indptr[v + ONE])
        if end - begin > LONG:
            sums[v] = _pulled_in_pieces(given, indices, weights, begin, end, zero)
        elif weights.size > 0:
            sums[v] = _pulled_by_weight(given, indices, weights, begin, end, zero)
        else:
            sums[v] = _pulled(given, indices, begin, end, zero)


def plan_of(indptr: Array, threads: int | None) -> Plan:
    n = indptr.size - 1
    part = indptr[1:].astype(np.int64) // TASK
    window = np.arange(n) // WINDOW
    new = np.flatnonzero((np.diff(part) != 0) | (np.diff(window) != 0)) + 1
    starts = np.concatenate([[0], new, [n]]).astype(np.int64)
    team = crew(threads, work=2 * n)
    order = np.empty(n, np.uint16)
    team.run(_by_length, indptr, starts, order, np.empty((team.size, LENGTHS), np.int64))
    return Plan(starts, order)
