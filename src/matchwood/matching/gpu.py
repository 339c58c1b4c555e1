"""What the methods share on the GPU: the weight of a matching, whether mates are mutual, and pairs.

Kernels: gpu.cu.  The first edge of a row is in first_edge.cuh.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.compact.gpu import compact
from matchwood.primitives.sort import radix_sort
from matchwood.primitives.wide_sums import total

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("finish_matching<I,W>", "check_mates<M>", "group_free<I,W>", "pair_free<I>"),
    types={"M": (np.int32, np.int64)},
)
SUM_BLOCKS = 512  # blocks that add up the weight

WARP = SOURCE.constant("WARP")
OUTSIDE, NOT_MUTUAL = SOURCE.constants("OUTSIDE", "NOT_MUTUAL")


def finish_matching(view: Any, mate: Any) -> float:
    """The weight of a matching; elements of `mate` that are negative become -1."""
    k = SOURCE.kernels("finish_matching", I=view.indices.dtype, W=view.data.dtype)
    sums = gpu.empty(SUM_BLOCKS, np.float64, "weighted_matching")
    k.finish_matching(
        None, (view.n, view.indptr, view.indices, view.data, mate, sums), grid=SUM_BLOCKS
    )
    return total(sums.get())


def first_fault(mate: Any, n: int) -> tuple[int, int]:
    """OUTSIDE, NOT_MUTUAL or 0, and the first vertex with that fault; waits for the device.

    Caller: `mate` is int32 or int64."""
    words = engines.cupy().ascontiguousarray(mate)
    status = gpu.Status()
    SOURCE.kernels("check_mates", M=words.dtype).check_mates(n, (n, words, status))
    return status.read()


def pair_free(view: Any, mate: Any, blocks: Any, weights: Any, limit: int) -> None:
    """Pair the free vertices as `matchwood.matching.coarsening.pair_free` says, in place."""
    free = compact(mate < 0).astype(mate.dtype, copy=False)
    count, kind = int(free.size), mate.dtype
    if count < 2:
        return
    width = 1
    while width < WARP and width * view.n < view.nnz:
        width *= 2
    keys = gpu.workspace("coarsen", keys=(count, np.int64)).keys
    k = SOURCE.kernels("group_free", "pair_free", I=kind, W=view.data.dtype)
    rows = (view.indptr, view.indices, view.data)
    k.group_free(count * width, (count, view.n, free, *rows, blocks, width, keys))
    keys, free = radix_sort(keys, free)
    k.pair_free(count, (count, keys, free, weights, limit, mate))
