"""The rows of a graph as kernels take them, and how to fetch rows before they are needed.

A processor follows a few ascending streams by itself.  A queue of vertices jumps, and each jump
waits for memory: scanning the rows of a queue took half the time when rows were fetched AHEAD
places earlier (bench/matching/weighted.py, mesh 64^3 and R-MAT 18).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.primitives.cpu_hints import prefetch
from matchwood.teams import device

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """The edges of a graph, for a kernel; vertices are unsigned there."""

    indptr: Array
    indices: Array
    weights: Array


class Ties(NamedTuple):
    """What decides between equal weights; see primitives/edge_order."""

    seed: Any  # np.uint64
    by_hash: bool


AHEAD = 8  # places in the queue; 4 and 16 measured the same
FETCHED = 64  # entries of a row; behind them the processor has noticed the stream


@device
def prefetch_row(indptr: Array, indices: Array, weights: Array, u: Any) -> None:
    """Fetch the beginning of u's row; indices and weights lie 64 bytes to a line."""
    start, end = np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)])
    end = min(end, start + np.uint64(FETCHED))
    for k in range(start, end, np.uint64(64 // weights.itemsize)):
        prefetch(weights, k)
    for k in range(start, end, np.uint64(64 // indices.itemsize)):
        prefetch(indices, k)


@device
def prefetch_queued(
    indptr: Array, indices: Array, weights: Array, queue: Array, i: int, size: int
) -> None:
    """Fetch the row of the vertex AHEAD of place i, and the start of that twice as far."""
    if i + AHEAD < size:
        prefetch_row(indptr, indices, weights, queue[i + AHEAD])
    if i + 2 * AHEAD < size:
        prefetch(indptr, queue[i + 2 * AHEAD])
