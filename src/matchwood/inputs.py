"""What the gate accepts, and how each kind becomes CSR arrays.  The gate itself is csr.py.

`read` recognises the kind of its argument and returns raw arrays: of integer type, one-dimensional
and contiguous, but with contents not looked at yet.  Nothing is changed in place, and arrays that
fit are passed on as they are.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.primitives.assemble import trusted_assemble as assemble

EXPECTED = (
    "a sparse matrix (SciPy or CuPy), a 2-D array, (indptr, indices[, data]), "
    "(n, edges[, weights]), a NetworkX graph or a matchwood Graph"
)


class Raw(NamedTuple):
    """CSR arrays as they came."""

    n: int
    indptr: Any
    indices: Any
    data: Any  # or None


def read(A: Any, caller: str) -> Raw:
    """The CSR arrays of anything the gate accepts."""
    module = type(A).__module__.partition(".")[0]
    if module in ("scipy", "cupyx") and hasattr(A, "format") and hasattr(A, "tocsr"):
        if module == "cupyx":
            engines.cupy()
        return _from_sparse(A, caller)
    if isinstance(A, tuple):
        return _from_tuple(A, caller)
    if _is_networkx(A):
        return _from_networkx(A)
    if isinstance(A, np.ndarray) or _is_foreign_array(A):
        return _from_dense(_array(A, "A", caller), caller)
    raise TypeError(f"{caller}: A must be {EXPECTED}, got {type(A).__name__}")


def _from_sparse(A: Any, caller: str) -> Raw:
    n = _square(A.shape, caller)
    csr = A if A.format == "csr" else A.tocsr()
    # a SciPy matrix may have room for more entries than it holds
    end = int(csr.indptr[-1]) if csr.indptr.size else 0
    if csr.indices.size > end >= 0 and csr.data.size > end:
        return Raw(n, csr.indptr, csr.indices[:end], csr.data[:end])
    return Raw(n, csr.indptr, csr.indices, csr.data)


def _square(shape: Any, caller: str) -> int:
    if len(shape) != 2:
        raise ValueError(f"{caller}: A must have 2 dimensions, got shape {tuple(shape)}")
    if shape[0] != shape[1]:
        raise ValueError(f"{caller}: A must be square, got shape {tuple(shape)}")
    return int(shape[0])


def _from_tuple(A: tuple[Any, ...], caller: str) -> Raw:
    if len(A) not in (2, 3):
        raise TypeError(f"{caller}: a tuple must hold 2 or 3 items, got {len(A)}")
    if isinstance(A[0], (int, np.integer)) and not isinstance(A[0], bool):
        return _from_edges(int(A[0]), A[1], A[2] if len(A) == 3 else None, caller)
    indptr = _indices(A[0], "indptr", caller)
    indices = _indices(A[1], "indices", caller)
    if indptr.size == 0:
        raise ValueError(f"{caller}: indptr must have at least one element, got none")
    data = None if len(A) == 2 or A[2] is None else _array(A[2], "data", caller)
    if data is not None and data.shape != indices.shape:
        raise ValueError(
            f"{caller}: data must have one value for each index, "
            f"got shape {data.shape} for {indices.size} indices"
        )
    arrays = [array for array in (indptr, indices, data) if array is not None]
    _same_place(arrays, caller)
    return Raw(indptr.size - 1, indptr, indices, data)


def _from_edges(n: int, edges: Any, weights: Any, caller: str) -> Raw:
    if n < 0:
        raise ValueError(f"{caller}: the number of vertices must not be negative, got {n}")
    pairs = _array(edges, "edges", caller)
    if pairs.size == 0 and pairs.ndim < 2:
        pairs = pairs.reshape(0, 2).astype(np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{caller}: edges must have shape (m, 2), got {pairs.shape}")
    ends = _integers(pairs, "edges", caller)
    if ends.size and not (0 <= int(ends.min()) and int(ends.max()) < n):
        bad = int(((ends < 0) | (ends >= n)).any(axis=1).argmax())
        raise ValueError(
            f"{caller}: edges must join vertices 0..{n - 1}, "
            f"got {tuple(ends[bad].tolist())} as edge {bad}"
        )
    data = None
    if weights is not None:
        data = as_weights(_array(weights, "weights", caller), caller)
        if data.shape != (ends.shape[0],):
            raise ValueError(
                f"{caller}: weights must have one value for each of the {ends.shape[0]} edges, "
                f"got shape {data.shape}"
            )
        _same_place([ends, data], caller)
    dtype = np.int32 if max(n, ends.shape[0]) <= np.iinfo(np.int32).max else np.int64
    u, v = ends[:, 0].astype(dtype), ends[:, 1].astype(dtype)
    return Raw(n, *assemble(n, n, u, v, data))


def _is_networkx(A: Any) -> bool:
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(A, networkx.Graph)


def _from_networkx(A: Any) -> Raw:
    """Vertices are numbered in the graph's own order; parallel edges are added up."""
    number = {node: i for i, node in enumerate(A)}
    edges = list(A.edges(data="weight", default=1))
    n, m = len(number), len(edges)
    u = np.fromiter((number[e[0]] for e in edges), np.int64, m)
    v = np.fromiter((number[e[1]] for e in edges), np.int64, m)
    w = np.asarray([e[2] for e in edges]) if m else np.empty(0)
    if not A.is_directed():
        mirror = u != v  # a loop is stored once
        u, v, w = np.r_[u, v[mirror]], np.r_[v, u[mirror]], np.r_[w, w[mirror]]
    data = as_weights(w, "graph")
    return Raw(n, *assemble(n, n, u.astype(np.int32), v.astype(np.int32), data))


def _from_dense(A: Any, caller: str) -> Raw:
    if A.dtype.kind not in "biufc":
        raise TypeError(f"{caller}: A must hold numbers, got dtype {A.dtype}")
    n = _square(A.shape, caller)
    rows, cols = A.nonzero()
    data = A[rows, cols]
    xp = engines.cupy() if engines.location(A) == "gpu" else np
    indptr = xp.zeros(n + 1, np.int64)
    indptr[1:] = xp.cumsum(xp.bincount(rows, minlength=n)[:n]) if n else indptr[1:]
    return Raw(n, indptr, cols, data)


def _is_foreign_array(A: Any) -> bool:
    """Something of another library that offers its memory: PyTorch, JAX, CuPy, ..."""
    return hasattr(A, "__cuda_array_interface__") or hasattr(A, "__dlpack__")


def _array(value: Any, name: str, caller: str) -> Any:
    """A NumPy or CuPy array over the memory of `value`; lists and tuples are copied."""
    if isinstance(value, np.ndarray) or engines.location(value) == "gpu":
        return value
    if hasattr(value, "__cuda_array_interface__"):
        return engines.cupy().asarray(value)
    if hasattr(value, "__dlpack__"):
        on_cpu = int(value.__dlpack_device__()[0]) == 1  # kDLCPU
        return np.from_dlpack(value) if on_cpu else engines.cupy().from_dlpack(value)
    if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype.kind in "biufc":
            return array
    raise TypeError(f"{caller}: {name} must be an array of numbers, got {type(value).__name__}")


def _indices(value: Any, name: str, caller: str) -> Any:
    array = _array(value, name, caller)
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
    if dtype.kind not in "iu":
        raise TypeError(f"{caller}: {name} must hold integers, got dtype {dtype}")
    if dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{caller}: {name} holds {int(array.max())}, more than any index")
    if dtype in (np.int32, np.int64):
        kind = dtype
    else:
        kind = np.dtype(np.int32 if dtype.itemsize < 4 or dtype.newbyteorder("=") == np.int32
                        else np.int64)  # fmt: skip
    xp = engines.cupy() if engines.location(array) == "gpu" else np
    return xp.ascontiguousarray(array, dtype=kind.newbyteorder("="))


def as_weights(array: Any, caller: str) -> Any:
    """float32 or float64: as given, integers as float64 where that is exact, truth as 0 or 1."""
    dtype = array.dtype
    xp = engines.cupy() if engines.location(array) == "gpu" else np
    if dtype.kind == "b" or (dtype.kind == "f" and dtype.itemsize == 2):
        return array.astype(np.float32)
    if dtype.kind == "f" and dtype.itemsize in (4, 8):
        return xp.ascontiguousarray(array, dtype=dtype.newbyteorder("="))
    if dtype.kind in "iu":
        limit = 1 << 53
        if array.size and dtype.itemsize == 8:
            least, most = int(array.min()), int(array.max())
            if most > limit or least < -limit:
                worst = most if most > limit else least
                raise ValueError(
                    f"{caller}: integer weights must be exact in float64, at most 2**53 in size, "
                    f"got {worst}; scale them or pass floats"
                )
        return array.astype(np.float64)
    raise TypeError(f"{caller}: weights must be real numbers, got dtype {dtype}")
