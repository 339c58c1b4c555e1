"""A symmetric permutation on the GPU: entries as numbers (new row, new column), sorted by CuPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.transpose.gpu import expand_rows, first_places


def permute(
    view: Any, perm: Any, place: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """Memory beside the result: about 24 bytes an entry, 40 with values; most of it the sort's."""
    cupy = engines.cupy()
    n, nnz, kind = view.n, view.nnz, view.indptr.dtype
    with gpu.guard("permute", nnz * (24 if view.data is None else 40)):
        shift = max(n - 1, 1).bit_length()  # of the row, above the column
        if 2 * shift > 64:
            raise ValueError(f"permute: a matrix of {n} rows is too large for the GPU")
        keys = place[expand_rows(view.indptr, nnz)].astype(np.uint64)
        keys <<= np.uint64(shift)
        keys |= place[view.indices].astype(np.uint64)
        data = None
        if view.data is None:
            keys.sort()
        else:
            order = cupy.argsort(keys, kind="stable")
            keys, data = keys[order], view.data[order]
            del order
        indptr = first_places(keys, n, kind, shift=shift)
        keys &= np.uint64((1 << shift) - 1)
        return indptr, keys.astype(kind), data
