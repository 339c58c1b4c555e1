"""`inspect` on the GPU.  Kernels: gpu.cu.

Waits for the device: three times in `structure`, once in `symmetry`, twice in `values`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.primitives.inspect import FAULTS, Structure, Symmetry, Values
from matchwood.primitives.row_reduce.gpu import Tiles

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("check_indptr<I>", "structure<I,2048>", "symmetry<I,2048>", "values<I,W,2048>"),
)

# places in the table of facts, as gpu.cu has them
_DESCENTS, _LOOPS, _LONGEST, _SUM1, _SUM2, _ZEROS = range(6)
_WORDS = 6


def structure(indptr: Any, indices: Any, n: int, *, threads: int | None = None) -> Structure:
    """See matchwood.primitives.inspect.structure."""
    cupy = engines.cupy()
    indptr, indices = cupy.ascontiguousarray(indptr), cupy.ascontiguousarray(indices)
    rows, nnz = indptr.size - 1, indices.size
    status = gpu.Status()
    k = SOURCE.kernels("check_indptr", "structure", I=indices.dtype)
    k.check_indptr(max(rows, 1), (rows, indptr, nnz, status))
    code, at = status.read()
    if code == 0:
        table = cupy.zeros(_WORDS, np.uint64)
        tiles = Tiles(indptr)
        tiles.launch(k.structure, 4, indices, (min(n, _limit(indices)), table, status))
        code, at = status.read()
    if code:
        return Structure(FAULTS[code], at, False, 0)
    facts = table.get()
    return Structure("", -1, int(facts[_DESCENTS]) == 0, int(facts[_LONGEST]))


def symmetry(indptr: Any, indices: Any, *, threads: int | None = None) -> Symmetry:
    """See matchwood.primitives.inspect.symmetry."""
    cupy = engines.cupy()
    indices = cupy.ascontiguousarray(indices)
    table = cupy.zeros(_WORDS, np.uint64)
    k = SOURCE.kernels("symmetry", I=indices.dtype)
    Tiles(indptr).launch(k.symmetry, 4, indices, (table,))
    facts = table.get()
    balanced = int(facts[_SUM1]) == 0 and int(facts[_SUM2]) == 0
    return Symmetry(int(facts[_LOOPS]), balanced)


def _limit(indices: Any) -> int:
    """The largest n that the kernel can take; no index can be larger."""
    return int(np.iinfo(indices.dtype).max)


def values(indptr: Any, indices: Any, data: Any, *, threads: int | None = None) -> Values:
    """See matchwood.primitives.inspect.values."""
    cupy = engines.cupy()
    indices, data = cupy.ascontiguousarray(indices), cupy.ascontiguousarray(data)
    table = cupy.zeros(_WORDS, np.uint64)
    extremes = cupy.array([np.inf, -np.inf])
    status = gpu.Status()
    k = SOURCE.kernels("values", I=indices.dtype, W=data.dtype)
    Tiles(indptr).launch(k.values, 4, indices, (data, table, extremes, status))
    code, at = status.read()
    if code:
        return Values(False, at, 0.0, 0.0, 0, False)
    facts, (least, most) = table.get(), extremes.get()
    if least > most:
        least = most = 0.0
    return Values(
        finite=True,
        at=-1,
        minimum=float(least),
        maximum=float(most),
        zeros=int(facts[_ZEROS]),
        symmetric=int(facts[_SUM1]) == 0 and int(facts[_SUM2]) == 0,
    )
