"""2x2 blocks of a matrix on the GPU: gpu_blocks.cu."""

from __future__ import annotations

from typing import Any

from matchwood import gpu

SOURCE = gpu.Source(__package__, "gpu_blocks.cu", ("collect<I,W>",))


def blocks(view: Any, place: Any, position: Any, members: Any) -> tuple[Any, Any, Any]:
    shape = (members.shape[0], 2, 2)
    made = [gpu.empty(shape, view.data.dtype, "algebraic_block_tridiagonal") for _ in range(3)]
    k = SOURCE.kernels(I=view.indices.dtype, W=view.data.dtype)
    arrays = (view.indptr, view.indices, view.data, place, position, members)
    k.collect(shape[0], (shape[0], *arrays, *made))
    dl, d, du = made
    return dl, d, du
