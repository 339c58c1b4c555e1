"""Reduce over the neighbours of each row, with your own operation: the generalised SpMV.

For row i of a CSR matrix, with neighbours j and entries a (1 where there are no values),

    accumulator = init(i, x)
    for each stored (j, a):  accumulator = combine(accumulator, multiply(i, j, a, x))
    finish(i, accumulator, out)

`x` and `out` are arrays or tuples of arrays (and numbers), the accumulator is a number or a
tuple; the types of matrix, input, output and accumulator are independent of each other.  So
one skeleton serves SpMV, the n strongest neighbours with their weights (the edge proposition of
Klein and Strzodka [1]_, whose `multiply` also reads charges and confirmed edges), label
propagation, and more.

The instances below run on every engine.  The skeleton itself: `cpu.reduce_rows` inside Numba
kernels, `reduce_rows` here for functions of your own, `row_reduce.cuh` in CUDA.  Read on in
reference.py, check.py, cpu.py, gpu.py.

The pattern must be CSR: `indptr` from 0 to nnz, never falling, and columns in range.  The CPU
checks that block by block while it works; `reduce_rows` and the GPU check it in a pass before.

References
----------
.. [1] C. Klein, R. Strzodka. Highly parallel linear forest extraction from a weighted graph on
   GPUs. ICPP 2022. doi:10.1145/3545008.3545035
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.arguments import INDEX, any_type, count, is_integer, one_of, shown, vector
from matchwood.engines import call
from matchwood.primitives.inspect import look_through
from matchwood.primitives.patterns import ANY, FLOATS, NUMBERS, csr_arrays

__all__ = [
    "Operation",
    "reduce_rows",
    "spmv",
    "strongest_neighbours",
    "minimum_label",
    "maximum_neighbour",
]


class Operation(NamedTuple):
    """The four functions of a reduction; plain Python that Numba can compile.

    `combine` takes an accumulator and what `multiply` gave, in the order of the row.
    """

    init: Callable[..., Any]
    multiply: Callable[..., Any]
    combine: Callable[..., Any]
    finish: Callable[..., Any]


def reduce_rows(
    operation: Operation,
    indptr: Any,
    indices: Any,
    data: Any,
    x: Any,
    out: Any,
    *,
    columns: int | None = None,
    engine: str | None = None,
    threads: int | None = None,
) -> None:
    """Reduce every row with functions of your own; see the top of this page.

    Parameters
    ----------
    operation : Operation
        Compiled at the first call with these types and kept while the process lives.
    indptr, indices : int32 or int64 arrays
    data : array or None
        None: `multiply` gets the number 1.
    x, out : array, or tuple of arrays and numbers
        Passed to the functions as they are; `finish` writes to `out`.  The functions themselves
        must stay inside these arrays, as everything that Numba compiles: with ``i`` below
        the number of rows, and ``j`` below `columns`.
    columns : int or None
        All columns must be smaller; None: they only must not be negative.
    engine : {None, "reference", "cpu"}
        None takes the CPU: on the GPU operations are CUDA text, see gpu.py.
    threads : int or None
        Each thread takes whole rows, so the result does not depend on their number.

    Raises
    ------
    TypeError, ValueError
        If an array is of another type, or the pattern is not CSR; before anything is reduced.

    Examples
    --------
    Who has the most neighbours among the neighbours of i?

    >>> import numpy as np
    >>> from matchwood.primitives.row_reduce import Operation, reduce_rows
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0])   # a star
    >>> def nobody(i, degree): return -1
    >>> def neighbour(i, j, a, degree): return j
    >>> def put(i, best, out): out[i] = best
    >>> degree, out = np.diff(indptr), np.empty(3, dtype=np.int64)
    >>> reduce_rows(Operation(nobody, neighbour, max, put), indptr, indices, None, degree, out,
    ...             engine="reference")
    >>> out.tolist()
    [2, 0, 0]
    """
    indptr, indices, data = csr_arrays("reduce_rows", indptr, indices, data)
    if not isinstance(operation, Operation):
        raise TypeError(f"reduce_rows: operation must be an Operation, got {shown(operation)}")
    engines.check_threads(threads)
    chosen = one_of("reduce_rows", "engine", engine, (None, "reference", "cpu")) or "cpu"
    columns = ANY if columns is None else count("reduce_rows", "columns", columns)
    x, out = _operand("x", x), _operand("out", out)
    look_through("reduce_rows", indptr, indices, columns)
    function = engines.load(__name__, chosen).run_operation
    function(operation, indptr, indices, data, x, out, threads=threads)


def spmv(
    indptr: Any,
    indices: Any,
    data: Any,
    x: Any,
    *,
    dtype: Any = None,
    accumulator: Any = None,
    engine: str | None = None,
    threads: int | None = None,
) -> Any:
    """Sparse matrix times vector: ``y[i] = sum of a[i, j] * x[j]``, added in the order of the row.

    Parameters
    ----------
    indptr, indices : int32 or int64 arrays
    data : (nnz,) array of int32, int64, float32 or float64, or None
        None: all entries are 1.
    x : (columns,) array of int32, int64, float32 or float64
    dtype : dtype or None
        Type of the result; None: what NumPy makes of the types of `data` and `x`.
    accumulator : dtype or None
        Type of the sum; entries and `x` are converted to it before they are multiplied.  None:
        `dtype`.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `x` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    y : (rows,) array of `dtype`

    Notes
    -----
    Integer results are the same on every engine.  Floating sums are the same at any number of
    threads; the GPU adds long rows in another order.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.row_reduce import spmv
    >>> spmv(np.array([0, 2, 2]), np.array([0, 1]), np.array([2.0, 3.0]), np.array([1.0, 10.0]))
    array([32.,  0.])
    """
    indptr, indices, data = csr_arrays("spmv", indptr, indices, data)
    x = vector("spmv", "x", x, NUMBERS)
    _check_unless_cpu("spmv", indptr, indices, x.size, engine)
    if dtype is None:
        dtype = x.dtype if data is None else np.result_type(data.dtype, x.dtype)
    dtype = _number_type("dtype", dtype)
    accumulator = _number_type("accumulator", dtype if accumulator is None else accumulator)
    arrays = (indptr, indices, data, x)
    options = {"dtype": dtype, "accumulator": accumulator, "threads": threads}
    return call(__name__, "spmv", arrays, engine, **options)


def strongest_neighbours(
    indptr: Any,
    indices: Any,
    data: Any,
    n: int,
    *,
    engine: str | None = None,
    threads: int | None = None,
) -> tuple[Any, Any]:
    """The n heaviest entries of each row, heaviest first; equal ones by smaller column.

    The diagonal does not count: a vertex is not its own neighbour.  NaN is never chosen.

    Parameters
    ----------
    indptr, indices : int32 or int64 arrays
    data : (nnz,) array of float32 or float64
    n : int
        1 .. 8.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `data` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    columns : (rows, n) array of the type of `indices`
        -1 where a row has fewer neighbours.
    weights : (rows, n) array of the type of `data`
        0 where a row has fewer neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.row_reduce import strongest_neighbours
    >>> columns, weights = strongest_neighbours(
    ...     np.array([0, 3, 3]), np.array([1, 2, 3]), np.array([0.5, 2.0, 2.0]), 2)
    >>> columns.tolist(), weights.tolist()
    ([[2, 3], [-1, -1]], [[2.0, 2.0], [0.0, 0.0]])
    """
    vector("strongest_neighbours", "data", data, FLOATS)  # None is refused
    indptr, indices, data = csr_arrays("strongest_neighbours", indptr, indices, data, FLOATS)
    _check_unless_cpu("strongest_neighbours", indptr, indices, ANY, engine)
    return trusted_strongest_neighbours(indptr, indices, data, n, engine=engine, threads=threads)


def trusted_strongest_neighbours(
    indptr: Any, indices: Any, data: Any, n: int, *, engine: str | None = None,
    threads: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """`strongest_neighbours` for arrays that have passed a gate: no pass over them before."""
    if count("strongest_neighbours", "n", n, least=1) > MOST_STRONGEST:
        raise ValueError(f"strongest_neighbours: n must be at most {MOST_STRONGEST}, got {n}")
    result: tuple[Any, Any] = call(
        __name__, "strongest_neighbours", (indptr, indices, data, n), engine, threads=threads
    )
    return result


MOST_STRONGEST = 8  # pairs of the accumulator; up to 6 stay in registers, 8 cost 4 times as much


def minimum_label(
    indptr: Any, indices: Any, label: Any, *, engine: str | None = None, threads: int | None = None
) -> Any:
    """The smallest label of each vertex and its neighbours: one step of label propagation.

    Parameters
    ----------
    indptr, indices : int32 or int64 arrays
        Of a square matrix.
    label : (rows,) array of int32 or int64
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `label` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    smallest : (rows,) array of the type of `label`

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.row_reduce import minimum_label
    >>> minimum_label(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), np.arange(3)).tolist()
    [0, 0, 1]
    """
    indptr, indices, _ = csr_arrays("minimum_label", indptr, indices, None)
    label = vector("minimum_label", "label", label, INDEX)
    if label.size != indptr.size - 1:
        raise ValueError(
            f"minimum_label: label must have one element for each of {indptr.size - 1} rows, "
            f"got {label.size}"
        )
    _check_unless_cpu("minimum_label", indptr, indices, label.size, engine)
    return call(__name__, "minimum_label", (indptr, indices, label), engine, threads=threads)


def maximum_neighbour(
    indptr: Any, indices: Any, x: Any, *, engine: str | None = None, threads: int | None = None
) -> Any:
    """The largest ``x[j]`` among the neighbours j of each row.  NaN is never chosen.

    Parameters
    ----------
    indptr, indices : int32 or int64 arrays
    x : (columns,) array of int32, int64, float32 or float64
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `x` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    largest : (rows,) array of the type of `x`
        The smallest value of the type (minus infinity for floats) where a row has no neighbour.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.row_reduce import maximum_neighbour
    >>> maximum_neighbour(np.array([0, 2, 2]), np.array([0, 1]), np.array([1.0, 5.0])).tolist()
    [5.0, -inf]
    """
    indptr, indices, _ = csr_arrays("maximum_neighbour", indptr, indices, None)
    x = vector("maximum_neighbour", "x", x, NUMBERS)
    _check_unless_cpu("maximum_neighbour", indptr, indices, x.size, engine)
    return call(__name__, "maximum_neighbour", (indptr, indices, x), engine, threads=threads)


def _operand(name: str, value: Any) -> Any:
    """An array or a number as Numba takes it, or a tuple of them."""
    if isinstance(value, tuple):
        return tuple(_operand(name, part) for part in value)
    if type(value) is np.ndarray and value.dtype.kind in "biufc" and value.dtype.isnative:
        return value
    if is_integer(value):
        return count("reduce_rows", name, value, -(1 << 63))
    if isinstance(value, (float, np.floating)):
        return float(value)
    raise TypeError(
        f"reduce_rows: {name} must be an array of numbers, a number or a tuple of them, "
        f"got {shown(value)}"
    )


def lowest(dtype: Any) -> Any:
    """The smallest value of a number type, as a scalar of that type."""
    dtype = np.dtype(dtype)
    return dtype.type(-np.inf if dtype.kind == "f" else np.iinfo(dtype).min)


def _check_unless_cpu(function: str, indptr: Any, indices: Any, columns: int, engine: Any) -> None:
    """CPU kernels check the pattern while they run; for other engines it is checked here."""
    if engines.resolve(engines.location(indices), engine, function) != "cpu":
        look_through(function, indptr, indices, columns)


def _number_type(name: str, dtype: Any) -> Any:
    result = any_type(dtype)
    if result is None or result.name not in NUMBERS:
        expected = ", ".join(NUMBERS)
        raise TypeError(f"spmv: {name} must be one of {expected}, got {shown(dtype)}")
    return result
