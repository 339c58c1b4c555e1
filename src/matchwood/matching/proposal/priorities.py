"""Ranks of vertices, for proposals to the neighbour of least rank.

A vertex v has the 64-bit key ``d << 32 | hash2(v, 1, s) >> 32`` for the seed s, with d its degree
or 0.  Ranks number the vertices by key, and equal keys by vertex.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.primitives.hashing import hash2
from matchwood.primitives.sort import radix_sort

PREFER = ("random", "hash", "degree")
MOST_DEGREE = 2**32 - 1  # larger degrees count as this one


class Ranks(NamedTuple):
    """Both arrays are unsigned in kernels, and empty where no ranks are used."""

    rank: Any  # (n,) rank[v]
    order: Any  # (n,) the vertices by rank


def ranks(view: Any, prefer: str, seed: int, *, threads: int | None = None) -> Ranks:
    """The ranks of all vertices, where the view lives; none for ``prefer="random"``."""
    xp, kind = engines.xp(view.indptr), view.indices.dtype
    if prefer == "random":
        return Ranks(xp.empty(0, kind), xp.empty(0, kind))
    vertices = xp.arange(view.n, dtype=kind)
    key = hash2(vertices, xp.ones_like(vertices), seed, threads=threads) >> np.uint64(32)
    if prefer == "degree":
        degree = xp.minimum(xp.diff(view.indptr).astype(np.uint64), np.uint64(MOST_DEGREE))
        key |= degree << np.uint64(32)
    order = radix_sort(key, vertices, threads=threads)[1]
    rank = xp.empty_like(order)
    rank[order] = xp.arange(view.n, dtype=kind)
    return Ranks(rank, order)
