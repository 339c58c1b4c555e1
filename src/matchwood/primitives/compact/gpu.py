"""Compaction on the GPU: count, scan the counts, write.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import index_type
from matchwood.engines import gpu
from matchwood.primitives.scan import gpu as scan

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("count_kept<T>", "write_values<T,K>", "write_positions<T,I>"),
    types={"T": (np.uint8, np.int32, np.int64)},
)

TILE = SOURCE.constant("TILE")


def compact(mask: Any, values: Any = None, *, threads: int | None = None) -> Any:
    """See matchwood.primitives.compact.compact.  Waits for the device to learn the size."""
    cupy = engines.cupy()
    mask = cupy.ascontiguousarray(mask)
    if mask.itemsize == 1:
        mask = mask.view(np.uint8)
    n = mask.size
    dtype = index_type(n) if values is None else values.dtype
    tiles = -(-n // TILE)
    if tiles == 0:
        return gpu.empty(0, dtype, "compact")
    k = SOURCE.kernels(T=mask.dtype, I=index_type(n), K=f"unsigned {_word(dtype)}")
    space = gpu.workspace("compact", counts=(tiles, np.int32), starts=(tiles + 1, np.int64))
    k.count_kept(None, (n, mask, space.counts), grid=tiles)
    scan.scan_into(space.counts, space.starts)
    kept = gpu.empty(int(space.starts[tiles]), dtype, "compact")
    if values is None:
        k.write_positions(None, (n, mask, space.starts, kept), grid=tiles)
    else:
        words = np.dtype(f"u{dtype.itemsize}")
        values = cupy.ascontiguousarray(values).view(words)
        k.write_values(None, (n, mask, space.starts, values, kept.view(words)), grid=tiles)
    return kept


def _word(dtype: Any) -> str:
    return "int" if np.dtype(dtype).itemsize == 4 else "long long"
