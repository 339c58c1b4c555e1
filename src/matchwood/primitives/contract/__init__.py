"""Contraction: groups of vertices become one vertex each, and the entries between groups add up.

    contract         groups of any size, given by labels
    contract_pairs   groups of one or two vertices, given by mates: quicker on a GPU

Read on in reference.py, check.py, cpu.py, gpu.py + gpu.cu.

Entries that meet in one place are added in the order of the rows.  Of a symmetric matrix each edge
is read once, from the end whose group has the smaller number, and its sum is stored on both sides.
So all engines, at any number of threads, return the same bits, and what was symmetric is exactly
symmetric afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.memory import require_memory
from matchwood.primitives.patterns import contiguous, csr_arrays, look_through, one_place

__all__ = ["contract"]

Csr = tuple[Any, Any, Any]
KINDS = ("float32", "float64", "int64")


def contract(
    indptr: Any,
    indices: Any,
    data: Any,
    label: Any,
    count: int,
    *,
    loops: bool = False,
    symmetric: bool = True,
    engine: str | None = None,
    threads: int | None = None,
) -> Csr:
    """(indptr, indices, data) of the graph whose vertices are groups of vertices.

    With S the 0/1 matrix of vertices and their groups, that is ``S.T @ A @ S``: sorted rows, every
    entry once.  An entry stays where its sum is zero.

    Parameters
    ----------
    indptr, indices, data : arrays
        A square matrix with sorted rows and no duplicates; float32, float64 or int64.  Sums are of
        the same type; those of integers are exact.  `data` may be None: then only the pattern is
        made.
    label : (n,) integer array
        The group of each vertex, 0 .. count - 1.
    count : int
        How many groups there are; some may be empty.
    loops : bool
        True keeps what lies inside a group, as the diagonal of the result: all entries (u, v) and
        (v, u) between members, and their own loops.  False drops it.
    symmetric : bool
        The matrix is symmetric: of (u, v) and (v, u) only the one from the smaller label is read.
        False reads every entry.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where the arrays live.
    threads : int or None

    Raises
    ------
    TypeError, ValueError
        If an array is of another type, sizes differ, or a label lies outside; if integers add up
        to more than int64 holds; if a `symmetric` matrix has more entries on one side of the
        diagonal than it can have.

    Notes
    -----
    Work O(m + count), memory beside the result about as much as half the matrix (all of it where
    it is not symmetric), and a counter for each group and thread.  A GPU sorts the entries.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.primitives.contract import contract
    >>> A = matchwood.generators.cycle(6)
    >>> indptr, indices, data = contract(A.indptr, A.indices, A.data, [0, 0, 1, 1, 1, 2], 3)
    >>> indptr.tolist(), indices.tolist(), data.tolist()
    ([0, 2, 4, 6], [1, 2, 0, 2, 0, 1], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])

    The path of three vertices in the middle has two edges, each of which is stored twice:

    >>> contract(A.indptr, A.indices, A.data, [0, 0, 1, 1, 1, 2], 3, loops=True)[2].tolist()
    [2.0, 1.0, 1.0, 1.0, 4.0, 1.0, 1.0, 1.0]
    """
    caller = "contract"
    count = arguments.count(caller, "count", count)
    if engines.location(indptr) == "cpu":
        require_memory(caller, 8 * count, f"a matrix of {count} rows")
    loops = arguments.flag(caller, "loops", loops)
    symmetric = arguments.flag(caller, "symmetric", symmetric)
    indptr, indices, data = csr_arrays(caller, indptr, indices, data, KINDS)
    look_through(caller, indptr, indices, indptr.size - 1)
    label = arguments.integers(caller, "label", label, low=0, high=count - 1)
    arguments.same_size(caller, "label", label, "the rows", indptr[1:])
    if count > np.iinfo(indices.dtype).max:
        raise ValueError(f"{caller}: count = {count} does not fit {indices.dtype}")
    label = contiguous(label.astype(indices.dtype, copy=False))
    one_place(caller, indptr, label)
    _refuse_overflow(caller, data)
    return engines.call(
        __name__, caller, (indptr, indices, data, label, count), engine,
        loops=loops, symmetric=symmetric, threads=threads,
    )  # type: ignore[no-any-return]  # fmt: skip


def trusted_contract(
    indptr: Any,
    indices: Any,
    data: Any,
    label: Any,
    count: int,
    *,
    loops: bool = False,
    symmetric: bool = True,
    threads: int | None = None,
) -> Csr:
    """`contract` for arrays that have passed a gate, labels of the type of the indices."""
    engine = engines.load(__name__, engines.location(indices))
    made: Csr = engine.contract(
        indptr, indices, data, label, count, loops=loops, symmetric=symmetric, threads=threads
    )
    return made


def trusted_contract_pairs(
    view: Any, mate: Any, weights: Any, engine: str, caller: str, threads: int | None = None
) -> tuple[Csr, Any, Any]:
    """The graph in which mates are one; the label of each vertex; the weights of the groups.

    For arrays that have passed a gate, on that engine: a view of the undirected weights, mutual
    mates of its index type, -1 for none, and the weights of the vertices.  Groups are numbered by
    their smallest member.  What lies inside a pair is dropped.
    """
    module = engines.load(__name__, engine)
    made: tuple[Csr, Any, Any] = module.contract_pairs(*view, mate, weights, caller, threads)
    return made


def _refuse_overflow(caller: str, data: Any) -> None:
    """Raise where integers could add up to more than int64 holds, whatever the groups."""
    if data is None or data.dtype.kind == "f" or data.size == 0:
        return
    largest = max(abs(int(data.max())), abs(int(data.min())))
    most = np.iinfo(np.int64).max
    if largest * data.size <= most:
        return
    high, low = abs(data >> 32), data & 0xFFFF_FFFF  # sums of each half are exact
    if (int(high.sum()) << 32) + int(low.sum()) > most:
        raise ValueError(
            f"{caller}: the integers in data must add up to less than 2**63, signs left out, got "
            f"{data.size} of them, up to {largest}"
        )
