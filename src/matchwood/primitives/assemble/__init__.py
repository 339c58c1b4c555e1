"""From a list of edges, or from any CSR arrays, to CSR with sorted rows and no duplicates.

Read on in reference.py, check.py, cpu.py, gpu.py.

Two stable counting sorts, first by column and then by row, leave the entries sorted by (row,
column) and equal ones in the order of the list.  Duplicates then lie side by side.  They are
added up in that order, so a floating sum is the same at any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.arguments import INDEX, count, flag, integers, one_of, same_size, vector
from matchwood.memory import require_memory
from matchwood.primitives.inspect import look_through
from matchwood.primitives.patterns import NUMBERS, contiguous, csr_arrays, one_place

__all__ = ["assemble", "canonical"]

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
    rows, cols : (m,) int32 or int64 arrays, both of one type; every value within the shape
    data : (m,) array of float32, float64, int32 or int64, or None
    symmetric : bool
        Store (c, r) for every (r, c) too, after all entries of the list.
    loops : bool
        False drops entries with r == c.
    reduce : {"sum", "first", "min", "max", "heaviest", "keep"}
        How entries that are given more than once are joined: their sum, the first, the least,
        the largest, the one of largest magnitude.  "keep" leaves them all side by side, in the
        order of the list.  Of equal values the first is kept.
    threads : int or None

    Raises
    ------
    TypeError, ValueError
        If an array is of another type, sizes differ, a row or column lies outside the shape, or
        a matrix that is not square is to be `symmetric`.

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
    engines.check_threads(threads)
    n_rows, n_cols = count("assemble", "n_rows", n_rows), count("assemble", "n_cols", n_cols)
    rows, cols = _ends(rows, cols, n_rows, n_cols)
    if engines.location(rows) == "cpu":
        what = f"a matrix of shape ({n_rows}, {n_cols})"
        require_memory("assemble", 8 * (n_rows + n_cols), what)
    if data is not None:
        data = contiguous(vector("assemble", "data", data, NUMBERS))
        same_size("assemble", "data", data, "rows", rows)
    one_place("assemble", rows, cols, data)
    if flag("assemble", "symmetric", symmetric) and n_rows != n_cols:
        raise ValueError(
            f"assemble: a symmetric matrix must be square, got shape ({n_rows}, {n_cols})"
        )
    flag("assemble", "loops", loops)
    one_of("assemble", "reduce", reduce, REDUCE)
    options = {"symmetric": symmetric, "loops": loops, "reduce": reduce, "threads": threads}
    return trusted_assemble(n_rows, n_cols, rows, cols, data, **options)


def trusted_assemble(
    n_rows: int, n_cols: int, rows: Any, cols: Any, data: Any = None, **options: Any
) -> tuple[Any, Any, Any]:
    """`assemble` for arrays that have passed a gate: nothing is checked."""
    engine = engines.load(__name__, engines.location(rows))
    result: tuple[Any, Any, Any] = engine.assemble(n_rows, n_cols, rows, cols, data, **options)
    return result


def _ends(rows: Any, cols: Any, n_rows: int, n_cols: int) -> tuple[Any, Any]:
    """Rows and columns of the list, of one type and within the shape."""
    rows, cols = vector("assemble", "rows", rows, INDEX), vector("assemble", "cols", cols, INDEX)
    same_size("assemble", "cols", cols, "rows", rows)
    if rows.dtype != cols.dtype:
        raise TypeError(
            f"assemble: rows and cols must be of one type, got {rows.dtype} and {cols.dtype}"
        )
    integers("assemble", "rows", rows, low=0, high=n_rows - 1)
    integers("assemble", "cols", cols, low=0, high=n_cols - 1)
    return contiguous(rows), contiguous(cols)


def canonical(
    indptr: Any,
    indices: Any,
    data: Any,
    columns: int,
    *,
    reduce: str = "sum",
    ordered: bool = False,
    threads: int | None = None,
) -> tuple[Any, Any, Any]:
    """The same matrix with sorted rows and duplicates made one; `data` may be None.

    `reduce` is that of `assemble`; `ordered` says that rows are sorted already.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.assemble import canonical
    >>> indptr, indices, _ = canonical(np.array([0, 3]), np.array([2, 0, 2]), None, 3)
    >>> indptr.tolist(), indices.tolist()
    ([0, 2], [0, 2])
    """
    indptr, indices, data = csr_arrays("canonical", indptr, indices, data)
    engines.check_threads(threads)
    columns = count("canonical", "columns", columns)
    look_through("canonical", indptr, indices, columns)
    if columns > np.iinfo(indptr.dtype).max:
        raise ValueError(f"canonical: columns = {columns} does not fit {indptr.dtype}")
    if engines.location(indptr) == "cpu":
        require_memory("canonical", 8 * columns, f"a matrix of {columns} columns")
    one_of("canonical", "reduce", reduce, REDUCE)
    flag("canonical", "ordered", ordered)
    options = {"reduce": reduce, "ordered": ordered, "threads": threads}
    return trusted_canonical(indptr, indices, data, columns, **options)


def trusted_canonical(
    indptr: Any, indices: Any, data: Any, columns: int, **options: Any
) -> tuple[Any, Any, Any]:
    """`canonical` for arrays that have passed a gate: nothing is checked."""
    engine = engines.load(__name__, engines.location(indices))
    result: tuple[Any, Any, Any] = engine.canonical(indptr, indices, data, columns, **options)
    return result
