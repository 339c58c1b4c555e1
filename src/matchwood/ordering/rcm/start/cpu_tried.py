"""The rule of a small graph, for kernels of one thread: of four starts that of the best order.

The rule is `_tried_start` in reference.py.  Two kernels follow it, each with a search of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import inlined, stopping
from matchwood.ordering.rcm.cpu_records import EVERYTHING, PLACED
from matchwood.ordering.rcm.cpu_sort import ZERO
from matchwood.ordering.rcm.serial.cpu import release

Array = np.ndarray[Any, Any]


class Tried(NamedTuple):
    """A component, whose order from its first start is in the queue."""

    at: Any  # its places
    end: Any
    v: Any  # the first start: the first vertex of least degree
    z: Any  # the last one
    levels: Any  # of the order from v
    last: Any  # where the last of them begins
    band: Any  # the bandwidth


@inlined
def try_others(
    team: Any,
    search: Any,
    least: Any,
    rows: Any,
    mark: Array,
    queue: Array,
    spare: Array,
    first: Tried,
) -> tuple[Any, Any]:
    """Try the other starts of a component, and leave the best order in the queue.

        search(team, rows, mark, queue, start, at, end, bound)
            places the component, unless its bandwidth comes to the bound: the place that was
            reached, the levels, where the last one begins, the bandwidth, whether it is complete
        least(rows, queue, a, b)
            the vertex of least (degree, vertex) at places a to b

    Returns the number of levels and of starts that were tried; no levels: the pattern is BROKEN.
    """
    at, end, v, z, levels, last, band = first
    x = least(rows, queue, last, end)
    y = x  # until the search from x is done
    best, other = queue, spare  # the best order so far, and room for another
    reached = end
    fresh = False  # whether the vertices at places at..reached of `other` are those marked
    tried = 1
    for turn in range(3):
        start = x if turn == 0 else (y if turn == 1 else z)
        if start == v or (turn > 0 and start == x) or (turn == 2 and start == y):
            continue
        release(mark, other if fresh else best, at, reached if fresh else end)
        # the order from x is needed as a whole, for its last level
        bound = EVERYTHING if turn == 0 else band
        reached, new_levels, last, new_band, whole = search(
            team, rows, mark, other, start, at, end, bound
        )
        if stopping(team):  # the order may be a part
            break
        if whole and reached != end:
            return ZERO, tried
        tried += 1
        fresh = True
        if turn == 0:
            y = least(rows, other, last, end)
        if new_band < band:
            band, levels = new_band, new_levels
            best, other = other, best
            fresh = False
    for k in range(at, end):  # an order that was given up has left some free
        queue[k] = best[k]
        mark[best[k]] = PLACED
    return levels, tried
