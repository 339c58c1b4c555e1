"""Union with the transpose on the GPU: assemble every entry and its mirror."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.primitives.assemble.gpu import sorted_rows
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


def union_with_transpose(
    indptr: Any, indices: Any, data: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """See matchwood.primitives.symmetrize.union_with_transpose."""
    cupy = engines.cupy()
    indptr = cupy.ascontiguousarray(indptr)
    n = indptr.size - 1
    weights = None if data is None else _magnitudes(cupy.ascontiguousarray(data))
    rows = expand_rows(indptr, indices.size)
    # at most two terms for each entry, so the order of adding does not matter
    union = sorted_rows(
        (n, n), rows, indices, weights, indptr.dtype, symmetric=True, loops=False, add=True
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
    """See matchwood.primitives.symmetrize.magnitudes.

    Memory beside the result: an index and 12 bytes for each entry.
    """
    cupy = engines.cupy()
    indptr, indices = cupy.ascontiguousarray(indptr), cupy.ascontiguousarray(indices)
    m, n, kind = indices.size, indptr.size - 1, indices.dtype
    rows = expand_rows(indptr, m)
    space = gpu.workspace("magnitudes", kept=(m, np.int32), places=(m + 1, np.int64))
    if data is None:
        k = SOURCE.kernels("mark_loops", "move_pattern", "move_rows", I=kind)
        k.mark_loops(m, (m, rows, indices, space.kept))
    else:
        data = cupy.ascontiguousarray(data)
        k = SOURCE.kernels("mark_zeros", "move_weights", "move_rows", I=kind, W=data.dtype)
        k.mark_zeros(m, (m, rows, indices, data, space.kept))
    scan_into(space.kept, space.places)
    count = int(space.places[m])
    out_indptr = gpu.empty(n + 1, kind, "magnitudes")
    out_indices = gpu.empty(count, kind, "magnitudes")
    k.move_rows(n + 1, (n, indptr, space.places, out_indptr))
    if data is None:
        k.move_pattern(m, (m, space.kept, space.places, indices, out_indices))
        return out_indptr, out_indices, None
    out_data = gpu.empty(count, data.dtype, "magnitudes")
    k.move_weights(m, (m, space.kept, space.places, indices, data, out_indices, out_data))
    return out_indptr, out_indices, out_data
