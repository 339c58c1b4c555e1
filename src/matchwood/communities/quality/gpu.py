"""Weight inside communities and their volumes on the GPU.  Kernel: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.communities.weights import Level
from matchwood.engines import gpu

SOURCE = gpu.Source(__package__, "gpu.cu", ("add_inside<I>",))
WARP = SOURCE.constant("WARP")
BLOCK = 256  # threads


def totals(level: Level, labels: Any, count: int, threads: int | None = None) -> tuple[int, Any]:
    """See reference.totals."""
    cupy = engines.cupy()
    n = level.n
    volumes, inside = cupy.zeros(count, np.uint64), cupy.zeros(1, np.uint64)
    kernel = SOURCE.kernels(I=level.indices.dtype).add_inside
    blocks = min(kernel.resident(BLOCK), -(-n * WARP // BLOCK))
    if blocks:
        rows = (level.indptr, level.indices, level.data)
        kernel(None, (n, *rows, level.strength, labels, volumes, inside), block=BLOCK, grid=blocks)
    return int(inside[0]), volumes.astype(np.int64)
