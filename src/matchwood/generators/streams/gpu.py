"""Weights from the hash of an edge on the GPU.  Kernel: gpu.cu."""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.engines import gpu
from matchwood.generators.streams import INTEGERS

SOURCE = gpu.Source(__package__, "gpu.cu", ("weigh_rows<I,W>",))

WARP = SOURCE.constant("WARP")


def weigh(
    indptr: Any,
    indices: Any,
    dtype: Any,
    directed: bool,
    key: int,
    fraction_bits: int,
    threads: int | None = None,
) -> Any:
    cupy = engines.cupy()
    n = indptr.size - 1
    data = gpu.empty(indices.size, dtype, "random weights")
    indptr, indices = cupy.ascontiguousarray(indptr), cupy.ascontiguousarray(indices)
    SOURCE.kernels(I=indices.dtype, W=dtype).weigh_rows(
        n * WARP,
        (n, directed, key, fraction_bits, INTEGERS, 2.0**-fraction_bits, indptr, indices, data),
    )
    return data
