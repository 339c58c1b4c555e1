"""What the gate returns: checked CSR arrays, and sparse matrices made of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines


class View(NamedTuple):
    """Checked CSR arrays: rows sorted, no duplicates."""

    indptr: Any
    indices: Any
    data: Any = None

    @property
    def n(self) -> int:
        """Number of vertices."""
        return int(self.indptr.shape[0]) - 1

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return int(self.indices.shape[0])


def ones(indices: Any) -> Any:
    return engines.xp(indices).ones(indices.shape[0], np.float32)


def sparse_matrix(indptr: Any, indices: Any, data: Any, shape: tuple[int, int]) -> Any:
    """A SciPy or CuPy matrix of arrays with sorted rows and no duplicates; without data, of ones.

    CuPy has no sparse arrays, so on a GPU it is a `csr_matrix`.
    """
    data = ones(indices) if data is None else data
    if engines.location(indices) == "gpu":
        from cupyx.scipy.sparse import csr_matrix

        B = csr_matrix((data, indices, indptr), shape=shape)
    else:
        import scipy.sparse

        B = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
    B.has_canonical_format = True
    return B
