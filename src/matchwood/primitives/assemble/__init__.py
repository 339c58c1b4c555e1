"""From a list of edges, or from any CSR arrays, to CSR with sorted rows and no duplicates.

Read on in reference.py, check.py, cpu.py, gpu.py.

Two stable counting sorts, first by column and then by row, leave the entries sorted by (row,
column) and equal ones in the order of the list.  Duplicates then lie side by side.  They are
added up in that order, so a floating sum is the same at any number of threads.
"""

from __future__ import annotations

from typing import Any

from matchwood import arguments, engines
from matchwood.primitives.inspect import gated

REDUCE = ("sum", "first", "min", "max", "heaviest", "keep")


def assemble(
    n_rows: int,
    n_cols: int,
    rows: Any,
    cols: Any,
    data: Any = None,
    *,
    symmetric: bool = False,
    loops: bool = True,
    reduce: str = "sum",
    threads: int | None = None,
) -> tuple[Any, Any, Any]:
    """(indptr, indices, data) of the matrix with these entries.

    Parameters
    ----------
    n_rows, n_cols : int
    rows, cols : (m,) int32 or int64 arrays, both the same; every value within the shape
    data : (m,) float32 or float64 array, or None
    symmetric : bool
        Store (c, r) for every (r, c) too, after all entries of the list.
    loops : bool
        False drops entries with r == c.
    reduce : {"sum", "first", "min", "max", "heaviest", "keep"}
        What becomes of entries that are given more than once: their sum, the first, the least,
        the largest, the one of largest magnitude; "keep" leaves them all, in the order of the
        list, side by side.  Of equal ones the first counts.
    threads : int or None

    Raises
    ------
    TypeError, ValueError
        If the arrays are of another type, shape or size, or an entry is outside the shape.

    Notes
    -----
    Memory beside the result: one index (and value) for each entry, doubled when `symmetric`, and
    a counter for each row or column and thread.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.assemble import assemble
    >>> indptr, indices, data = assemble(
    ...     3, 3, np.array([2, 0, 2]), np.array([1, 2, 1]), np.array([1.0, 2.0, 3.0]))
    >>> indptr.tolist(), indices.tolist(), data.tolist()
    ([0, 1, 1, 2], [2, 1], [2.0, 4.0])
    """
    rows, cols, data = _gated(n_rows, n_cols, rows, cols, data, symmetric)
    arguments.one_of("assemble", "reduce", reduce, REDUCE)
    engine = engines.load(__name__, engines.location(rows))
    result: tuple[Any, Any, Any] = engine.assemble(
        n_rows, n_cols, rows, cols, data,
        symmetric=symmetric, loops=loops, reduce=reduce, threads=threads,
    )  # fmt: skip
    return result


def _gated(n_rows: Any, n_cols: Any, rows: Any, cols: Any, data: Any, symmetric: bool) -> Any:
    """The arrays, all of them such that the kernels stay inside."""
    n_rows = arguments.count("assemble", "n_rows", n_rows)
    n_cols = arguments.count("assemble", "n_cols", n_cols)
    if symmetric and n_rows != n_cols:
        raise ValueError(f"assemble: a symmetric matrix must be square, got {(n_rows, n_cols)}")
    rows = arguments.vector("assemble", "rows", rows, arguments.INDEX)
    cols = arguments.vector("assemble", "cols", cols, (rows.dtype.name,))
    arguments.same_size("assemble", "cols", cols, "rows", rows)
    arguments.integers("assemble", "rows", rows, low=0, high=n_rows - 1)
    arguments.integers("assemble", "cols", cols, low=0, high=n_cols - 1)
    if data is not None:
        data = arguments.vector("assemble", "data", data, ("float32", "float64", "int64"))
        arguments.same_size("assemble", "data", data, "rows", rows)
    places = {engines.location(array) for array in (rows, cols, data) if array is not None}
    if len(places) > 1:
        raise TypeError("assemble: rows, cols and data must be on one engine, got CPU and GPU")
    return rows, cols, data


def canonical(
    indptr: Any,
    indices: Any,
    data: Any,
    columns: int,
    *,
    reduce: str = "sum",
    ordered: bool = False,
    sound: bool = False,
    threads: int | None = None,
) -> tuple[Any, Any, Any]:
    """The same matrix with sorted rows and duplicates made one; `data` may be None.

    `reduce` is that of `assemble`; `ordered` says that rows are sorted already.  The arrays are
    checked, unless they are known to be `sound`.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.assemble import canonical
    >>> indptr, indices, _ = canonical(np.array([0, 3]), np.array([2, 0, 2]), None, 3)
    >>> indptr.tolist(), indices.tolist()
    ([0, 2], [0, 2])
    """
    if not sound:
        gated("canonical", indptr, indices, data, columns)
    engine = engines.load(__name__, engines.location(indices))
    result: tuple[Any, Any, Any] = engine.canonical(
        indptr, indices, data, columns, reduce=reduce, ordered=ordered, threads=threads
    )
    return result
