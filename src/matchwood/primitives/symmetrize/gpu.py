"""Union with the transpose on the GPU: assemble every entry and its mirror."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.assemble.gpu import sorted_rows
from matchwood.primitives.row_reduce.gpu import CHUNK, CHUNK_THREADS, Chunks
from matchwood.primitives.scan.gpu import scan_into
from matchwood.primitives.transpose.gpu import expand_rows

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "mark_loops<I>",
        "mark_zeros<I,W>",
        "move_pattern<I>",
        "move_weights<I,W>",
        "move_rows<I>",
        "take_magnitudes<W>",
    ),
)

PART = SOURCE.constant("PART")


def union_with_transpose(
    indptr: Any, indices: Any, data: Any, *, reduce: str = "sum", threads: int | None = None
) -> tuple[Any, Any, Any]:
    cupy = engines.cupy()
    indptr = cupy.ascontiguousarray(indptr)
    n = indptr.size - 1
    weights = None if data is None else _magnitudes(cupy.ascontiguousarray(data))
    rows = expand_rows(indptr, indices.size)
    # at most two terms for each entry, so the order of adding does not matter
    union = sorted_rows(
        (n, n), rows, indices, weights, indptr.dtype, symmetric=True, loops=False, reduce=reduce
    )
    return union if data is None else magnitudes(*union)


def _magnitudes(data: Any) -> Any:
    out = gpu.empty(data.size, data.dtype, "undirected weights")
    SOURCE.kernels("take_magnitudes", W=data.dtype).take_magnitudes(
        data.size, (data.size, data, out)
    )
    return out


def magnitudes(
    indptr: Any, indices: Any, data: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """See matchwood.primitives.symmetrize.magnitudes.  Waits once, to learn how much is kept.

    Memory beside the result: a fifth of a byte for each entry.
    """
    cupy = engines.cupy()
    indptr, indices = cupy.ascontiguousarray(indptr), cupy.ascontiguousarray(indices)
    m, n, kind = indices.size, indptr.size - 1, indices.dtype
    chunks = Chunks(indptr, m)
    lanes = chunks.count * CHUNK_THREADS
    parts = chunks.count * (CHUNK // PART)
    space = gpu.workspace(
        "magnitudes",
        words=(chunks.count * (CHUNK // 32), np.uint32),
        before=(chunks.count * (CHUNK // 32), np.uint8),
        counts=(parts, np.int32),
        starts=(parts + 1, np.int64),
    )
    marks = (chunks.first_row, space.words, space.before, space.counts)
    places = (space.words, space.before, space.starts)
    if data is None:
        k = SOURCE.kernels("mark_loops", "move_pattern", "move_rows", I=kind)
        k.mark_loops(lanes, (m, indptr, indices, *marks), block=CHUNK_THREADS)
    else:
        data = cupy.ascontiguousarray(data)
        k = SOURCE.kernels("mark_zeros", "move_weights", "move_rows", I=kind, W=data.dtype)
        k.mark_zeros(lanes, (m, indptr, indices, data, *marks), block=CHUNK_THREADS)
    scan_into(space.counts, space.starts)
    out_indptr = gpu.empty(n + 1, kind, "magnitudes")
    k.move_rows(n + 1, (n, m, indptr, *places, out_indptr))
    count = int(space.starts[parts])
    out_indices = gpu.empty(count, kind, "magnitudes")
    if data is None:
        k.move_pattern(lanes, (m, *places, indices, out_indices), block=CHUNK_THREADS)
        return out_indptr, out_indices, None
    out_data = gpu.empty(count, data.dtype, "magnitudes")
    args = (m, *places, indices, data, out_indices, out_data)
    k.move_weights(lanes, args, block=CHUNK_THREADS)
    return out_indptr, out_indices, out_data
