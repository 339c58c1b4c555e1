"""What the gate accepts, and how each kind becomes CSR arrays.  The gate itself is graph.py.

`read` recognises the kind of its argument and returns raw arrays: of integer type, one-dimensional
and of fitting lengths, but with contents not checked yet.  Nothing is changed in place, and arrays
that fit are passed on as they are.  Values are passed on unread: the functions that use them check
them (`as_weights`).

The arrays of a sparse matrix are plain attributes, which anyone can replace, and the converters of
SciPy and CuPy use their contents as addresses without a check.  So length, type and range are
checked before any conversion.  The flags of a matrix (sorted, canonical, nnz) are not trusted.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, engines
from matchwood.errors import EngineUnavailable
from matchwood.gate import resources
from matchwood.primitives.inspect import structure

EXPECTED = (
    "a sparse matrix (SciPy or CuPy), a 2-D array, (indptr, indices[, data]), "
    "(n, edges[, weights]), a NetworkX graph or a matchwood Graph"
)
EXACT = 1 << 53  # integers up to here are exact in float64
MOST_VERTICES = 1 << 62  # sums of two indices fit in int64

Shape = tuple[int, int]
_CONVERSION_ERRORS = (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError)
_INDEX_TYPES = frozenset({np.dtype(np.int32), np.dtype(np.int64)})
_SORTED_TYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64))


class Raw(NamedTuple):
    """CSR arrays as they were given."""

    n: int
    indptr: Any
    indices: Any
    data: Any  # an array, a Column, or None
    edges: bool = False  # edges of a list or graph, not entries of a matrix
    ordered: bool = False  # rows are sorted, equal entries in the order in which they were given
    columns: int | None = None  # None: as many as rows
    spare: bool = False  # indices and data may be longer than indptr[-1]; the rest is not used
    own: bool = False  # the arrays were made here, and nobody else has them

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.n if self.columns is None else self.columns


class Column:
    """Values of a type that only NumPy can hold, or that have not been read yet."""

    def __init__(self, values: Any, order: Any = None) -> None:
        self.values = values  # a list or a NumPy array
        self.order = order  # entry k has values[order[k]]; None: values[k]

    def read(self, caller: str) -> Any:
        """The values as a NumPy array of real numbers."""
        array = self.values if hasattr(self.values, "dtype") else _real_numbers(self.values, caller)
        return array if self.order is None else array[self.order]

    def copied(self) -> Column:
        """The same values, which nobody else has."""
        return Column(self.values.copy(), self.order)


def read(A: Any, caller: str, weight: str | None = "weight") -> Raw:
    """The CSR arrays of anything the gate accepts.

    `weight` names the edge attribute of a NetworkX graph; None leaves values out.
    """
    if is_networkx(A):
        return _from_networkx(A, caller, weight)
    no_attribute(weight, caller)
    raw = _read_arrays(A, caller)
    return raw._replace(data=None) if weight is None else raw


def no_attribute(weight: str | None, caller: str) -> None:
    """Raise if an edge attribute was asked for: only a NetworkX graph has attributes."""
    if weight is not None and not (isinstance(weight, str) and weight == "weight"):
        raise TypeError(
            f"{caller}: weight must be None, or an attribute of a NetworkX graph, "
            f"got {arguments.shown(weight)}"
        )


def _read_arrays(A: Any, caller: str) -> Raw:
    if is_sparse(A):
        return read_sparse(A, caller)
    if isinstance(A, tuple):
        return _from_tuple(A, caller)
    if isinstance(A, np.ndarray) or is_foreign_array(A):
        return from_dense(as_array(A, "A", caller), caller)
    refuse_distributed(A, caller)
    raise TypeError(f"{caller}: A must be {EXPECTED}, got {type(A).__name__}")


def is_distributed(A: Any) -> bool:
    """Whether A is a graph distributed over ranks; does not import that module."""
    module = sys.modules.get("matchwood.gate.distributed")
    return module is not None and isinstance(A, module.DistributedGraph)


def refuse_distributed(A: Any, caller: str) -> None:
    """Raise for a graph distributed over ranks: the function works on one machine."""
    if is_distributed(A):
        raise EngineUnavailable(
            f"{caller}: has no 'dist' engine, so A must be on one machine, got a DistributedGraph; "
            "its method on_first calls functions of one machine"
        )


def two_sides(shape: Any, caller: str, square: bool = True) -> tuple[int, int]:
    """The numbers of rows and columns; equal where the matrix must be square."""
    if len(shape) != 2:
        raise ValueError(f"{caller}: A must have 2 dimensions, got shape {tuple(shape)}")
    if square and shape[0] != shape[1]:
        raise ValueError(f"{caller}: A must be square, got shape {tuple(shape)}")
    return int(shape[0]), int(shape[1])


def _from_tuple(A: tuple[Any, ...], caller: str) -> Raw:
    if len(A) not in (2, 3):
        raise TypeError(f"{caller}: a tuple must hold 2 or 3 items, got {len(A)}")
    if isinstance(A[0], (bool, np.bool_, float, np.floating, str)):
        raise TypeError(
            f"{caller}: a tuple must begin with the number of vertices or with indptr, "
            f"got {arguments.shown(A[0])}"
        )
    if isinstance(A[0], (int, np.integer)):
        return _from_edges(int(A[0]), A[1], A[2] if len(A) == 3 else None, caller)
    return from_arrays(*A, caller=caller)


def from_arrays(indptr: Any, indices: Any, data: Any = None, *, caller: str) -> Raw:
    """CSR arrays as they were given, with as many columns as rows."""
    indptr = _indices(indptr, "indptr", caller)
    indices = _indices(indices, "indices", caller)
    if indptr.size == 0:
        raise ValueError(f"{caller}: indptr must have at least one element, got none")
    data = None if data is None else _values(data, "data", caller)
    if data is not None and data.shape != indices.shape:
        raise _no_value_each(data, indices, caller)
    _same_place([array for array in (indptr, indices, data) if array is not None], caller)
    return Raw(indptr.size - 1, indptr, indices, carried(data))


def _no_value_each(data: Any, indices: Any, caller: str) -> ValueError:
    return ValueError(
        f"{caller}: data must have one value for each index, "
        f"got shape {data.shape} for {indices.size} indices"
    )


def carried(data: Any) -> Any:
    """The values, if both engines can hold their type; else in a Column."""
    if data is None:
        return None
    kind, size = data.dtype.kind, data.dtype.itemsize
    held = kind in "biu" or (kind == "f" and size <= 8) or (kind == "c" and size <= 16)
    return data if held else Column(data)


def _from_edges(n: int, edges: Any, weights: Any, caller: str) -> Raw:
    got = arguments.shown(n)
    if n < 0:
        raise ValueError(f"{caller}: the number of vertices must not be negative, got {got}")
    if n > MOST_VERTICES:
        raise ValueError(f"{caller}: the number of vertices must be at most 2**62, got {got}")
    ends, data = edge_arrays(edges, weights, caller)
    if ends.size and not (0 <= int(ends.min()) and int(ends.max()) < n):
        bad = int(((ends < 0) | (ends >= n)).any(axis=1).argmax())
        raise ValueError(
            f"{caller}: edges must join vertices 0..{n - 1}, "
            f"got {tuple(ends[bad].tolist())} as edge {bad}"
        )
    resources.require_vertices(caller, n, engines.location(ends))
    return sorted_entries((n, n), ends[:, 0], ends[:, 1], data)._replace(edges=True)


def edge_arrays(edges: Any, weights: Any, caller: str) -> tuple[Any, Any]:
    """An array of integers with two columns, and a value for each of its rows, or None."""
    pairs = as_array(edges, "edges", caller)
    if pairs.size == 0 and pairs.ndim < 2:
        pairs = pairs.reshape(0, 2).astype(np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{caller}: edges must have shape (m, 2), got {pairs.shape}")
    if pairs.shape[0] == 0 and isinstance(edges, (list, tuple)):
        pairs = pairs.astype(np.int64)
    ends = _integers(pairs, "edges", caller)
    data = None
    if weights is not None:
        data = _values(weights, "weights", caller)
        if data.shape != (ends.shape[0],):
            raise ValueError(
                f"{caller}: weights must have one value for each of the {ends.shape[0]} edges, "
                f"got shape {data.shape}"
            )
        _same_place([ends, data], caller)
    return ends, data


def sorted_entries(shape: tuple[int, int], u: Any, v: Any, data: Any) -> Raw:
    """The entries (u, v) by row and column, equal ones in the order in which they were given.

    They must be within the shape.  `data` is an array of any type, a Column or None.
    """
    engine = engines.load("matchwood.primitives.assemble", engines.location(u))
    kind = np.int32 if max(*shape, u.shape[0]) <= np.iinfo(np.int32).max else np.int64
    u, v = u.astype(kind), v.astype(kind)
    xp = engines.xp(u)
    arrays: Any
    if data is None:
        arrays = engine.assemble(*shape, u, v, reduce="keep")
    elif not isinstance(data, Column) and data.dtype in _SORTED_TYPES:
        arrays = engine.assemble(*shape, u, v, xp.ascontiguousarray(data), reduce="keep")
    else:  # the sort does not move such values
        places = xp.arange(u.shape[0], dtype=np.int64)
        indptr, indices, order = engine.assemble(*shape, u, v, places, reduce="keep")
        if isinstance(data, Column):
            values = Column(data.values, order if data.order is None else data.order[order])
        else:
            values = carried(data[order])
        arrays = indptr, indices, values
    return Raw(shape[0], *arrays)._replace(ordered=True, columns=shape[1], own=True)


def is_networkx(A: Any) -> bool:
    """Whether A is a graph of NetworkX; does not import it."""
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(A, networkx.Graph)


def _from_networkx(A: Any, caller: str, weight: str | None) -> Raw:
    """Vertices are numbered in the graph's own order; attributes are passed on unread."""
    if weight is not None and not isinstance(weight, str):
        got = arguments.shown(weight)
        raise TypeError(f"{caller}: weight must name an edge attribute or be None, got {got}")
    from matchwood.gate import networkx as reading

    if reading.own_access(type(A)):  # its dictionaries may not be its edges
        A = reading.plain_copy(A, weight)
    try:
        found = reading.read(A, reading.Wanted(() if weight is None else (weight,)))
    except RuntimeError as error:
        raise RuntimeError(f"{caller}: {error}") from error
    edges = found.edges or reading.edges_of(found.rows, A.is_directed())
    u, v, n, m = edges.u, edges.v, len(found.rows.nodes), edges.u.size
    places = np.arange(m)
    if not A.is_directed():
        mirror = u != v  # a loop is stored once
        u, v = np.r_[u, v[mirror]], np.r_[v, u[mirror]]
        places = np.r_[places, places[mirror]]
    data = None if weight is None else Column(list(edges.columns[weight]), places)
    return sorted_entries((n, n), u, v, data)._replace(edges=True)


def _real_numbers(values: list[Any], caller: str) -> Any:
    """An array of Python numbers; an error where an integer would be rounded."""
    try:
        array = np.asarray(values) if len(values) else np.empty(0)
    except (ValueError, OverflowError):
        array = np.empty(0, object)
    if array.ndim == 1 and array.dtype.kind in "biu":
        return array
    for at, value in enumerate(values):
        if isinstance(value, (int, np.integer)) and abs(int(value)) > EXACT:
            raise ValueError(
                f"{caller}: integer weights must be exact in float64, at most 2**53 in size, "
                f"got {value} at {at}; scale them or pass floats"
            )
        if not isinstance(value, (int, float, np.number, np.bool_)):
            raise TypeError(
                f"{caller}: weights must be real numbers, got {type(value).__name__} at {at}"
            )
    return array


def from_dense(A: Any, caller: str, square: bool = True) -> Raw:
    """The nonzeros of a 2-D array."""
    if A.dtype.kind not in "biufc":
        raise TypeError(f"{caller}: A must hold numbers, got dtype {A.dtype}")
    n, columns = two_sides(A.shape, caller, square)
    rows, cols = A.nonzero()
    data = A[rows, cols]
    xp = engines.xp(A)
    indptr = xp.zeros(n + 1, np.int64)
    indptr[1:] = xp.cumsum(xp.bincount(rows, minlength=n)[:n]) if n else indptr[1:]
    return Raw(n, indptr, cols, carried(data), columns=columns, own=True)


# Sparse matrices of SciPy and CuPy


def is_sparse(A: Any) -> bool:
    """Whether A is a sparse matrix or array of SciPy or CuPy, or of a subclass."""
    for name in ("scipy.sparse", "cupyx.scipy.sparse"):
        module = sys.modules.get(name)
        if module is not None and module.issparse(A):
            return True
    return False


def plain_rows(A: Any, most: int) -> tuple[Any, Any] | None:
    """indptr and indices of a small CSR matrix of SciPy, unread; None unless it is a usual one.

    Usual: square, not empty, at most `most` rows and entries together, plain arrays, int32 indices,
    and a number for each index.  What the arrays hold is for the caller to check.
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


def read_sparse(A: Any, caller: str, square: bool = True) -> Raw:
    if _place(A) == "gpu":
        engines.cupy()
    shape = two_sides(A.shape, caller, square)
    kind = str(A.format)
    if kind == "csr":
        return _from_rows(A, shape, caller)
    resources.require_vertices(caller, max(shape), _place(A))  # other arrays may be much shorter
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
            raise TypeError(f"{caller}: A must be {EXPECTED}, got {type(A).__name__}")
    except _CONVERSION_ERRORS as error:
        if str(error).startswith(f"{caller}: "):
            raise
        raise ValueError(f"{caller}: A is a broken {kind.upper()} matrix: {error}") from None
    return _from_rows(A, shape, caller, own=True)


def _place(A: Any) -> str:
    return "gpu" if type(A).__module__.partition(".")[0] == "cupyx" else "cpu"


def _own(A: Any, name: str, dimensions: int, caller: str) -> Any:
    """An array of the matrix, checked; all but the values must be integers."""
    array: Any = getattr(A, name, None)
    if type(array) is not np.ndarray and engines.location(array) != "gpu":
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


def _from_rows(A: Any, shape: Shape, caller: str, own: bool = False) -> Raw:
    rows, columns = shape
    indptr, indices = _own(A, "indptr", 1, caller), _own(A, "indices", 1, caller)
    data = _own(A, "data", 1, caller)
    # on a GPU, reading indptr[-1] would wait for the device; `Entries` looks at it later
    if engines.location(indptr) == "gpu" and data.size == indices.size:
        return Raw(rows, indptr, indices, data, columns=columns, spare=True, own=own)
    # a SciPy matrix may have room for more entries than it holds
    end = int(indptr[-1]) if indptr.size else 0
    indices = indices[:end] if indices.size > end >= 0 else indices
    if data.size < indices.size:
        raise _no_value_each(data, indices, caller)
    data = carried(data if data.size == indices.size else data[: indices.size])
    return Raw(rows, indptr, indices, data, columns=columns, own=own)


def _check_before_conversion(A: Any, kind: str, shape: Shape, caller: str) -> None:
    """Check the arrays of a BSR matrix (by rows) or a CSC matrix (by columns)."""
    indptr, indices = (
        as_indices(_own(A, name, 1, caller), name, caller) for name in ("indptr", "indices")
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


def _from_coordinates(A: Any, shape: Shape, caller: str) -> Raw:
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
        return _from_rows(A.tocsr(), shape, caller, own=True)
    return sorted_entries(shape, rows, cols, data)


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


def _from_diagonals(A: Any, shape: Shape, caller: str) -> Raw:
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
    return sorted_entries(shape, rows[stored], cols[stored], data[stored])


# Arrays


def is_foreign_array(A: Any) -> bool:
    """An array of another library that shares its memory: PyTorch, JAX, CuPy, ..."""
    return hasattr(A, "__cuda_array_interface__") or hasattr(A, "__dlpack__")


def as_array(value: Any, name: str, caller: str) -> Any:
    """A NumPy or CuPy array over the memory of `value`; lists and tuples are copied."""
    if isinstance(value, np.ndarray):
        return arguments.plain(caller, name, value)
    if engines.location(value) == "gpu":
        return value
    if hasattr(value, "__cuda_array_interface__"):
        return engines.cupy().asarray(value)
    if hasattr(value, "__dlpack__"):
        on_cpu = int(value.__dlpack_device__()[0]) == 1  # kDLCPU
        return np.from_dlpack(value) if on_cpu else engines.cupy().from_dlpack(value)
    if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
        try:
            array = np.asarray(value)
        except (ValueError, OverflowError):
            array = np.empty(0, object)  # rows of different lengths
        if array.dtype.kind in "biufc":
            return array
    raise TypeError(f"{caller}: {name} must be an array of numbers, got {type(value).__name__}")


def _values(value: Any, name: str, caller: str) -> Any:
    """An array for the values of entries.  They may be of any type, also text."""
    if isinstance(value, (list, tuple)):
        try:
            array = np.asarray(value)
        except (ValueError, OverflowError):
            array = np.empty((0, 0))
        if array.ndim != 1:
            raise TypeError(f"{caller}: {name} must be one-dimensional, got {type(value).__name__}")
        if array.dtype.kind == "f":
            return _real_numbers(list(value), caller)  # an integer among floats may be rounded
        return array
    if isinstance(value, np.ndarray):
        return arguments.plain(caller, name, value)
    return as_array(value, name, caller)


def _indices(value: Any, name: str, caller: str) -> Any:
    array = as_array(value, name, caller)
    if array.ndim != 1:
        raise ValueError(f"{caller}: {name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0 and isinstance(value, (list, tuple)):
        return array.astype(np.int32)
    return _integers(array, name, caller)


def _integers(array: Any, name: str, caller: str) -> Any:
    if array.dtype.kind not in "iu":
        raise TypeError(f"{caller}: {name} must hold integers, got dtype {array.dtype}")
    return array


def _same_place(arrays: list[Any], caller: str) -> None:
    places = {engines.location(array) for array in arrays}
    if len(places) > 1:
        raise TypeError(f"{caller}: the arrays of A must all be on the CPU or all on one GPU")


def as_indices(array: Any, name: str, caller: str) -> Any:
    """int32 or int64, native, contiguous; other integer types are widened."""
    dtype = array.dtype
    if type(array) is np.ndarray and dtype in _INDEX_TYPES and array.flags.c_contiguous:
        return array  # the common case
    if dtype.kind not in "iu":
        raise TypeError(f"{caller}: {name} must hold integers, got dtype {dtype}")
    if dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{caller}: {name} holds {int(array.max())}, more than any index")
    if dtype in (np.int32, np.int64):
        kind = dtype
    else:
        kind = np.dtype(np.int32 if dtype.itemsize < 4 or dtype.newbyteorder("=") == np.int32
                        else np.int64)  # fmt: skip
    return engines.xp(array).ascontiguousarray(array, dtype=kind.newbyteorder("="))


def as_weights(array: Any, caller: str) -> Any:
    """float32 or float64: as given, integers as float64 where that is exact, bool as 0 or 1."""
    dtype = array.dtype
    if dtype.kind == "b" or (dtype.kind == "f" and dtype.itemsize == 2):
        return array.astype(np.float32)
    if dtype.kind == "f" and dtype.itemsize in (4, 8):
        if type(array) is np.ndarray and dtype.isnative and array.flags.c_contiguous:
            return array  # the common case
        return engines.xp(array).ascontiguousarray(array, dtype=dtype.newbyteorder("="))
    if dtype.kind in "iu":
        if array.size and dtype.itemsize == 8:
            least, most = int(array.min()), int(array.max())
            if most > EXACT or least < -EXACT:
                worst = most if most > EXACT else least
                raise ValueError(
                    f"{caller}: integer weights must be exact in float64, at most 2**53 in size, "
                    f"got {worst}; scale them or pass floats"
                )
        return array.astype(np.float64)
    raise TypeError(f"{caller}: weights must be real numbers, got dtype {dtype}")
