"""From a list of edges, or from any CSR arrays, to CSR with sorted rows and no duplicates.

Read on in reference.py, check.py, cpu.py, gpu.py.

Two stable counting sorts, first by column and then by row, leave the entries sorted by (row,
column) and equal ones in the order of the list.  Duplicates then lie side by side.  They are
added up in that order, so a floating sum is the same at any number of threads.
"""

from __future__ import annotations

from typing import Any

from matchwood import engines


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
    reduce : {"sum", "first"}
        What becomes of entries that are given more than once.
    threads : int or None

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
    engine = engines.load(__name__, engines.location(rows))
    result: tuple[Any, Any, Any] = engine.assemble(
        n_rows, n_cols, rows, cols, data,
        symmetric=symmetric, loops=loops, reduce=reduce, threads=threads,
    )  # fmt: skip
    return result


def canonical(
    indptr: Any, indices: Any, data: Any, columns: int, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """The same matrix with sorted rows and duplicates added up; `data` may be None.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.assemble import canonical
    >>> indptr, indices, _ = canonical(np.array([0, 3]), np.array([2, 0, 2]), None, 3)
    >>> indptr.tolist(), indices.tolist()
    ([0, 2], [0, 2])
    """
    engine = engines.load(__name__, engines.location(indices))
    result: tuple[Any, Any, Any] = engine.canonical(indptr, indices, data, columns, threads=threads)
    return result
