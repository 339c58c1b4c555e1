"""The transpose of a CSR matrix, and sorting rows by transposing twice.

Read on in reference.py, check.py, cpu.py, gpu.py.

A counting sort by column that keeps the order of entries: those of a row of the transpose are in
the order of their rows in the matrix.  So the transpose of any CSR matrix has sorted rows, and the
transpose of the transpose is the matrix with its rows sorted, equal columns in the stored order.
"""

from __future__ import annotations

from typing import Any

from matchwood import engines
from matchwood.arguments import count
from matchwood.primitives.inspect import look_through
from matchwood.primitives.patterns import FLOATS, csr_arrays

KINDS = (*FLOATS, "int64")


def transpose(
    indptr: Any, indices: Any, data: Any, columns: int, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """(indptr, indices, data) of the transpose; `data` may be None.

    Memory beside the result: one counter for each column and thread.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.transpose import transpose
    >>> indptr, indices, data = transpose(np.array([0, 2, 3]), np.array([2, 0, 0]), None, 3)
    >>> indptr.tolist(), indices.tolist()
    ([0, 2, 2, 3], [0, 1, 0])
    """
    indptr, indices, data = csr_arrays("transpose", indptr, indices, data, KINDS)
    look_through("transpose", indptr, indices, count("transpose", "columns", columns))
    return trusted_transpose(indptr, indices, data, columns, threads=threads)


def trusted_transpose(
    indptr: Any, indices: Any, data: Any, columns: int, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """`transpose` for arrays that have passed a gate: nothing is checked."""
    engine = engines.load(__name__, engines.location(indices))
    result: tuple[Any, Any, Any] = engine.transpose(indptr, indices, data, columns, threads=threads)
    return result
