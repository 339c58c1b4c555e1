"""The rows of a graph as kernels take them, and how to fetch rows before they are needed.

A processor prefetches a few ascending streams by itself.  The rows of a queue of vertices lie
anywhere in memory, and each begins with a cache miss.  Scanning the rows of a queue took half the
time when rows were fetched AHEAD places earlier (bench/matching/weighted.py, mesh 64^3 and
R-MAT 18).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import device
from matchwood.engines.cpu.hints import prefetch

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """The edges of a graph, for a kernel; vertices are unsigned there."""

    indptr: Array
    indices: Array
    weights: Array


class Ties(NamedTuple):
    """The tie-breaking rule for equal weights; see primitives/edge_order."""

    seed: Any  # np.uint64
    by_hash: bool


AHEAD = 8  # places in the queue; 4 and 16 measured the same
FETCHED_ENTRIES = 64  # entries of a row; after those the processor prefetches by itself


@device
def prefetch_row(indptr: Array, indices: Array, weights: Array, u: Any) -> None:
    """Fetch the beginning of u's row, cache line by cache line of 64 bytes."""
    start, end = np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)])
    end = min(end, start + np.uint64(FETCHED_ENTRIES))
    for k in range(start, end, np.uint64(64 // weights.itemsize)):
        prefetch(weights, k)
    for k in range(start, end, np.uint64(64 // indices.itemsize)):
        prefetch(indices, k)


@device
def prefetch_queued(
    indptr: Array, indices: Array, weights: Array, queue: Array, i: int, size: int
) -> None:
    """Fetch the row of the vertex AHEAD places behind i, and the indptr entry of the one twice as
    far behind, which the next calls need."""
    if i + AHEAD < size:
        prefetch_row(indptr, indices, weights, queue[i + AHEAD])
    if i + 2 * AHEAD < size:
        prefetch(indptr, queue[i + 2 * AHEAD])
