"""Contraction: groups of vertices become one vertex each, and the entries between groups add up.

    listed     entries between groups are listed and sorted; the diagonal is not needed
    tallied    the rows of each group are added up in a table of labels, the diagonal with them
    groups     entries are brought together by groups; on a GPU, where no group has many
    pairs      groups of one or two vertices, given by mates: quicker on a GPU

Read on in reference.py and check.py, then in cpu.py and gpu/, which choose among these.

Entries that meet in one place are added in the order of the rows.  Of a symmetric matrix with
floating values, the sum above the diagonal is stored on both sides.  So all engines, at any number
of threads, return the same numbers, and what was symmetric is exactly symmetric afterwards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, engines
from matchwood.memory import require_memory
from matchwood.primitives.inspect import look_through
from matchwood.primitives.patterns import contiguous, csr_arrays, one_place

__all__ = ["Contracted", "contract"]

Csr = tuple[Any, Any, Any]


class Contracted(NamedTuple):
    """The graph of the groups.

    Attributes
    ----------
    indptr, indices, data : arrays
        The matrix without its diagonal, rows sorted, every entry once.
    inner : (count,) array or None
        The diagonal, where it was asked for: what lies inside each group.
    """

    indptr: Any
    indices: Any
    data: Any
    inner: Any


def contract(
    indptr: Any,
    indices: Any,
    data: Any,
    labels: Any,
    count: int,
    *,
    loops: bool = False,
    inner: Any = None,
    symmetric: bool = True,
    engine: str | None = None,
    threads: int | None = None,
) -> Contracted:
    """Make one vertex of all vertices with the same label, and add up the entries.

        C[c, d] = sum of A[u, v] over all u with label c and v with label d

    With S the 0/1 matrix of vertices and their labels, that is ``S.T @ A @ S``, the quotient graph
    of A.  An entry stays where its sum is zero.

    Parameters
    ----------
    indptr, indices : int32 or int64 arrays
        A square CSR matrix with sorted rows and no duplicates.
    data : (nnz,) array of int32, int64, float32 or float64, or None
        Integers are added up exactly, as int64.  Floating sums are of the type of `data`.  None:
        every entry counts 1.
    labels : (n,) integer array
        The group of each vertex, 0 .. count - 1.
    count : int
        Number of groups; some may be empty.
    loops : bool
        True returns the diagonal as ``inner``: all entries (u, v) and (v, u) inside a group, and
        the loops of its members.  False drops it, which is quicker where most groups are small.
    inner : (n,) array of the type of the sums, or None
        With `loops`, a diagonal of A beside its entries: the ``inner`` of an earlier contraction.
    symmetric : bool
        The matrix is symmetric.  Then less is read, or one pass less is needed.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where the arrays live.
    threads : int or None
        CPU only.

    Returns
    -------
    Contracted
        ``indptr, indices, data`` of the matrix without its diagonal, and ``inner``.

    Raises
    ------
    TypeError, ValueError
        If an array is of another type, sizes differ, or a label lies outside; if `inner` is given
        without `loops`; if integers could add up to more than int64 holds; if a matrix said to be
        `symmetric` is seen not to be.  That is not looked for where integers are counted or added
        up with `loops`.

    Notes
    -----
    Work O(m + count).  Memory beside the result: without `loops` about half the matrix (all of it
    where it is not symmetric), and a counter for each group and thread; with `loops` room for
    an index and a value for each entry and a seventh more, of which only the part that the result
    has is written, a word and a byte for each group and thread.  A GPU sorts the entries.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.primitives.contract import contract
    >>> A = matchwood.generators.cycle(6)
    >>> arrays = (A.indptr, A.indices, A.data, [0, 0, 1, 1, 1, 2], 3)
    >>> indptr, indices, data, _ = contract(*arrays)
    >>> indptr.tolist(), indices.tolist(), data.tolist()
    ([0, 2, 4, 6], [1, 2, 0, 2, 0, 1], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])

    The path of three vertices in the middle has two edges, each of which is stored twice:

    >>> contract(*arrays, loops=True).inner.tolist()
    [2.0, 4.0, 0.0]
    """
    caller = "contract"
    count = arguments.count(caller, "count", count)
    if engines.location(indptr) == "cpu":
        require_memory(caller, 8 * count, f"a matrix of {count} rows")
    loops = arguments.flag(caller, "loops", loops)
    symmetric = arguments.flag(caller, "symmetric", symmetric)
    indptr, indices, data = csr_arrays(caller, indptr, indices, data)
    look_through(caller, indptr, indices, indptr.size - 1)
    labels = arguments.integers(caller, "labels", labels, low=0, high=count - 1)
    arguments.same_size(caller, "labels", labels, "the rows", indptr[1:])
    if count > np.iinfo(indices.dtype).max:
        raise ValueError(f"{caller}: count = {count} does not fit {indices.dtype}")
    labels = contiguous(labels.astype(indices.dtype, copy=False))
    if inner is not None:
        if not loops:
            raise ValueError(f"{caller}: inner must be None without loops=True, got an array")
        inner = contiguous(arguments.vector(caller, "inner", inner, (sums_type(data).name,)))
        arguments.same_size(caller, "inner", inner, "labels", labels)
    one_place(caller, indptr, labels, inner)
    _refuse_overflow(caller, data, inner)
    arrays = (indptr, indices, data, inner, labels, count)
    options = {"loops": loops, "symmetric": symmetric, "threads": threads}
    return Contracted(*engines.call(__name__, caller, arrays, engine, **options))


def trusted_contract_measured(
    indptr: Any, indices: Any, data: Any, inner: Any, labels: Any, count: int, *, engine: str,
    threads: int | None = None, most: int | None = None, longest: int,
) -> tuple[Contracted, int, int]:  # fmt: skip
    """(`contract` with its diagonal, the longest row, the rows with entries), for integers.

    The matrix is symmetric, its arrays have passed a gate and are where that engine reads them, and
    the labels are of the type of the indices.  Rows may be unsorted, which saves the CPU a pass.
    Where no sum is above `most`, the CPU returns int32 if that fits: less to read.  `longest` is
    the length of the longest row of the given matrix.
    """
    module = engines.load(__name__, engine)
    arrays = (indptr, indices, data, inner, labels, count)
    if engine == "gpu":
        made, *facts = module.contract_measured(*arrays, longest)
        return Contracted(*made), facts[0], facts[1]
    if engine == "cpu":
        *made, longest, filled = module.contract_measured(*arrays, threads, most)
        return Contracted(*made), longest, filled
    found = Contracted(
        *module.contract(*arrays, loops=True, symmetric=True, threads=threads, ordered=False)
    )
    lengths = np.diff(found.indptr)
    return found, int(lengths.max()) if count else 0, int(np.count_nonzero(lengths))


def trusted_contract_values(
    indptr: Any, indices: Any, data: Any, inner: Any, labels: Any, count: int, *, symmetric: bool,
    ordered: bool = True, threads: int | None = None,
) -> Contracted:  # fmt: skip
    """`contract` with its diagonal, for arrays from a gate and labels of the index type.

    Not `ordered`, on a CPU: rows are unsorted, and symmetric to rounding only.
    """
    engine = engines.location(indices)
    module = engines.load(__name__, engine)
    options: dict[str, Any] = {"loops": True, "symmetric": symmetric, "threads": threads}
    if not ordered and engine == "cpu":
        options["ordered"] = False
    return Contracted(*module.contract(indptr, indices, data, inner, labels, count, **options))


def trusted_contract_pattern(
    indptr: Any, indices: Any, labels: Any, count: int, *, threads: int | None = None
) -> tuple[Any, Any]:
    """(indptr, indices) of the graph of groups, no loops; labels of the index type, unchecked."""
    module = engines.load(__name__, engines.location(indices))
    made: tuple[Any, Any] = module.contract_pattern(indptr, indices, labels, count, threads)
    return made


def trusted_contract_pairs(
    view: Any, mate: Any, weights: Any, engine: str, caller: str, threads: int | None = None, *,
    ordered: bool = True,
) -> tuple[Csr, Any, Any]:  # fmt: skip
    """The graph in which mates are one; the label of each vertex; the weights of the groups.

    For arrays that have passed a gate, on that engine: a view of the undirected weights, mutual
    mates of its index type, -1 for none, and the weights of the vertices.  Groups are numbered by
    their smallest member.  What lies inside a pair is dropped.  The rows of integers may be left
    unsorted (not ordered), which takes half the time; then `data` may be None where all weigh 1.
    """
    module = engines.load(__name__, engine)
    options = {} if ordered or engine == "reference" else {"ordered": False}
    made: tuple[Csr, Any, Any] = module.contract_pairs(
        *view, mate, weights, caller, threads, **options
    )
    return made


def trusted_sums(values: Any, labels: Any, count: int, threads: int | None = None) -> Any:
    """The sum of the int64 values of each label, where `labels` live."""
    module = engines.load(__name__, engines.location(labels))
    return module.sums_by_label(values, labels, count, threads)


def trusted_gathered(values: Any, places: Any, engine: str, threads: int | None = None) -> Any:
    """values[places]; `places` are of the type of indices."""
    if engine != "cpu":
        return values[places]
    return engines.load(__name__, engine).gathered(values, places, threads)


def sums_type(data: Any) -> Any:
    """The type in which entries are added up."""
    if data is None or data.dtype.kind == "i":
        return np.dtype(np.int64)
    return np.dtype(data.dtype)


def _refuse_overflow(caller: str, *arrays: Any) -> None:
    """Raise where integers could add up to more than int64 holds, whatever the groups."""
    whole = [a for a in arrays if a is not None and a.dtype.kind == "i" and a.size]
    if not whole:
        return
    largest = max(max(abs(int(a.max())), abs(int(a.min()))) for a in whole)
    terms = sum(int(a.size) for a in whole)
    most = np.iinfo(np.int64).max
    if largest * terms <= most:
        return
    total = 0
    for a in whole:
        wide = a.astype(np.int64, copy=False)
        high, low = abs(wide >> 32), wide & 0xFFFF_FFFF  # sums of each half are exact
        total += (int(high.sum()) << 32) + int(low.sum())
    if total > most:
        raise ValueError(
            f"{caller}: the integers in data must add up to less than 2**63, signs left out, got "
            f"{terms} of them, up to {largest}"
        )
