"""The transpose on the GPU: a stable sort by column (CuPy's), which keeps the order of arrival."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("expand_rows<I>", "first_places<S,I>"),
    types={"S": (np.int32, np.int64, np.uint64)},
)

WARP = SOURCE.constant("WARP")


def expand_rows(indptr: Any, nnz: int) -> Any:
    """The row of each entry."""
    n = indptr.size - 1
    rows = gpu.empty(nnz, indptr.dtype, "transpose")
    width = 1
    while width < WARP and width * n < nnz:
        width *= 2
    k = SOURCE.kernels("expand_rows", I=indptr.dtype)
    k.expand_rows(n * width, (n, indptr, width, rows))
    return rows


def first_places(ascending: Any, n: int, dtype: Any, *, shift: int = 0) -> Any:
    """For r = 0 .. n the first place whose number, shifted right by `shift`, is at least r."""
    starts = gpu.empty(n + 1, dtype, "transpose")
    k = SOURCE.kernels("first_places", S=ascending.dtype, I=dtype)
    k.first_places(n + 1, (n, ascending.size, ascending, shift, starts))
    return starts


def transpose(
    indptr: Any, indices: Any, data: Any, columns: int, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """See matchwood.primitives.transpose.transpose.  Memory: about 28 bytes an entry."""
    cupy = engines.cupy()
    indptr, indices = cupy.ascontiguousarray(indptr), cupy.ascontiguousarray(indices)
    nnz = indices.size
    needs = nnz * (4 * indices.itemsize + 24 + (0 if data is None else data.itemsize))
    with gpu.guard("transpose", needs):
        order = cupy.argsort(indices, kind="stable")
        t_indptr = first_places(indices[order], columns, indptr.dtype)
        t_indices = expand_rows(indptr, nnz)[order]
        return t_indptr, t_indices, None if data is None else data[order]
