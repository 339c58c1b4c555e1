"""A round of joins on the GPU.  Kernels: gpu.cu; the rule: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.primitives.compact.gpu import compact

SOURCE = gpu.Source(
    __package__, "gpu.cu", ("raise_gains<I>", "pick_neighbours<I>", "settle_joins<I>", "climb<I>")
)
TILE, WARP = SOURCE.constants("TILE", "WARP")


def joins(
    pattern: tuple[Any, Any, Any],
    volume: Any,
    names: Any,
    total: int,
    resolution: float,
    *,
    threads: int | None = None,
) -> Any:
    """Three passes: the largest gain of each row, the largest hash among those, who it was."""
    indptr, indices, weights = pattern
    kind = indices.dtype
    n, nnz = indptr.size - 1, indices.size
    target = gpu.empty(n, kind, "joins")
    if n == 0:
        return target
    k = SOURCE.kernels(I=kind)
    space = gpu.workspace("joins", gain=(n, np.uint64), mixed=(n, np.uint64))
    space.gain.data.memset_async(0, space.gain.nbytes)
    space.mixed.data.memset_async(0, space.mixed.nbytes)
    lanes = -(-(n + nnz) // TILE) * WARP
    graph = (n, nnz, indptr, indices, weights, volume, names, float(max(total, 1)), resolution)
    k.raise_gains(lanes, (*graph, space.gain))
    k.pick_neighbours(lanes, (*graph, space.gain, space.mixed))
    cupy = engines.cupy()
    cupy.copyto(target, cupy.arange(n, dtype=kind))
    k.settle_joins(lanes, (*graph, space.gain, space.mixed, target))
    return target


def trees(target: Any, *, threads: int | None = None) -> tuple[Any, Any]:
    cupy = engines.cupy()
    n, kind = target.size, target.dtype
    k = SOURCE.kernels("climb", I=kind)
    with gpu.guard("trees", 6 * target.nbytes):
        parent, other = target.copy(), cupy.empty_like(target)
        flag = gpu.Flag()
        while n:
            flag.clear()
            k.climb(n, (n, parent, other, flag))
            parent, other = other, parent
            flag.fetch()
            if not flag.read():
                break
        is_root = target == cupy.arange(n, dtype=kind)
        number = cupy.cumsum(is_root, dtype=kind) - 1
        return number[parent], compact(is_root).astype(kind, copy=False)
