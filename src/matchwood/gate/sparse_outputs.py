"""Arrays of rows as a sparse matrix of SciPy or of CuPy: the way out."""

from __future__ import annotations

from typing import Any

from matchwood import engines


def as_matrix(indptr: Any, indices: Any, data: Any) -> Any:
    """The square matrix of these arrays, sharing their memory, where they live."""
    n = indptr.shape[0] - 1
    if engines.location(data) == "gpu":
        import cupyx.scipy.sparse as gpu_sparse

        return gpu_sparse.csr_matrix((data, indices, indptr), shape=(n, n))
    import scipy.sparse as sp

    return sp.csr_array((data, indices, indptr), shape=(n, n))
