"""The values of a matrix along the paths of a forest, on the GPU.  Kernel: gpu.cu."""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(__package__, "gpu.cu", ("collect<I,W>",))

# Entries of a row for each lane; one lane reads a short row as fast as several: H200, aniso1-3.
ENTRIES_PER_LANE = 16


def coefficients(
    view: Any, table: Any, place: Any, position: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """See matchwood.forests.tridiagonal_of."""
    n, kind = view.n, view.data.dtype
    dl, d, du = (gpu.empty(n, kind, "tridiagonal_of") for _ in range(3))
    width = 1
    while width < 32 and ENTRIES_PER_LANE * width * n <= view.nnz:
        width *= 2
    k = SOURCE.kernels(I=view.indices.dtype, W=kind)
    table = engines.cupy().ascontiguousarray(table)
    k.collect(n * width, (n, width, *view, table, place, position, dl, d, du))
    return dl, d, du
