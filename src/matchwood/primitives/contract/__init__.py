"""Contraction: groups of vertices become one vertex each, and the edges between groups add up.

    contract         groups of any size, given by labels
    contract_pairs   groups of one or two vertices, given by mates: quicker on a GPU

Read on in reference.py, check.py, cpu.py, gpu.py + gpu.cu.

Every edge is read once, from the end whose group has the smaller number, row by row; the weights of
an edge between two groups are added in that order.  So all engines, at any number of threads,
return the same bits, and the matrix is exactly symmetric.  Edges inside a group are dropped.
"""

from __future__ import annotations

from typing import Any

from matchwood import arguments, engines
from matchwood.primitives.patterns import contiguous, csr_arrays, look_through, one_place

__all__ = ["contract"]

Csr = tuple[Any, Any, Any]
KINDS = ("float32", "float64")


def contract(
    indptr: Any,
    indices: Any,
    data: Any,
    label: Any,
    count: int,
    *,
    engine: str | None = None,
    threads: int | None = None,
) -> Csr:
    """(indptr, indices, data) of the graph whose vertices are groups of vertices.

    Parameters
    ----------
    indptr, indices, data : arrays
        A symmetric matrix with sorted rows and no duplicates; float32 or float64.  Its diagonal is
        not read, and of each two entries (u, v) and (v, u) only the one from the smaller label.
    label : (n,) integer array
        The group of each vertex, 0 .. count - 1.
    count : int
        How many groups there are; some may be empty.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where the arrays live.
    threads : int or None

    Raises
    ------
    TypeError, ValueError
        If an array is of another type, sizes differ, a label lies outside, or there are more
        entries on one side of the diagonal than a symmetric matrix has.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.primitives.contract import contract
    >>> A = matchwood.generators.cycle(6)
    >>> indptr, indices, data = contract(A.indptr, A.indices, A.data, [0, 0, 1, 1, 1, 2], 3)
    >>> indptr.tolist(), indices.tolist(), data.tolist()
    ([0, 2, 4, 6], [1, 2, 0, 2, 0, 1], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """
    caller = "contract"
    count = arguments.count(caller, "count", count)
    indptr, indices, data = csr_arrays(caller, indptr, indices, data, KINDS)
    if data is None:
        raise TypeError(f"{caller}: data must be an array, got None")
    n = indptr.size - 1
    look_through(caller, indptr, indices, n)
    label = arguments.integers(caller, "label", label, low=0, high=count - 1)
    arguments.same_size(caller, "label", label, "the rows", indptr[1:])
    label = contiguous(label.astype(indices.dtype, copy=False))
    one_place(caller, indptr, label)
    return engines.call(
        __name__, caller, (indptr, indices, data, label, count), engine, threads=threads
    )  # type: ignore[no-any-return]


def trusted_contract_pairs(
    view: Any, mate: Any, weights: Any, engine: str, caller: str, threads: int | None = None
) -> tuple[Csr, Any, Any]:
    """The graph in which mates are one; the label of each vertex; the weights of the groups.

    For arrays that have passed a gate, on that engine: a view of the undirected weights, mutual
    mates of its index type, -1 for none, and the weights of the vertices.  Groups are numbered by
    their smallest member.
    """
    module = engines.load(__name__, engine)
    made: tuple[Csr, Any, Any] = module.contract_pairs(*view, mate, weights, caller, threads)
    return made
