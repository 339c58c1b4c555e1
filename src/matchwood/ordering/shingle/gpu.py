"""The order of shingles on the GPU.  Kernels: gpu.cu; the rule: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.sort import radix_sort

SOURCE = gpu.Source(__package__, "gpu.cu", ("hash_vertices", "lower_rows<I>"))
TILE, WARP = SOURCE.constants("TILE", "WARP")


def order(view: Any, seed: int, *, threads: int | None = None) -> Any:
    cupy = engines.cupy()
    n, nnz, kind = view.n, view.nnz, view.indptr.dtype
    if n == 0:
        return cupy.empty(0, kind)
    with gpu.guard("shingle_order", 80 * n):
        hashed = cupy.empty(2 * n, np.uint64)
        least = cupy.empty(2 * n, np.uint64)
        k = SOURCE.kernels(I=kind)
        k.hash_vertices(n, (n, seed, hashed, least))
        tiles = -(-(n + nnz) // TILE) * WARP
        k.lower_rows(tiles, (n, nnz, view.indptr, view.indices, hashed, least))
        perm = radix_sort(least[n:])[1]
        return radix_sort(least[:n][perm], perm)[1].astype(kind, copy=False)
