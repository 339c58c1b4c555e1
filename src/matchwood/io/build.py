"""Edges or rows to a csr_array: what every text format ends with."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood.arguments import any_type, index_type, shown
from matchwood.gate.rectangles import as_rectangle
from matchwood.gate.resources import interruptible
from matchwood.io.result import Array, Entries, Matrix
from matchwood.primitives.assemble import trusted_assemble as assemble
from matchwood.primitives.assemble import trusted_canonical as canonical

EXACT = 2.0**53  # below it a float64 holds every whole number


def matrix_of_edges(entries: Entries, threads: int | None) -> Matrix:
    """The matrix of the entries; rows sorted, each edge once."""
    shape, u, v, w, undirected, duplicates = entries
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
        key = w if duplicates == "min" else -w
        order = interruptible(lambda: np.argsort(key, kind="stable"))
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
    kind = index_type(max(*shape, indices.size))
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


def value_type(dtype: Any) -> np.dtype[Any] | None:
    """The type asked for, or an error where numbers have no such type."""
    if dtype is None:
        return None
    kind = any_type(dtype)
    if kind is None or kind.kind not in "biufc" or kind.hasobject:
        raise TypeError(f"read: dtype must be a type of numbers, got {shown(dtype)}")
    return kind


def as_pattern(A: Matrix, kind: np.dtype[Any] | None, rounded: bool) -> Matrix:
    """The matrix with 1 for every entry, of the type asked for or as `converted` would leave it."""
    ones = np.ones(A.nnz, A.dtype if kind is None else kind)
    return type(A)((ones, A.indices, A.indptr), shape=A.shape)


def converted(A: Matrix, kind: np.dtype[Any] | None, rounded: bool) -> Matrix:
    """The matrix with values of the type asked for; an error where a value would change.

    `rounded`: the values were read as float64, so whole numbers from 2**53 on may have changed.
    """
    if kind is None or A.dtype == kind:
        return A
    given = A.data
    if np.iscomplexobj(given) and kind.kind != "c" and not given.imag.any():
        given = given.real
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = given.astype(kind)
        if kind.kind == "c" or (kind.kind == "f" and not np.iscomplexobj(given)):
            lost = np.isfinite(given) & ~np.isfinite(data)  # rounding is fine, infinity is not
        else:
            # back again: 2**63 as int64 would compare equal to the float it was converted from
            lost = data.astype(given.dtype) != given
            if kind.kind in "iu" and given.dtype.kind == "f":
                lost |= np.abs(given) >= (EXACT if rounded else 2.0**63)
    if lost.any():
        raise ValueError(f"read: dtype {kind} cannot hold the weight {given[lost.argmax()]}")
    return wrap(A.indptr, A.indices, data, A.shape)


def as_matrix(A: Any, caller: str) -> Matrix:
    """What is to be written, as a csr_array with sorted rows and no duplicates; not changed."""
    matrix: Any
    given: Any = A
    if sp.issparse(given) or (isinstance(given, np.ndarray) and given.ndim == 2):
        A = given
        if A.ndim != 2:
            raise ValueError(f"{caller}: A must be a matrix, got {A.ndim} dimensions")
        if A.dtype.kind not in "biufc":
            raise TypeError(f"{caller}: A must hold numbers, got dtype {A.dtype}")
        matrix = _through_gate(A, caller)
    else:
        from matchwood.gate import graph as csr

        G = csr.as_graph(A, caller)
        if G.engine != "cpu":
            raise TypeError(f"{caller}: A lives on the GPU; copy it to the host first")
        matrix = wrap(G.indptr, G.indices, G.data, (G.n, G.n))
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        interruptible(matrix.sum_duplicates)
    return matrix


def _through_gate(A: Any, caller: str) -> Matrix:
    """The matrix with every index checked, because SciPy follows them unchecked."""
    passed = as_rectangle(A, caller)
    view, data = passed.entries(), passed.given_values(caller)
    native = np.ascontiguousarray(data, dtype=data.dtype.newbyteorder("="))
    return wrap(view.indptr, view.indices, native, passed.shape)


def rows_of(A: Matrix) -> Array:
    return np.repeat(np.arange(A.shape[0], dtype=A.indices.dtype), np.diff(A.indptr))


def mirrored(A: Matrix) -> Array | None:
    """The values of the transpose of a square matrix with sorted rows, if its pattern is the same.

    None where some (u, v) is stored and (v, u) is not; stored zeros are entries as all others.
    """
    T = interruptible(lambda: sp.csr_array(A.T))
    same = np.array_equal(A.indptr, T.indptr) and np.array_equal(A.indices, T.indices)
    return T.data if same else None
