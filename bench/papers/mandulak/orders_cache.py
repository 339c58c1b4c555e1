"""Misses of simulated caches, for machines whose counters cannot be read.

A pass over a graph reads the row of a vertex from end to end, and words of each neighbour:

    pagerank     rows in their order; the score of the neighbour, 4 bytes
    louvain      rows in their order; its label, 4 bytes, and the strength of that community, 8
                 bytes (in the first round the neighbour's own)
    multistep    rows by the levels of a search from the vertex of largest degree; 4 bytes

These reads and the rows themselves go through caches with least-recently-used replacement, of the
sizes that a core has for itself.  Only reads of neighbours count.  Of a large graph some stretches
are seen, each by a cache that the first quarter of it has filled.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

import matchwood
from matchwood.engines.cpu import default_threads

LINE = 64  # bytes
CACHES = {"L1": (48 * 1024, 12), "L2": (2 * 1024 * 1024, 16)}  # bytes, ways
WORDS = {"pagerank": (4, 0), "louvain": (4, 8), "multistep": (4, 0)}  # bytes of each array
STRETCHES, READS = 8, 1 << 19  # of neighbours in each
_FAR = 1 << 40  # lines between arrays


@numba.njit(cache=False, nogil=True)
def _touch(lines: Any, line: int) -> int:
    """1 if the line was not there; it comes first now."""
    own = lines[line % lines.shape[0]]
    ways, at = own.size, 0
    while at < ways - 1 and own[at] != line:
        at += 1
    missed = 1 if own[at] != line else 0
    while at > 0:
        own[at] = own[at - 1]
        at -= 1
    own[0] = line
    return missed


@numba.njit(cache=False, nogil=True)
def _stretch(
    rows: Any, indptr: Any, indices: Any, first: int, reads: int, one: int, two: int, sets: int,
    ways: int,
) -> tuple[int, int]:  # fmt: skip
    """(misses, reads) from rows[first] on; `one` and `two` are words in a line, or 0."""
    lines = np.full((sets, ways), -1, np.int64)
    seen = missed = counted = 0
    row = first
    while row < rows.size and seen < reads:
        for k in range(indptr[rows[row]], indptr[rows[row] + 1]):
            _touch(lines, _FAR + k // 16)
            found = _touch(lines, indices[k] // one)
            more = 0
            if two > 0:
                found += _touch(lines, 2 * _FAR + indices[k] // two)
                more = 1
            seen += 1
            if 4 * seen > reads:
                missed += found
                counted += 1 + more
        row += 1
    return missed, counted


def rows_of(view: Any, analytic: str) -> Any:
    """The rows, in the order in which an analytic comes to them."""
    if analytic != "multistep":
        return np.arange(view.n, dtype=np.int64)
    degree = np.diff(view.indptr)
    A = matchwood.graph((view.indptr, view.indices), weight=None)
    level = matchwood.bfs(A, int(np.argmax(degree))).level
    level = np.where(level < 0, level.max() + 1, level)
    if level.max() < 1 << 15:  # NumPy sorts these by their digits
        level = level.astype(np.int16)
    return np.argsort(level, kind="stable")


def misses(views: dict[str, Any], analytics: list[str]) -> dict[str, Any]:
    """The part of reads that each cache misses: of each order, analytic and cache."""
    kept: dict[tuple[str, str, str], list[Any]] = {}
    with ThreadPoolExecutor(default_threads()) as pool:
        for order, view in views.items():
            for analytic in analytics:
                rows = rows_of(view, analytic)
                ends = np.cumsum(np.diff(view.indptr)[rows])
                begins = np.linspace(0, max(0, view.nnz - READS), STRETCHES)
                firsts = np.searchsorted(ends, begins, side="right")
                if view.nnz <= STRETCHES * READS:  # a small one is seen whole, once
                    firsts = [0]
                reads = READS if len(firsts) > 1 else view.nnz
                one, two = (LINE // word if word else 0 for word in WORDS[analytic])
                for cache, (size, ways) in CACHES.items():
                    kept[order, analytic, cache] = [
                        pool.submit(_stretch, rows, view.indptr, view.indices, int(first), reads,
                                    one, two, size // (LINE * ways), ways)
                        for first in firsts
                    ]  # fmt: skip
    found: dict[str, Any] = {}
    for (order, analytic, cache), parts in kept.items():
        missed, counted = np.sum([part.result() for part in parts], axis=0)
        row = found.setdefault(order, {}).setdefault(analytic, {})
        row[cache] = float(missed / max(1, counted))
    return found
