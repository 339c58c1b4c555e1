"""Misses of simulated caches, for machines whose counters cannot be read.

A pass over a graph reads a word for each neighbour, row after row: PageRank the score that it
gives, Louvain and Multistep its label.  Those reads go through two caches with least-recently-used
replacement, of the sizes that cores have: 48 KiB in 12 ways, 2 MiB in 16 ways, lines of 64 bytes.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

LINE = 64  # bytes
CACHES = {"L1": (48 * 1024, 12), "L2": (2 * 1024 * 1024, 16)}  # bytes, ways


@numba.njit(cache=False)
def _misses(indices: Any, shift: int, sets: int, ways: int) -> int:
    """Reads of indices[k] that are not in the cache; 2^shift words are a line."""
    lines = np.full((sets, ways), -1, np.int64)
    missed = 0
    for k in range(indices.size):
        line = np.int64(indices[k]) >> shift
        own = lines[line % sets]
        at = 0
        while at < ways - 1 and own[at] != line:
            at += 1
        if own[at] != line:
            missed += 1
        while at > 0:  # the last one used comes first
            own[at] = own[at - 1]
            at -= 1
        own[0] = line
    return missed


def misses(view: Any, place: Any = None, word: int = 4) -> dict[str, float]:
    """The part of all reads that each cache misses, in the order given by `place`."""
    indices = view.indices
    if place is not None:
        perm = np.argsort(place)
        starts, lengths = view.indptr[:-1][perm], np.diff(view.indptr)[perm]
        first = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        indices = place[view.indices[first + np.arange(view.nnz)]]
    shift = (LINE // word).bit_length() - 1
    found = {}
    for name, (size, ways) in CACHES.items():
        sets = size // (LINE * ways)
        found[name] = _misses(indices, shift, sets, ways) / max(1, view.nnz)
    return found
