"""In which order the greedy set takes vertices.  The rule; cpu.py and gpu.cu have it too.

"lexicographic"   by index
"luby"            by (class of the degree, hash), the smaller first:

    class(d) = 2 b + ((d - 1) >> b),   b = max(0, bits(d - 1) - 2), at most TOP_CLASS
    hash(v)  = mix64(mix64(rng + GOLDEN) ^ v)

Classes are 1, 2, 3, 4, 5-6, 7-8, 9-12, 13-16, 17-24, ...: two for each doubling.  The hash is one
to one, so there are no ties.  Engines keep the first bits of (class, hash) in one byte a vertex
and compare the rest only where these are equal:

    byte(v) = 254 - 4 class(degree) - (hash >> 62),   the larger first;  1 in the set, 0 not
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives import hashing

TOP_CLASS = 62  # degrees above 2^31; leaves the bytes 0, 1 and 2 free
MASK = (1 << 64) - 1


def start_of(seed: int) -> int:
    """What every vertex of a call is mixed with."""
    from matchwood.primitives.hashing.reference import mix64_number

    return mix64_number((seed + hashing.GOLDEN) & MASK)


def degree_class(degree: Any) -> Any:
    """The class of each degree; degrees are at least 1."""
    below = np.asarray(degree, np.int64) - 1
    b = np.zeros_like(below)
    while ((below >> b) >= 4).any():
        b += (below >> b) >= 4
    return np.minimum(2 * b + (below >> b), TOP_CLASS)


def rank_of(degree: Any, method: str, seed: int) -> Any:
    """rank[v]: how many vertices come before v."""
    n = degree.shape[0]
    if method == "lexicographic":
        return np.arange(n)
    v = np.arange(n, dtype=np.uint64)
    hashed = hashing.mix64(np.uint64(start_of(seed)) ^ v, threads=1)
    rank = np.empty(n, np.int64)
    rank[np.lexsort((hashed, degree_class(np.maximum(degree, 1))))] = np.arange(n)
    return rank
