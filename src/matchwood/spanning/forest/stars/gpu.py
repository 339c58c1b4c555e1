"""Awerbuch's and Shiloach's rounds on the GPU.  Kernels: gpu.cu; the steps: cpu.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.patterns import not_symmetric
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.stars import round_limit

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "find_edges<I,B>",
        "hook_stars<I>",
        "keep_roots<I>",
        "jump<I>",
        "find_tall<I>",
        "spread_tall<I>",
    ),
    types={"B": (np.uint32, np.uint64)},
)

CALLER = "minimum_spanning_forest"


def mark_forest(
    costs: Any, order: orders.Order, method: str, threads: int | None
) -> tuple[Any, int]:
    """Marks of the forest's entries, and rounds.  Memory: 21 bytes a vertex, a bit an entry."""
    cupy = engines.cupy()
    n, kind = costs.n, costs.indices.dtype
    bits = costs.data.view(f"u{costs.data.dtype.itemsize}")
    k = SOURCE.kernels(I=kind, B=bits.dtype)
    words = cupy.array([int(field) for field in order[:6]], np.uint64)
    space = gpu.workspace(
        CALLER,
        parent=(n, kind), above=(n, kind), at=(n, kind), chosen=(n, kind),
        star=(n, np.int32), kept=(n, np.bool_),
    )  # fmt: skip
    marks = gpu.empty(-(-costs.nnz // 64), np.uint64, CALLER)
    marks.fill(0)
    parent, star, chosen, at = space.parent, space.star, space.chosen, space.at
    parent[...] = cupy.arange(n, dtype=kind)
    star.fill(1)
    chosen.fill(-1)
    flag = gpu.Flag()
    pattern = (n, costs.indptr, costs.indices)
    for rounds in range(round_limit(n)):
        flag.clear()
        k.find_edges(32 * n, (*pattern, bits, words, parent, star, at, chosen))
        k.hook_stars(n, (n, costs.indices, parent, star, at, chosen, space.above, flag))
        k.keep_roots(n, (*pattern, parent, star, at, chosen, space.above, space.kept, marks))
        k.jump(n, (n, space.above, space.kept, parent, star, chosen, flag))
        flag.fetch()
        k.find_tall(n, (n, parent, star))
        k.spread_tall(n, (n, parent, star))
        if not flag.read():
            return marks, rounds
    raise not_symmetric(CALLER)  # else it would have ended long ago
