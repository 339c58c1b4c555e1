"""Cuthill-McKee by one thread.

The queue is the order itself.  `mark[v]` is FREE until v is placed.  A component is one call of
`follow`, which also finds the levels, their width and the bandwidth for the search of a start.

The bandwidth costs nothing: a parent's last child is its farthest neighbour.  If a parent has no
child, all vertices placed behind it are children of earlier parents, which are farther from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import advance, device, expanded, kernel, stopping
from matchwood.ordering.rcm.cpu_records import (
    CUT,
    EVERYTHING,
    FACT,
    FREE,
    PLACED,
    WHOLE,
    WIDE,
    Csr,
    Limits,
    Sorter,
)
from matchwood.ordering.rcm.cpu_sort import ONE, ZERO, fetch_rows, sort_children

Array = np.ndarray[Any, Any]

SAMPLED_ROWS = np.uint64(64)
CHECK_MASK = np.uint64(4095)  # Ctrl-C is checked for at every 4096th place: where these bits are 0


@device
def rows_alike(indptr: Array, indices: Array) -> bool:
    """Whether most rows have the same entries as the next one, counted from the diagonal.

    Some 64 rows are looked at.
    """
    n = np.uint64(indptr.size - 1)
    sampled = alike = 0
    for v in range(ZERO, max(n, ONE) - ONE, n // SAMPLED_ROWS + ONE):
        a, b, c = indptr[v], indptr[v + ONE], indptr[v + ONE + ONE]
        same = b - a == c - b
        if same:
            for k in range(np.uint64(b - a)):
                same = same and indices[a + k] + ONE == indices[b + k]
        sampled += 1
        alike += same
    return 2 * alike > sampled


@device
def arcs_of(indptr: Array, queue: Array, a: Any, b: Any) -> Any:
    """Arcs that leave the vertices at places a to b."""
    arcs = ZERO
    for x in range(a, b):
        v = queue[x]
        arcs += np.uint64(indptr[v + queue.dtype.type(1)] - indptr[v])
    return arcs


@expanded
def place_free(
    indices: Array, first: Any, last: Any, mark: Array, queue: Array, tail: Any, guessable: bool
) -> Any:
    """Place the free neighbours among these entries; returns the end of the queue."""
    if guessable:
        for k in range(first, last):
            v = indices[k]
            if mark[v] != PLACED:
                mark[v] = PLACED
                queue[tail] = v
                tail += ONE
    else:  # without a branch; so one place behind the last may be written
        for k in range(first, last):
            v = indices[k]
            queue[tail] = v
            tail += np.uint64(mark[v] != PLACED)
            mark[v] = PLACED
    return tail


@device
def follow(
    team: Any,
    csr: Csr,
    mark: Array,
    queue: Array,
    begin: Any,
    end: Any,
    levels: Any,
    width: Any,
    limits: Limits,
    sorter: Sorter,
) -> tuple[Any, Any, Any, Any, Any, Any, int]:
    """Go on from a level, which is at places begin to end.

    Ends when the component is complete or all places up to the limit are filled (WHOLE); at the
    limit of the width, of the bandwidth or of the arcs (CUT); or in front of a level from which
    at least `limits.wide` arcs leave (WIDE).  Returns the last level's places, the number of
    levels, their width, the end, the bandwidth, and the code.

    Which neighbours are placed already is the one thing that the processor cannot foresee.  Short
    rows of an irregular graph take 0.5 to 0.8 of the time without a branch; regular grids take 1.1
    times as long, and long rows, of which most neighbours are placed, twice.
    """
    indptr, indices = csr.indptr, csr.indices
    one = indices.dtype.type(1)
    i, tail, band = begin, end, ZERO
    budget, wide, row = limits.arcs, limits.wide, limits.row
    while i < tail and tail < limits.places:
        if i == end:
            if tail - begin > width:
                width = tail - begin
                if width >= limits.width:
                    return begin, end, levels, width, tail, band, CUT
            levels += ONE
            begin, end = end, tail
            if (end - begin) * row >= wide and arcs_of(indptr, queue, begin, end) >= wide:
                return begin, end, levels, width, tail, band, WIDE
        if i & CHECK_MASK == ZERO and stopping(team):
            return begin, end, levels, width, tail, band, CUT
        u = queue[i]
        i += ONE
        fetch_rows(indptr, indices, queue, i, tail)
        first, last = np.uint64(indptr[u]), np.uint64(indptr[u + one])
        if last - first > budget:
            return begin, end, levels, width, tail, band, CUT
        budget -= last - first
        head = tail
        tail = place_free(indices, first, last, mark, queue, tail, csr.guessable)
        if tail - i > band:
            band = tail - i
            if band >= limits.band:
                return begin, end, levels, width, tail, band, CUT
        sort_children(indptr, queue, head, tail - head, sorter)
    # the level of the parents may be the last, or that of their children
    if tail - begin > width:
        width = tail - begin
    if tail > end:
        levels += ONE
        begin, end = end, tail
    return begin, end, levels, width, tail, band, CUT if width >= limits.width else WHOLE


@device
def component(
    team: Any,
    csr: Csr,
    mark: Array,
    queue: Array,
    start: Any,
    at: Any,
    limits: Limits,
    sorter: Sorter,
) -> tuple[Any, Any, Any, Any, Any, bool]:
    """Place the component of `start` from place `at` on, by `follow`.

    Returns the end, the number of levels, their width, where the last one begins, the bandwidth,
    and whether the component is complete.
    """
    queue[at] = start
    mark[start] = PLACED
    begin, _, levels, width, tail, band, code = follow(
        team, csr, mark, queue, at, at + ONE, ONE, ONE, limits, sorter
    )
    return tail, levels, width, begin, band, code == WHOLE


@device
def release(mark: Array, queue: Array, a: Any, b: Any) -> None:
    """Make the vertices at places a to b free again."""
    for x in range(a, b):
        mark[queue[x]] = FREE


@kernel
def order_serial(
    team: Any,
    csr: Csr,
    mark: Array,
    queue: Array,
    start: Any,
    at: Any,
    limits: Limits,
    sorter: Sorter,
    facts: Array,
) -> None:
    """`component`, for the host."""
    if team.rank > 0:
        return
    end, levels, width, last, _, whole = component(
        team, csr, mark, queue, start, at, limits, sorter
    )
    facts[FACT.end], facts[FACT.levels], facts[FACT.width], facts[FACT.last] = (
        end, levels, width, last
    )  # fmt: skip
    facts[FACT.code] = WHOLE if whole else CUT
    advance(team, np.int64(end - at))


def order(run: Any, start: int, queue: Array, at: int, limit: int, most: Any = EVERYTHING) -> None:
    """Place the component of `start` from place `at` on; `run` is rcm.cpu.Run.

    Gives up when two neighbouring levels have `most` vertices.
    """
    limits = Limits(
        np.uint64(limit), np.uint64(most), EVERYTHING, EVERYTHING, EVERYTHING, np.uint64(1)
    )
    run.alone.run(
        order_serial, run.csr, run.mark, queue, run.unsigned(start), np.uint64(at), limits,
        run.sorter(), run.facts,
    )  # fmt: skip
