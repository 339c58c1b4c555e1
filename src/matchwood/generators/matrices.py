"""The matrix that the generators return."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood import engines
from matchwood.arguments import index_type
from matchwood.gate import resources

Array = Any  # of NumPy, or of CuPy with engine="gpu"
Matrix = Any  # scipy.sparse.csr_array, or cupyx.scipy.sparse.csr_matrix with engine="gpu"


def matrix(n: int, indptr: Array, indices: Array, data: Array, *, canonical: bool = True) -> Matrix:
    """The finished graph, on the engine of its arrays.

    canonical: rows are sorted and free of duplicates, and SciPy need not check that.
    """
    if engines.location(indices) == "cpu":
        A = sp.csr_array((data, indices, indptr), shape=(n, n))
    else:
        from cupyx.scipy.sparse import csr_matrix

        A = csr_matrix((data, indices, indptr), shape=(n, n))
    if canonical:
        A.has_canonical_format = True
    return A


def require_room(
    caller: str, engine: str | None, n: int, entries: int, value: np.dtype[Any], extra: int = 0
) -> None:
    """Raise `OutOfMemory` before a graph is made that does not fit; `extra` bytes beside it."""
    index = index_type(max(n, entries)).itemsize
    nbytes = (n + 1) * index + entries * (index + value.itemsize) + extra
    if engine == "gpu" and nbytes <= resources.ADDRESSES:
        return  # its own memory, and its own error
    resources.require_memory(caller, nbytes, f"a graph of {n} vertices and {entries} entries")


def ones(like: Array, dtype: np.dtype[Any]) -> Array:
    """As many ones as `like` has elements, where `like` lives."""
    if engines.location(like) == "gpu":
        return engines.cupy().ones(like.size, dtype)
    return np.ones(like.size, dtype)
