"""The start of one component by one thread, for kernels.

The rule is `find_start` in reference.py.  `try_start` is its case for small graphs, `search_start`
the one for larger graphs.  Both leave the order from the start in the queue.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
from matchwood.teams import device, fail, kernel, stopping

Array = np.ndarray[Any, Any]


@device
def _least(indptr: Array, queue: Array, a: Any, b: Any, shift: Any) -> Any:
    """The vertex of least (degree, vertex) at places a to b."""
    best = key_of(indptr, queue[a], shift)
    for x in range(a + ONE, b):
        best = min(best, key_of(indptr, queue[x], shift))
    return queue.dtype.type(best & ((ONE << shift) - ONE))


@device
def _last_of_least(indptr: Array, queue: Array, a: Any, b: Any, v: Any) -> Any:
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
def try_start(
    team: Any, csr: Csr, mark: Array, queue: Array, at: Any, end: Any, sorter: Sorter
) -> tuple[Any, Any]:
    """Try the starts of a component, whose members are at places at..end, and leave the best order.

    Returns the number of levels and of starts that were tried; no levels: the pattern is BROKEN.
    """
    indptr, shift = csr.indptr, sorter.shift
    v = _least(indptr, queue, at, end, shift)
    z = _last_of_least(indptr, queue, at, end, v)
    release(mark, queue, at, end)
    reached, levels, _, last, band, _ = component(team, csr, mark, queue, v, at, up_to(end), sorter)
    if reached != end:
        return ZERO, 1
    x = _least(indptr, queue, last, end, shift)
    y = x  # until the search from x is done
    best, here = v, True  # `here`: the queue holds the order from the best
    tried = 1
    for turn in range(3):
        start = x if turn == 0 else (y if turn == 1 else z)
        if start == v or (turn > 0 and start == x) or (turn == 2 and start == y):
            continue
        if stopping(team):
            return levels, tried
        release(mark, queue, at, reached)
        # the order from x is needed as a whole, for its last level
        bound = EVERYTHING if turn == 0 else band
        limits = Limits(end, EVERYTHING, bound, EVERYTHING, EVERYTHING, ONE)
        reached, new_levels, _, last, new_band, whole = component(
            team, csr, mark, queue, start, at, limits, sorter
        )
        if whole and reached != end:
            return ZERO, tried
        tried += 1
        if turn == 0:
            y = _least(indptr, queue, last, end, shift)
        here = new_band < band
        if here:
            best, band, levels = start, new_band, new_levels
    if not here:
        release(mark, queue, at, reached)
        reached, _, _, _, _, _ = component(team, csr, mark, queue, best, at, up_to(end), sorter)
    return levels if reached == end else ZERO, tried


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
    at: Any,
    end: Any,
    sorter: Sorter,
    facts: Array,
) -> None:
    """`try_start`, for the host."""
    if team.rank > 0:
        return
    levels, tried = try_start(team, csr, mark, queue, at, end, sorter)
    if levels == ZERO and not stopping(team):
        fail(team, BROKEN, np.int64(at))
    facts[FACT.end], facts[FACT.levels], facts[FACT.tried] = end, levels, tried
