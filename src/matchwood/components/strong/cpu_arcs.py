"""What the steps on a team share: arcs, and what is known of a vertex.

A byte for each vertex, mark[v], says what is known about it:

    OPEN                   nothing
    DONE                   its component is known: parent[v] is the smallest vertex of it
    FORWARD                the pivot reaches it
    FORWARD | BACKWARD     and it reaches the pivot

Vertices are unsigned in the kernels: Numba tests every signed index for its sign.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

OPEN = np.uint8(0)
DONE = np.uint8(1)
FORWARD = np.uint8(2)
BACKWARD = np.uint8(4)

LINE = 16  # words of int64 between two counters that members write: two cache lines


class Arcs(NamedTuple):
    """Arcs from each vertex, or to each."""

    indptr: Array
    indices: Array


def arcs_of(view: Any) -> Arcs:
    """Views of the same memory."""
    unsigned = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    return Arcs(view.indptr, view.indices.view(unsigned))
