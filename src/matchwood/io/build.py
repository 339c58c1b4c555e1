"""Edges or rows to a csr_array: what every text format ends with."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood.primitives.assemble import trusted_assemble as assemble
from matchwood.primitives.assemble import trusted_canonical as canonical

Array = np.ndarray[Any, Any]
Matrix = sp.csr_array


def matrix_of_edges(
    shape: tuple[int, int],
    u: Array,
    v: Array,
    w: Array | None,
    *,
    undirected: bool = False,
    duplicates: str = "sum",
    threads: int | None = None,
) -> Matrix:
    """The matrix with entry w at (u, v), 1 where there are no weights; rows sorted, each edge once.

    `undirected` stores (v, u) too, a loop once.  Equal edges become one by `duplicates`; without
    weights "sum" counts them.
    """
    m = u.size
    if undirected:
        loops = u == v
        m = 2 * u.size - int(loops.sum())
        u, v = np.minimum(u, v), np.maximum(u, v)  # both directions meet duplicates in one order
    indptr, indices, data = assemble(
        *shape, u, v, w, symmetric=undirected, reduce="first", threads=threads
    )
    if indices.size == m or (w is None and duplicates != "sum"):
        return wrap(indptr, indices, data, shape)
    if w is None:
        w = np.ones(u.size)
    if duplicates == "sum" and undirected and loops.any():
        others = ~loops
        u, v = np.concatenate((u, v[others])), np.concatenate((v, u[others]))
        w = np.concatenate((w, w[others]))
        undirected = False
    elif duplicates in ("min", "max"):
        order = np.argsort(w if duplicates == "min" else -w, kind="stable")
        u, v, w = u[order], v[order], w[order]
    reduce = "sum" if duplicates == "sum" else "first"
    indptr, indices, data = assemble(
        *shape, u, v, w, symmetric=undirected, reduce=reduce, threads=threads
    )
    return wrap(indptr, indices, data, shape)


def matrix_of_rows(
    shape: tuple[int, int],
    indptr: Array,
    indices: Array,
    weights: Array | None,
    threads: int | None = None,
) -> Matrix:
    """The matrix with these rows, sorted; an id given twice in a row becomes one entry."""
    small = max(*shape, indices.size) <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64
    indptr, indices = indptr.astype(kind, copy=False), indices.astype(kind, copy=False)
    A = wrap(indptr, indices, weights, shape)
    if not A.has_canonical_format:
        A = wrap(*canonical(indptr, indices, weights, shape[1], threads=threads), shape)
    return A


def wrap(indptr: Array, indices: Array, data: Array | None, shape: tuple[int, int]) -> Matrix:
    """The csr_array of these arrays, not copied; ones for no data."""
    if data is None:
        data = np.ones(indices.size)
    return sp.csr_array((data, indices, indptr), shape=shape)


def converted(A: Matrix, dtype: Any) -> Matrix:
    """The matrix with values of the type asked for; an error where a value would change."""
    if dtype is None or A.dtype == np.dtype(dtype):
        return A
    kind, given = np.dtype(dtype), A.data
    if np.iscomplexobj(given) and kind.kind != "c" and not given.imag.any():
        given = given.real
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = given.astype(kind)
    if kind.kind == "c" or (kind.kind == "f" and not np.iscomplexobj(given)):
        lost = np.isfinite(given) & ~np.isfinite(data)  # rounding is fine, infinity is not
    else:
        lost = data != given
    if lost.any():
        raise ValueError(f"read: dtype {kind} cannot hold the weight {given[lost.argmax()]}")
    return wrap(A.indptr, A.indices, data, A.shape)


def as_matrix(A: Any, caller: str) -> Matrix:
    """What is to be written, as a csr_array with sorted rows and no duplicates; not changed."""
    matrix: Any
    if sp.issparse(A) or (isinstance(A, np.ndarray) and A.ndim == 2):
        matrix = sp.csr_array(A)  # type: ignore[arg-type]
    else:
        from matchwood import csr

        G = csr.graph(A)
        if G.engine != "cpu":
            raise TypeError(f"{caller}: A lives on the GPU; copy it to the host first")
        matrix = wrap(G.indptr, G.indices, G.data, (G.n, G.n))
    matrix.check_format(full_check=True)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix
