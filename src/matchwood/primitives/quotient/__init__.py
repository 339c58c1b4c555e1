"""A graph added up by labels.  Read on in reference.py, check.py, cpu.py, gpu.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.arguments import count as counted
from matchwood.arguments import flag, integers, same_size, vector
from matchwood.primitives.patterns import csr_arrays, look_through, one_place

__all__ = ["Quotient", "quotient"]


class Quotient(NamedTuple):
    """A graph of labels; `inner` is its diagonal, which the rows leave out."""

    indptr: Any
    indices: Any
    data: Any
    inner: Any


def quotient(
    indptr: Any,
    indices: Any,
    data: Any,
    labels: Any,
    count: int,
    *,
    inner: Any = None,
    symmetric: bool = False,
    engine: str | None = None,
    threads: int | None = None,
) -> Quotient:
    """Make one vertex of all vertices with the same label, and add up the entries.

        q[c, d] = sum of a[u, v] over all u with label c and v with label d

    Parameters
    ----------
    indptr, indices : int32 or int64 arrays
        A square CSR matrix.
    data : (nnz,) array of int32, int64, float32 or float64, or None
        None: all entries are 1, and sums are int64.
    labels : (n,) array of the type of `indices`
        The label of each vertex, 0..count-1.  A label may have no vertex.
    count : int
        Number of labels.
    inner : (n,) array of the type of the sums, or None
        A diagonal beside the entries, for matrices that were made by `quotient` themselves.
    symmetric : bool
        The matrix is symmetric (it is not looked at).  Then one pass less is needed.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `indices` lives.
    threads : int or None
        CPU only.

    Returns
    -------
    Quotient
        ``indptr, indices, data`` of the matrix without its diagonal, rows sorted; ``inner`` is the
        diagonal, for labels that are tied to themselves.  Entries that add up to 0 are kept.

    Raises
    ------
    TypeError, ValueError
        If an array is of another type or size, or a label is out of range.

    Notes
    -----
    A row is added up by one thread, members in the order of the vertices, entries in the order of
    their rows: sums are the same at any number of threads.  Integers are added exactly, so a GPU
    gives the same too; its floating sums differ in the last bits.

    Memory beside the result: an index and a value for each entry, and for each thread one word a
    label.

    Examples
    --------
    A path of four vertices, taken two by two:

    >>> import numpy as np
    >>> from matchwood.primitives.quotient import quotient
    >>> indptr, indices = np.array([0, 1, 3, 5, 6]), np.array([1, 0, 2, 1, 3, 2])
    >>> q = quotient(indptr, indices, None, np.array([0, 0, 1, 1]), 2)
    >>> q.indptr.tolist(), q.indices.tolist(), q.data.tolist(), q.inner.tolist()
    ([0, 1, 2], [1, 0], [1, 1], [2, 2])
    """
    caller = "quotient"
    indptr, indices, data = csr_arrays(caller, indptr, indices, data)
    n = int(indptr.shape[0]) - 1
    look_through(caller, indptr, indices, n)
    count = counted(caller, "count", count)
    labels = vector(caller, "labels", labels, (indices.dtype.name,))
    labels = integers(caller, "labels", labels, size=n, low=0, high=count - 1)
    if inner is not None:
        inner = vector(caller, "inner", inner, (sums_type(data).name,))
        same_size(caller, "inner", inner, "labels", labels)
    flag(caller, "symmetric", symmetric)
    one_place(caller, indices, labels, inner)
    where = engines.location(indices)
    chosen = engines.resolve(where, engine, caller, threads)
    place = engines.home(chosen)
    given = (engines.moved(a, place) for a in (indptr, indices, data, inner, labels))
    found = engines.load(__name__, chosen).quotient(*given, count, symmetric, threads)
    return Quotient(*(engines.moved(array, where) for array in found))


def trusted_quotient(
    indptr: Any,
    indices: Any,
    data: Any,
    inner: Any,
    labels: Any,
    count: int,
    *,
    symmetric: bool,
    engine: str,
    threads: int | None = None,
    ordered: bool = True,
) -> Quotient:
    """`quotient` for arrays that have passed a gate, on the engine where they are.

    Without `ordered`, rows may come unsorted, which spares the CPU a pass or two.
    """
    add_up = engines.load(__name__, engine).quotient
    arrays = (indptr, indices, data, inner, labels)
    found = add_up(*arrays, count, symmetric, threads, ordered=ordered)
    return Quotient(*found)


def sums_type(data: Any) -> Any:
    """The type in which entries are added up."""
    if data is None or data.dtype.kind == "i":
        return np.dtype(np.int64)
    return np.dtype(data.dtype)


def trusted_sums(values: Any, labels: Any, count: int) -> Any:
    """The sum of the int64 values of each label, which are far below 2^53, where `labels` live."""
    if engines.location(labels) == "gpu":
        return engines.load(__name__, "gpu").sums_by_label(values, labels, count)
    return np.bincount(labels, weights=values, minlength=count).astype(np.int64)
