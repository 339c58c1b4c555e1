"""Gaps and arrangements on a team.  Definitions: __init__.py.

A member takes rows with an equal part of the entries.  Sums are integers, so it does not matter in
which order they are added up.  Rows of another order are sorted in a buffer of the member's own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import crew, device, interrupted, kernel, share_rows
from matchwood.ordering.cpu import log_of, sort_places
from matchwood.ordering.gap import table

Array = np.ndarray[Any, Any]


class Wanted(NamedTuple):
    """Which measures are asked for; the others stay 0."""

    linear_arrangement: bool
    log_arrangement: bool
    linear_gap: bool
    log_gap: bool


@device
def _lengths(u: int, row: Array, places: Array, logs: Array, with_logs: bool) -> Any:
    """Sums of the lengths of u's edges to larger vertices, and of their logarithms."""
    total = np.int64(0)
    log_total = np.int64(0)
    at = np.int64(places[np.uint64(u)]) if places.size > 0 else np.int64(u)
    for k in range(row.size):
        v = row[k]
        if u < np.int64(v):
            to = np.int64(places[np.uint64(v)]) if places.size > 0 else np.int64(v)
            distance = abs(at - to)
            total += distance
            if with_logs and distance > 0:
                log_total += log_of(distance, logs)
    return total, log_total


@device
def _extent(row: Array, places: Array) -> Any:
    if row.size == 0:
        return np.int64(0)
    if places.size == 0:
        return np.int64(row[row.size - 1]) - np.int64(row[0])
    least = most = np.int64(places[np.uint64(row[0])])
    for k in range(1, row.size):
        at = np.int64(places[np.uint64(row[k])])
        least, most = min(least, at), max(most, at)
    return most - least


@device
def _log_gaps(row: Array, logs: Array) -> Any:
    """The sum of the logarithms of the gaps of a sorted row."""
    total = np.int64(0)
    for k in range(1, row.size):
        gap = np.int64(row[k]) - np.int64(row[k - 1])
        if gap > 0:
            total += log_of(gap, logs)
    return total


@kernel
def _measure(
    team: Any, indptr: Array, indices: Array, places: Array, wanted: Wanted, logs: Array,
    buffers: Array, sums: Array,
) -> None:  # fmt: skip
    """Add up the measures that are wanted; `places` is empty for the order as it is."""
    lo, hi = share_rows(team, indptr)
    sorting = wanted.log_gap and places.size > 0
    mine, other = buffers[team.me, 0], buffers[team.me, 1]
    arrangement = log_arrangement = gap = log_gap = np.int64(0)
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        row = indices[np.uint64(indptr[u]) : np.uint64(indptr[u + 1])]
        if wanted.linear_arrangement or wanted.log_arrangement:
            length, log_length = _lengths(u, row, places, logs, wanted.log_arrangement)
            arrangement += length
            log_arrangement += log_length
        if sorting:
            for k in range(row.size):
                mine[k] = places[np.uint64(row[k])]
            sort_places(team, mine, other, row.size)
            gap += _extent(mine[: row.size], places[:0])
            log_gap += _log_gaps(mine[: row.size], logs)
        else:
            if wanted.linear_gap:
                gap += _extent(row, places)
            if wanted.log_gap:
                log_gap += _log_gaps(row, logs)
    sums[team.me, 0], sums[team.me, 1] = arrangement, log_arrangement
    sums[team.me, 2], sums[team.me, 3] = gap, log_gap


def measure(
    view: Any, place: Any, which: tuple[str, ...], *, threads: int | None = None
) -> dict[str, int]:
    team = crew(threads, work=view.nnz + view.n)
    unsigned = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    wanted = Wanted(*(name in which for name in Wanted._fields))
    places = np.empty(0, unsigned) if place is None else place.view(unsigned)
    sorting = wanted.log_gap and place is not None and view.n > 0
    longest = int(np.diff(view.indptr).max()) if sorting else 0
    buffers = np.empty((team.size, 2, max(1, longest)), unsigned)
    sums = np.zeros((team.size, 4), np.int64)
    team.run(
        _measure, view.indptr, view.indices.view(unsigned), places, wanted, table(), buffers, sums
    )
    found = dict(zip(Wanted._fields, sums.sum(axis=0).tolist(), strict=True))
    return {name: found[name] for name in which}
