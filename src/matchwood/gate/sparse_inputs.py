"""Sparse matrices of SciPy and CuPy as input of the gate.  The other kinds: inputs.py.

The arrays of a sparse matrix are plain attributes, which anyone can replace, and the converters of
SciPy and CuPy use their contents as addresses without a check.  So length, type and range are
checked before any conversion.  The flags of a matrix (sorted, canonical, nnz) are not trusted.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.gate import inputs, resources
from matchwood.primitives.inspect import structure

_CONVERSION_ERRORS = (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError)


def is_sparse(A: Any) -> bool:
    """Whether A is a sparse matrix or array of SciPy or CuPy, or of a subclass."""
    for name in ("scipy.sparse", "cupyx.scipy.sparse"):
        module = sys.modules.get(name)
        if module is not None and module.issparse(A):
            return True
    return False


def plain_rows(A: Any, most: int) -> tuple[Any, Any] | None:
    """indptr and indices of a small CSR matrix of SciPy, unread; None unless it is a usual one.

    It is square, has at least a row, at most so many rows and entries, plain arrays, indices of 32
    bits and as many values as indices, which are numbers.  What the arrays hold is for the caller
    to check.
    """
    if type(A).__name__ not in ("csr_array", "csr_matrix"):
        return None
    module = sys.modules.get("scipy.sparse")
    if module is None or type(A) not in (module.csr_array, module.csr_matrix):
        return None
    indptr, indices, data = A.indptr, A.indices, A.data
    if not type(indptr) is type(indices) is type(data) is np.ndarray:
        return None
    if not (indptr.dtype == np.int32 == indices.dtype and data.dtype.kind in "bif"):
        return None
    rows = indptr.size - 1
    if not (A.shape == (rows, rows) and 0 < rows <= rows + indices.size <= most):
        return None
    if not (indptr.ndim == indices.ndim == data.ndim == 1 and data.size == indices.size):
        return None
    if not (indptr.flags.carray and indices.flags.carray):
        return None
    return indptr, indices


Shape = tuple[int, int]


def read(A: Any, caller: str, square: bool = True) -> inputs.Raw:
    """The CSR arrays of a sparse matrix."""
    if _place(A) == "gpu":
        engines.cupy()
    shape = inputs.two_sides(A.shape, caller, square)
    kind, given = str(A.format), A
    if kind != "csr":  # in other formats the arrays may be much shorter than the shape
        resources.require_vertices(caller, max(shape), _place(A))
    try:
        if kind == "dia":
            return _from_diagonals(A, shape, caller)
        if kind in ("dok", "lil"):
            A = _checkable(A, kind, shape[0], caller)
        elif kind in ("csc", "bsr"):
            _check_before_conversion(A, kind, shape, caller)
            A = A.tocsr()
        if A.format == "coo":
            return _from_coordinates(A, shape, caller)
        if A.format != "csr":
            raise TypeError(f"{caller}: A must be {inputs.EXPECTED}, got {type(A).__name__}")
    except _CONVERSION_ERRORS as error:
        if str(error).startswith(f"{caller}: "):
            raise
        raise ValueError(f"{caller}: A is a broken {kind.upper()} matrix: {error}") from None
    return _from_rows(A, shape, caller)._replace(own=A is not given)


def _place(A: Any) -> str:
    return "gpu" if type(A).__module__.partition(".")[0] == "cupyx" else "cpu"


def _own(A: Any, name: str, dimensions: int, caller: str) -> Any:
    """An array of the matrix, checked; all but the values must be integers."""
    array: Any = getattr(A, name, None)
    if engines.location(array) != "gpu":
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{caller}: {name} of A must be an array, got {type(array).__name__}")
        array = arguments.plain(caller, f"{name} of A", array)
    if array.ndim != dimensions:
        raise ValueError(
            f"{caller}: {name} of A must have {dimensions} dimensions, got shape {array.shape}"
        )
    if name != "data" and array.dtype.kind not in "iu":
        raise TypeError(f"{caller}: {name} of A must hold integers, got dtype {array.dtype}")
    return array


def _from_rows(A: Any, shape: Shape, caller: str) -> inputs.Raw:
    rows, columns = shape
    indptr, indices = (_own(A, name, 1, caller) for name in ("indptr", "indices"))
    data = _own(A, "data", 1, caller)
    # on a GPU, reading indptr[-1] would wait for the device; `Entries` looks at it later
    if engines.location(indptr) == "gpu" and data.size == indices.size:
        return inputs.Raw(rows, indptr, indices, data, columns=columns, spare=True)
    # a SciPy matrix may have room for more entries than it holds
    end = int(indptr[-1]) if indptr.size else 0
    if indices.size > end >= 0:
        indices = indices[:end]
    if data.size < indices.size:
        raise ValueError(
            f"{caller}: data must have one value for each index, "
            f"got shape {data.shape} for {indices.size} indices"
        )
    data = inputs.carried(data[: indices.size])
    return inputs.Raw(rows, indptr, indices, data, columns=columns)


def _check_before_conversion(A: Any, kind: str, shape: Shape, caller: str) -> None:
    """Check the arrays of a BSR matrix (by rows) or a CSC matrix (by columns)."""
    indptr, indices = (
        inputs.as_indices(_own(A, name, 1, caller), name, caller) for name in ("indptr", "indices")
    )
    if indptr.dtype != indices.dtype:
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    data = _own(A, "data", 3 if kind == "bsr" else 1, caller)
    height, width = data.shape[1:] if kind == "bsr" else (1, 1)
    if min(height, width) < 1 or shape[0] % height or shape[1] % width:
        raise ValueError(f"{caller}: blocks of {height} x {width} do not tile {shape[0]} rows")
    blocks = (shape[0] // height, shape[1] // width)
    lines, places = blocks if kind == "bsr" else blocks[::-1]
    if indptr.size != lines + 1:
        raise ValueError(f"{caller}: indptr must have {lines + 1} elements, got {indptr.size}")
    end = int(indptr[-1])
    if not 0 <= end <= min(indices.size, data.shape[0]):
        raise ValueError(
            f"{caller}: indptr must end at the number of indices, {indices.size}, "
            f"with a value for each, got {end} and {data.shape[0]} values"
        )
    facts = structure(indptr, indices[:end], places)
    if facts.fault:
        raise ValueError(f"{caller}: {facts.fault.replace('_', ' of ')} is wrong at {facts.at}")


def _from_coordinates(A: Any, shape: Shape, caller: str) -> inputs.Raw:
    """Entries in any order.  Not by `tocsr`, which adds up duplicates whatever the rule is."""
    rows, cols = _own(A, "row", 1, caller), _own(A, "col", 1, caller)
    data = _own(A, "data", 1, caller)
    if not rows.size == cols.size == data.size:
        raise ValueError(
            f"{caller}: row, col and data of A must have one size, "
            f"got {rows.size}, {cols.size} and {data.size}"
        )
    for name, array, n in (("row", rows, shape[0]), ("col", cols, shape[1])):
        if array.size and not (0 <= int(array.min()) and int(array.max()) < n):
            at = int(((array < 0) | (array >= n)).argmax())
            raise ValueError(
                f"{caller}: {name} must be within 0..{n - 1}, got {int(array[at])} at entry {at}"
            )
    if data.dtype.kind not in "biuf":  # never weights: only the pattern, or complex values, count
        return _from_rows(A.tocsr(), shape, caller)._replace(own=True)
    return inputs.sorted_entries(shape, rows, cols, data)


def _checkable(A: Any, kind: str, n: int, caller: str) -> Any:
    """The same matrix in a format whose arrays can be checked."""
    if kind == "lil":
        rows, data = A.rows, A.data
        if not len(rows) == len(data) == n:
            raise ValueError(f"{caller}: A must have {n} lists, got {len(rows)} and {len(data)}")
        for i in range(n):
            if not isinstance(rows[i], list) or not isinstance(data[i], list):
                raise TypeError(f"{caller}: row {i} of A must be a list")
            if len(rows[i]) != len(data[i]):
                raise ValueError(f"{caller}: row {i} of A has {len(rows[i])} columns and "
                                 f"{len(data[i])} values")  # fmt: skip
        return A.tocsr()
    return A.tocoo()


def _from_diagonals(A: Any, shape: Shape, caller: str) -> inputs.Raw:
    """data[k, j] lies at row j - offsets[k], column j.  As in SciPy, zeros are no entries."""
    offsets, data = _own(A, "offsets", 1, caller), _own(A, "data", 2, caller)
    if offsets.size != data.shape[0]:
        raise ValueError(
            f"{caller}: A must have an offset for each of {data.shape[0]} diagonals, "
            f"got {offsets.size}"
        )
    xp = engines.xp(data)
    if xp.unique(offsets).size != offsets.size:
        raise ValueError(f"{caller}: offsets of A must differ, got one twice")
    inside = (offsets > -shape[0]) & (offsets < shape[1])
    offsets, data = offsets[inside].astype(np.int64), data[inside][:, : shape[1]]
    cols = xp.arange(data.shape[1], dtype=np.int64)[None, :] + xp.zeros((offsets.size, 1), np.int64)
    rows = cols - offsets[:, None]
    stored = (rows >= 0) & (rows < shape[0]) & (data != 0)
    return inputs.sorted_entries(shape, rows[stored], cols[stored], data[stored])
