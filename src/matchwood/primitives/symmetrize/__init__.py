"""A symmetric graph from any matrix: neighbours i, j when a_ij or a_ji is stored and i != j.

Read on in reference.py, check.py, cpu.py, gpu.py.

Row i of the result merges row i of the matrix with row i of its transpose, both sorted.  Weights
are |a_ij| + |a_ji|, and entries whose weight is zero are left out; where the values are symmetric
already, they are |a_ij|.  Never by A + A.T, in which entries can cancel.
"""

from __future__ import annotations

from typing import Any

from matchwood import arguments, engines
from matchwood.primitives.inspect import look_through
from matchwood.primitives.patterns import FLOATS, csr_arrays

REDUCE = ("sum", "max", "min")
KINDS = (*FLOATS, "int64")


def union_with_transpose(
    indptr: Any, indices: Any, data: Any, *, reduce: str = "sum", threads: int | None = None
) -> tuple[Any, Any, Any]:
    """(indptr, indices, weights or None) of the union of a square matrix and its transpose.

    The weight of {i, j} is |a_ij| + |a_ji|, or the larger or the smaller of both (of those that
    are stored).  Rows must be ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.symmetrize import union_with_transpose
    >>> indptr, indices, weights = union_with_transpose(
    ...     np.array([0, 1, 2]), np.array([1, 0]), np.array([2.0, -2.0]))
    >>> indices.tolist(), weights.tolist()
    ([1, 0], [4.0, 4.0])
    """
    arguments.one_of("union_with_transpose", "reduce", reduce, REDUCE)
    indptr, indices, data = csr_arrays("union_with_transpose", indptr, indices, data, KINDS)
    look_through("union_with_transpose", indptr, indices, indptr.size - 1, ascending=True)
    return trusted_union(indptr, indices, data, reduce=reduce, threads=threads)


def trusted_union(
    indptr: Any, indices: Any, data: Any, *, reduce: str = "sum", threads: int | None = None
) -> tuple[Any, Any, Any]:
    """`union_with_transpose` for arrays that have passed a gate: nothing is checked."""
    engine = engines.load(__name__, engines.location(indices))
    result: tuple[Any, Any, Any] = engine.union_with_transpose(
        indptr, indices, data, reduce=reduce, threads=threads
    )
    return result


def magnitudes(
    indptr: Any, indices: Any, data: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """(indptr, indices, |data| or None) without the diagonal and without zero weights.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.symmetrize import magnitudes
    >>> indptr, indices, weights = magnitudes(
    ...     np.array([0, 2, 3]), np.array([0, 1, 0]), np.array([5.0, -2.0, -2.0]))
    >>> indices.tolist(), weights.tolist()
    ([1, 0], [2.0, 2.0])
    """
    indptr, indices, data = csr_arrays("magnitudes", indptr, indices, data, KINDS)
    look_through("magnitudes", indptr, indices, indptr.size - 1)
    return trusted_magnitudes(indptr, indices, data, threads=threads)


def trusted_magnitudes(
    indptr: Any, indices: Any, data: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """`magnitudes` for arrays that have passed a gate: nothing is checked."""
    engine = engines.load(__name__, engines.location(indices))
    result: tuple[Any, Any, Any] = engine.magnitudes(indptr, indices, data, threads=threads)
    return result
