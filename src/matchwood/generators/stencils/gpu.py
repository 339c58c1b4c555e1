"""The stencil on the GPU.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.generators.stencils.reference import Plan
from matchwood.primitives.scan.gpu import exclusive_scan

SOURCE = gpu.Source(__package__, "gpu.cu", ("count_rows<I>", "fill_rows<I,W>"))


def apply(plan: Plan, dtype: Any, threads: int | None = None) -> tuple[Any, Any, Any]:
    cupy = engines.cupy()
    n, nnz, index = plan.n, plan.nnz, plan.index
    gpu.reserve((2 * n + nnz) * index.itemsize + nnz * np.dtype(dtype).itemsize, "stencil")
    k = SOURCE.kernels(I=index, W=dtype)
    size = len(plan.values)
    offsets, values = cupy.asarray(plan.offsets), cupy.asarray(plan.values.astype(dtype))
    starts = cupy.asarray(plan.starts) if plan.starts.size else None
    counts = gpu.empty(n, index, "stencil")
    k.count_rows(n, (*plan.shape, size, offsets, starts, counts))
    indptr = exclusive_scan(counts)
    indices, data = gpu.empty(nnz, index, "stencil"), gpu.empty(nnz, dtype, "stencil")
    k.fill_rows(n, (*plan.shape, size, offsets, values, starts, indptr, indices, data))
    return indptr, indices, data
