"""2x2 blocks of a matrix on the GPU.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("list_members<I>", "collect<I,W>", "add_magnitudes<W>", "add_diagonal<I,W>"),
)

WHAT = "algebraic_block_tridiagonal"
SUM_BLOCKS = 1024  # thread blocks that add up weights
ALL, OFF_DIAGONAL = 0b1111, 0b0110  # bit masks: which of the four numbers of a 2x2 block


def members(map: Any, mate: Any, place: Any) -> Any:
    """See coefficients.members_of."""
    n, kind = map.shape[0], mate.dtype
    map, place = map.astype(kind, copy=False), place.astype(kind, copy=False)
    made = gpu.empty((place.shape[0], 2), kind, WHAT)
    mate = engines.cupy().ascontiguousarray(mate)
    SOURCE.kernels("list_members", I=kind).list_members(n, (n, map, mate, place, made))
    return made


def blocks(view: Any, place: Any, position: Any, members: Any) -> tuple[Any, Any, Any]:
    shape = (members.shape[0], 2, 2)
    made = [gpu.empty(shape, view.data.dtype, WHAT) for _ in range(3)]
    k = SOURCE.kernels("collect", I=view.indices.dtype, W=view.data.dtype)
    arrays = (view.indptr, view.indices, view.data, place, position, members)
    k.collect(shape[0], (shape[0], *arrays, *made))
    dl, d, du = made
    return dl, d, du


def weight_inside(dl: Any, d: Any, du: Any) -> float:
    """See coefficients.weight_inside."""
    sums = gpu.empty((3, SUM_BLOCKS), np.float64, WHAT)
    k = SOURCE.kernels("add_magnitudes", W=d.dtype)
    for array, wanted, part in zip((dl, d, du), (ALL, OFF_DIAGONAL, ALL), sums, strict=True):
        k.add_magnitudes(None, (array.size, array, wanted, part), grid=SUM_BLOCKS)
    return float(sums.get().sum())


def weight_off_diagonal(view: Any) -> float:
    """The sum of the absolute values of all entries, minus those of the diagonal."""
    sums = gpu.empty((2, SUM_BLOCKS), np.float64, WHAT)
    k = SOURCE.kernels("add_magnitudes", "add_diagonal", I=view.indices.dtype, W=view.data.dtype)
    k.add_magnitudes(None, (view.nnz, view.data, ALL, sums[0]), grid=SUM_BLOCKS)
    k.add_diagonal(None, (view.n, *view, sums[1]), grid=SUM_BLOCKS)
    everything, diagonal = sums.get().sum(axis=1)
    return float(everything - diagonal)
