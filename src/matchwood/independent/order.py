"""The methods, and in which order the greedy set takes vertices.  cpu.py and gpu.cu have it too.

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

from matchwood.primitives.hashing import GOLDEN
from matchwood.primitives.hashing.reference import mix64_number

METHODS = ("auto", "luby", "lexicographic", "luby_sampling")
BEST = "luby"  # what "auto" takes
TOP_CLASS = 62  # degrees above 2^31; leaves the bytes 0, 1 and 2 free


def start_of(seed: int) -> int:
    """mix64(seed + GOLDEN): with this word the hash of every vertex begins."""
    return mix64_number((seed + GOLDEN) % 2**64)


def degree_class(degree: Any) -> Any:
    """The class of each degree; degrees are at least 1."""
    below = np.asarray(degree, np.int64) - 1
    b = np.zeros_like(below)
    while ((below >> b) >= 4).any():
        b += (below >> b) >= 4
    return np.minimum(2 * b + (below >> b), TOP_CLASS)
