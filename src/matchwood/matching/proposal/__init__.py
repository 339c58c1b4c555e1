"""Maximal matching by random proposals.  See reference.py, check.py, cpu.py, gpu.py + gpu.cu.

A round colours the free vertices blue or red at random.  Every blue vertex proposes to a red free
neighbour, every red one accepts one proposal.  The exact rule is in the notes of `maximal_matching`
(matching/maximal.py): Fagginger Auer and Bisseling, algorithm 3.

The same files hold their algorithm 1, ``method="serial"``: vertices one by one in random order.  It
makes the same choices, without colours.

With ``prefer="hash"`` or ``"degree"`` a vertex proposes to its first neighbour in the order of
(key, vertex), where the key of v is ``d << 32 | hash2(v, 1, s) >> 32`` for the seed s, with d its
degree or 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.primitives.hashing import hash2
from matchwood.primitives.sort import radix_sort

PREFER = ("random", "hash", "degree")
MOST_DEGREE = 2**32 - 1  # larger degrees count as this one


class Preference(NamedTuple):
    """The order of `prefer`: unsigned arrays in kernels, empty for ``prefer="random"``."""

    position: Any  # (n,) the position of each vertex in the order
    order: Any  # (n,) the vertices in order


def preference(view: Any, prefer: str, seed: int, *, threads: int | None = None) -> Preference:
    """The order of all vertices, where the view lives."""
    xp, kind = engines.xp(view.indptr), view.indices.dtype
    if prefer == "random":
        return Preference(xp.empty(0, kind), xp.empty(0, kind))
    vertices = xp.arange(view.n, dtype=kind)
    key = hash2(vertices, xp.ones_like(vertices), seed, threads=threads) >> np.uint64(32)
    if prefer == "degree":
        degree = xp.minimum(xp.diff(view.indptr).astype(np.uint64), np.uint64(MOST_DEGREE))
        key |= degree << np.uint64(32)
    order = radix_sort(key, vertices, threads=threads)[1]
    position = xp.empty_like(order)
    position[order] = xp.arange(view.n, dtype=kind)
    return Preference(position, order)
