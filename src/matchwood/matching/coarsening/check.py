"""Is this the graph that the matching leaves?  Decided by passes over vertices and entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood import csr, engines
from matchwood.errors import CheckFailed

ROUNDING = {"float32": 1e-5, "float64": 1e-12}  # of a sum of four weights, relative


def check_coarsening(A: Any, matching: Any, answer: Any, *, vertex_weights: Any = None) -> None:
    """Raise `CheckFailed` unless `answer` is what `coarsen` should give.

    Parameters
    ----------
    A, matching, vertex_weights : as given to `coarsen`
    answer : Coarsening

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.check import check_coarsening
    >>> A = matchwood.generators.path(4)
    >>> check_coarsening(A, [1, 0, 3, 2], matchwood.coarsen(A, [1, 0, 3, 2]))
    >>> check_coarsening(A, [1, 0, -1, -1], matchwood.coarsen(A, [1, 0, 3, 2]))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: coarsening: map[3] is 1, must be 2
    """
    view = csr.as_graph(A, "check_coarsening").on("cpu").undirected_weights("check_coarsening")
    n = view.n
    mate = np.asarray(engines.moved(getattr(matching, "mate", matching), "cpu"), np.int64)
    map = np.asarray(engines.moved(answer.map, "cpu"))
    v = np.arange(n)
    first = (mate < 0) | (mate > v)
    expected = (np.cumsum(first) - 1)[np.where(first, v, mate)] if n else v
    if map.shape != (n,):
        raise CheckFailed(f"coarsening: map must have {n} elements, got shape {map.shape}")
    if (map != expected).any():
        at = int((map != expected).argmax())
        raise CheckFailed(f"coarsening: map[{at}] is {map[at]}, must be {expected[at]}")
    k = int(first.sum())
    weights = engines.moved(answer.vertex_weights, "cpu")
    members = np.ones(n) if vertex_weights is None else engines.moved(vertex_weights, "cpu")
    total = np.bincount(map, members, minlength=k) if n else np.zeros(0)
    if weights.shape != (k,) or not np.allclose(weights, total, rtol=1e-12):
        raise CheckFailed("coarsening: vertex_weights are not the sums of their members'")
    found = sp.coo_array(_on_cpu(answer.matrix))
    if found.shape != (k, k):
        raise CheckFailed(f"coarsening: the matrix must have {k} rows, got shape {found.shape}")
    rows = np.repeat(map, np.diff(view.indptr)) if n else map
    fine = sp.coo_array((view.data.astype(np.float64), (rows, map[view.indices])), shape=(k, k))
    wanted = sp.csr_array(fine - sp.diags_array(fine.diagonal())) if k else fine.tocsr()
    wanted.eliminate_zeros()
    _compare(found, wanted, ROUNDING[view.data.dtype.name])


def _on_cpu(matrix: Any) -> Any:
    return matrix.get() if hasattr(matrix, "get") and not sp.issparse(matrix) else matrix


def _compare(found: Any, wanted: Any, rounding: float) -> None:
    # keys of the entries, so that a missing one and a superfluous one can be named
    size = max(1, found.shape[0])
    found.sum_duplicates()
    wanted = wanted.tocoo()
    wanted.sum_duplicates()
    ours = found.row.astype(np.int64) * size + found.col
    theirs = wanted.row.astype(np.int64) * size + wanted.col
    for keys, text in (
        (np.setdiff1d(theirs, ours), "is missing"),
        (np.setdiff1d(ours, theirs), "joins nothing"),
    ):
        if keys.size:
            i, j = divmod(int(keys[0]), size)
            raise CheckFailed(f"coarsening: entry ({i}, {j}) of the matrix {text}")
    a, b = found.data[np.argsort(ours)], wanted.data[np.argsort(theirs)]
    wrong = np.abs(a - b) > rounding * np.abs(b)
    if wrong.any():
        at = int(wrong.argmax())
        i, j = divmod(int(np.sort(ours)[at]), size)
        raise CheckFailed(f"coarsening: entry ({i}, {j}) of the matrix is {a[at]}, must be {b[at]}")
