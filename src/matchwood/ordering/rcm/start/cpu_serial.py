"""The start of one component by one thread, for kernels.

The rule is `find_start` in reference.py.  `try_start` is its case for small graphs, `search_start`
the one for larger graphs.  Both leave the order from the start in the queue.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device, fail, kernel, stopping
from matchwood.ordering.rcm.cpu_records import (
    BROKEN,
    EVERYTHING,
    FACT,
    Csr,
    Limits,
    Sorter,
    up_to,
)
from matchwood.ordering.rcm.cpu_sort import ONE, ZERO, key_of
from matchwood.ordering.rcm.serial.cpu import component, release
from matchwood.ordering.rcm.start.cpu_tried import Tried, try_others

Array = np.ndarray[Any, Any]


@device
def _least(indptr: Array, queue: Array, a: Any, b: Any, shift: Any) -> Any:
    """The vertex of least (degree, vertex) at places a to b."""
    best = key_of(indptr, queue[a], shift)
    for x in range(a + ONE, b):
        best = min(best, key_of(indptr, queue[x], shift))
    return queue.dtype.type(best & ((ONE << shift) - ONE))


@device
def last_of_least(indptr: Array, queue: Array, a: Any, b: Any, v: Any) -> Any:
    """The greatest vertex at places a to b of the same degree as v."""
    one = queue.dtype.type(1)
    degree = indptr[v + one] - indptr[v]
    last = v
    for x in range(a, b):
        u = queue[x]
        if u > last and indptr[u + one] - indptr[u] == degree:
            last = u
    return last


@device
def least_and_last(indptr: Array, loops: Any) -> tuple[Any, Any]:
    """Of all vertices that have neighbours the first and the last of least degree."""
    n = np.uint64(indptr.size - 1)
    least: Any = EVERYTHING
    first: Any = n
    last: Any = n
    for v in range(n):
        degree = np.uint64(indptr[v + ONE] - indptr[v])
        if loops < degree <= least:
            first = v if degree < least else first
            last, least = v, degree
    return first, last


@device
def try_start(
    team: Any,
    csr: Csr,
    mark: Array,
    queue: Array,
    spare: Array,
    at: Any,
    end: Any,
    sorter: Sorter,
) -> tuple[Any, Any]:
    """Try the starts of a component, whose members are at places at..end, and leave the best order.

    Returns the number of levels and of starts that were tried; no levels: the pattern is BROKEN.
    """
    indptr = csr.indptr
    v = _least(indptr, queue, at, end, sorter.shift)
    z = last_of_least(indptr, queue, at, end, v)
    release(mark, queue, at, end)
    reached, levels, _, last, band, _ = component(team, csr, mark, queue, v, at, up_to(end), sorter)
    if reached != end:
        return ZERO, 1
    return try_after(
        team, csr, mark, queue, spare, Tried(at, end, v, z, levels, last, band), sorter
    )


@device
def _search(
    team: Any, rows: Any, mark: Array, queue: Array, start: Any, at: Any, end: Any, bound: Any
) -> tuple[Any, Any, Any, Any, bool]:
    csr, sorter = rows
    limits = Limits(end, EVERYTHING, bound, EVERYTHING, EVERYTHING, ONE)
    reached, levels, _, last, band, whole = component(
        team, csr, mark, queue, start, at, limits, sorter
    )
    return reached, levels, last, band, whole


@device
def _least_of(rows: Any, queue: Array, a: Any, b: Any) -> Any:
    csr, sorter = rows
    return _least(csr.indptr, queue, a, b, sorter.shift)


@device
def try_after(
    team: Any, csr: Csr, mark: Array, queue: Array, spare: Array, first: Tried, sorter: Sorter
) -> tuple[Any, Any]:
    """`try_start` from where the queue holds the order from the first start."""
    return try_others(team, _search, _least_of, (csr, sorter), mark, queue, spare, first)


@device
def search_start(
    team: Any, csr: Csr, mark: Array, queue: Array, at: Any, end: Any, sorter: Sorter
) -> tuple[Any, Any]:
    """Search for the start of a component, whose members are at places at..end, and order it.

    Returns the number of levels and of searches; no levels: the pattern is BROKEN.
    """
    indptr, shift = csr.indptr, sorter.shift
    v = _least(indptr, queue, at, end, shift)
    release(mark, queue, at, end)
    reached, levels, width, last, _, _ = component(
        team, csr, mark, queue, v, at, up_to(end), sorter
    )
    searches = 1
    while True:
        if reached != end:
            return ZERO, searches
        if stopping(team):
            return levels, searches
        x = _least(indptr, queue, last, end, shift)
        release(mark, queue, at, end)
        limits = Limits(end, width, EVERYTHING, EVERYTHING, EVERYTHING, ONE)
        reached, new_levels, new_width, last, _, narrower = component(
            team, csr, mark, queue, x, at, limits, sorter
        )
        searches += 1
        if not narrower:
            release(mark, queue, at, reached)
            reached, _, _, _, _, _ = component(team, csr, mark, queue, v, at, up_to(end), sorter)
            return levels if reached == end else ZERO, searches
        if reached != end:
            return ZERO, searches
        if new_levels <= levels:
            return new_levels, searches
        v, levels, width = x, new_levels, new_width


@kernel
def try_starts(
    team: Any,
    csr: Csr,
    mark: Array,
    queue: Array,
    spare: Array,
    at: Any,
    end: Any,
    sorter: Sorter,
    facts: Array,
) -> None:
    """`try_start`, for the host."""
    if team.rank > 0:
        return
    levels, tried = try_start(team, csr, mark, queue, spare, at, end, sorter)
    if levels == ZERO and not stopping(team):
        fail(team, BROKEN, np.int64(at))
    facts[FACT.end], facts[FACT.levels], facts[FACT.tried] = end, levels, tried
