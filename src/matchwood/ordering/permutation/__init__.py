"""A matrix in another order.  Read on in reference.py, check.py, cpu.py, gpu.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import calls, engines
from matchwood.arguments import plain
from matchwood.gate.views import sparse_matrix


def permute(A: Any, perm: Any, *, engine: str | None = None, threads: int | None = None) -> Any:
    """The matrix with rows and columns in another order: ``B[i, j] = A[perm[i], perm[j]]``.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Not changed.
    perm : (n,) integer array or Ordering
        ``perm[new] = old``, as `reverse_cuthill_mckee` returns it.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads.

    Returns
    -------
    B : SciPy `csr_array` or CuPy `csr_matrix`
        With sorted rows; duplicates of `A` are added up, explicit zeros stay.  Values have the
        type of `A`'s; ones where `A` has none.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or `perm` no permutation of its rows.

    Notes
    -----
    Each row is copied to its new place, its columns renamed, and sorted by itself; rows are shared
    among the threads by their entries.  Work O(m log(row)), memory that of the result.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import matchwood
    >>> A = sp.csr_array([[0, 1, 2], [3, 0, 0], [0, 0, 4]])
    >>> matchwood.permute(A, [2, 0, 1]).toarray()
    array([[4, 0, 0],
           [2, 0, 1],
           [0, 3, 0]])
    """
    call = calls.enter(A, "permute", engine, threads)
    graph = call.graph
    order = as_permutation(perm, graph.n, "permute", graph.engine)
    view = graph.matrix("permute")
    order = order.astype(view.indptr.dtype, copy=False)
    arrays = call.load(__name__).permute(view, order, inverse(order), threads=threads)
    indptr, indices, data = call.back(*arrays)
    return sparse_matrix(indptr, indices, data, graph.shape)


def inverse(perm: Any) -> Any:
    """``place[old] = new`` of a permutation ``perm[new] = old``, or the other way round."""
    xp = engines.xp(perm)
    place = xp.empty_like(perm)
    place[perm] = xp.arange(perm.shape[0], dtype=perm.dtype)
    return place


def as_permutation(perm: Any, n: int, name: str, engine: str) -> Any:
    """The argument `perm` as an index array on that engine; an error unless it is a permutation."""
    order = getattr(perm, "perm", perm)
    if isinstance(order, (list, tuple)) and not order:
        order = np.empty(0, np.int64)  # an empty list has no type of its own
    order = plain(name, "perm", order)
    if order.dtype.kind not in "iu":
        raise TypeError(f"{name}: perm must hold integers, got {order.dtype}")
    if order.shape != (n,):
        raise ValueError(f"{name}: perm must have shape ({n},), got {tuple(order.shape)}")
    order = engines.moved(order, engine).astype(np.int64, copy=False)
    xp = engines.xp(order)
    if n and (int(order.min()) < 0 or int(order.max()) >= n):
        bad = int(order[(order < 0) | (order >= n)][0])
        raise ValueError(f"{name}: perm must hold 0..{n - 1}, got {bad}")
    seen = xp.zeros(n, bool)
    seen[order] = True
    if n and not bool(seen.all()):
        raise ValueError(
            f"{name}: perm must hold every row once, but {int(seen.argmin())} is missing"
        )
    return order


def measured(
    caller: str, package: str, which: tuple[str, ...], A: Any, perm: Any, engine: str | None,
    threads: int | None,
) -> dict[str, Any]:  # fmt: skip
    """What the engines of a package measure of an order; None is the order as it is."""
    call = calls.enter(A, caller, engine, threads)
    view = call.graph.undirected_pattern()
    place = None
    if perm is not None:
        order = as_permutation(perm, view.n, caller, call.graph.engine)
        place = inverse(order).astype(view.indptr.dtype, copy=False)
    if view.n == 0:
        return dict.fromkeys(which, 0)
    found: dict[str, Any] = call.load(package).measure(view, place, which, threads=threads)
    return found


def sorted_places(caller: str, n: int, rows: Any, places: Any) -> Any:
    """The places of each row, ascending, on the GPU; `rows` is the row of each entry, ascending."""
    shift = max(n - 1, 1).bit_length()  # of the row, above the place
    if 2 * shift > 64:
        raise ValueError(f"{caller}: a matrix of {n} rows is too large for the GPU")
    keys = rows.astype(np.uint64)
    keys <<= np.uint64(shift)
    keys |= places.astype(np.uint64)
    keys.sort()
    keys &= np.uint64((1 << shift) - 1)
    return keys.astype(rows.dtype)
