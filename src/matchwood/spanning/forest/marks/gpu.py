"""Edges and weights of what is marked, on the GPU.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.patterns import not_symmetric

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("count_marks<I>", "write_edges<I,B>"),
    types={"B": (np.uint32, np.uint64)},
)

CALLER = "minimum_spanning_forest"
RUNS = 1024  # blocks that collect the edges; each adds up the counts of all before it
RUN_BLOCK = 256  # threads


def forest_of(costs: Any, marks: Any) -> tuple[Any, Any]:
    """Edges and weights of what is marked."""
    cupy = engines.cupy()
    n, kind = costs.n, costs.indices.dtype
    bits = costs.data.view(f"u{costs.data.dtype.itemsize}")
    k = SOURCE.kernels(I=kind, B=bits.dtype)
    edges, weights = gpu.empty((n, 2), kind, CALLER), gpu.empty(n, bits.dtype, CALLER)
    blocks = min(RUNS, -(-marks.size // RUN_BLOCK))
    run = -(-marks.size // blocks)
    counts, total = cupy.empty(blocks, kind), cupy.empty(1, kind)
    k.count_marks(None, (marks.size, run, marks, counts), block=RUN_BLOCK, grid=blocks)
    arrays = (costs.indptr, costs.indices, bits, edges, weights, total)
    k.write_edges(None, (n, marks.size, run, marks, counts, *arrays), block=RUN_BLOCK, grid=blocks)
    count = int(total.item())
    if count > n:
        raise not_symmetric(CALLER)
    return edges[:count], weights[:count].view(costs.data.dtype)
