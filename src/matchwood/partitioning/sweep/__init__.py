"""Moves one after the other between k blocks: what Jet leaves on graphs of uneven degrees.

There most vertices that would like to move want to join the same few blocks, which have no room, so
that moves of many at once are undone by rebalancing.  Serial, on the host for every engine.

A pass, by the rule of Fiduccia and Mattheyses [1]_ for k blocks.  Each vertex that may move has a
bound on its gain: what it is tied to another block by, less what it is tied to its own.

1. The vertex with the largest (bound, smaller vertex) looks: the best of the other blocks with room
   for it is the one that it is tied to most (equal: the lighter, then the one with the smaller
   number).
2. Without one it waits until a neighbour moves.  With a smaller gain than its bound, that is its
   bound from then on.  Otherwise it moves, and stays there until the pass ends.
3. A move raises the bounds of neighbours by twice the weight of the edge in the block that it
   leaves, lowers them by the weight in the block that it joins, and raises all others by it.

A pass ends PATIENCE moves after its best state, or where its looks have read WORK times the entries
of the graph; then back to the best state.  There are PASSES, or as many as lower the cut.
No block becomes heavier than its limit, and the cut never grows.

.. [1] C. M. Fiduccia, R. M. Mattheyses. A linear-time heuristic for improving network partitions.
   DAC 1982. doi:10.1109/DAC.1982.1585498
"""

from __future__ import annotations

from typing import Any

import numpy as np


def sweep(level: Any, labels: Any, limits: Any, fixed: Any, cut: int) -> int:
    """Move vertices of a level, whose labels have that cut, in place; the cut that is left.

    The labels are int32, and ``fixed[v]`` is 1 for vertices that stay; or None.
    """
    from matchwood.partitioning.sweep.cpu import moved

    held = np.zeros(level.n, np.uint8) if fixed is None else fixed
    return moved(level, labels, limits, held, cut)
