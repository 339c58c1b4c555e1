"""`assemble` on the GPU: pack entries into numbers, sort them (CuPy's), join equal neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.compact.gpu import compact
from matchwood.primitives.transpose.gpu import expand_rows, first_places

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("pack<I>", "mark_first", "columns<I>", "join_values<W,H>"),
    types={"H": (np.int32, np.int64), "W": (np.float32, np.float64, np.int64)},
)

WAYS = {"sum": 0, "first": 1, "min": 2, "max": 3, "heaviest": 4}  # numbers of the rules in gpu.cu
_KEY_BITS = 63  # bits of a packed entry; the number with all 64 bits set stands for a dropped one
DROPPED = np.uint64(2**64 - 1)  # as gpu.cu has it


def assemble(
    n_rows: int, n_cols: int, rows: Any, cols: Any, data: Any = None, *, symmetric: bool = False,
    loops: bool = True, reduce: str = "sum", threads: int | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """See matchwood.primitives.assemble.assemble.

    Memory beside the result: about 25 bytes for each entry (41 with values), doubled when
    `symmetric`; most of it is the sort's.
    """
    entries = 2 * rows.size if symmetric else rows.size
    fits = max(entries, n_rows, n_cols) <= np.iinfo(rows.dtype).max
    dtype = rows.dtype if fits else np.dtype(np.int64)
    return sorted_rows(
        (n_rows, n_cols), rows, cols, data, dtype, symmetric=symmetric, loops=loops, reduce=reduce
    )


def sorted_rows(
    shape: tuple[int, int], rows: Any, cols: Any, data: Any, dtype: Any, *, symmetric: bool,
    loops: bool, reduce: str,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """`assemble` with indices of `dtype`, or int64 where the entries that are left need it."""
    cupy = engines.cupy()
    n_rows, n_cols = shape
    rows, cols = cupy.ascontiguousarray(rows), cupy.ascontiguousarray(cols)
    shift = max(n_cols - 1, 1).bit_length()
    if shift + max(n_rows - 1, 1).bit_length() > _KEY_BITS:
        raise ValueError(f"assemble: a matrix of shape {shape} is too large for the GPU")
    m = 2 * rows.size if symmetric else rows.size
    if m == 0:
        nothing = None if data is None else gpu.empty(0, data.dtype, "assemble")
        return cupy.zeros(n_rows + 1, dtype), gpu.empty(0, dtype, "assemble"), nothing
    with gpu.guard("assemble", m * (25 if data is None else 41)):
        keys = cupy.empty(m, np.uint64)
        pack = SOURCE.kernels("pack", I=rows.dtype).pack
        pack(m, (rows.size, rows, cols, shift, symmetric, loops, keys))
        return rows_of_keys(shape, keys, data, dtype, shift, reduce=reduce)


def rows_of_keys(
    shape: tuple[int, int], keys: Any, data: Any, dtype: Any, shift: int, *, reduce: str
) -> tuple[Any, Any, Any]:
    """CSR from entries that are numbers, row << shift | column; `keys` is overwritten.

    Shorter `data` is read again from its start; without data, "count" gives how many were equal.
    """
    cupy = engines.cupy()
    m = keys.size
    with gpu.guard("assemble", m * (17 if data is None else 33)):
        order = None
        if data is None:
            keys.sort()
        else:
            order = cupy.argsort(keys, kind="stable")
            keys = keys[order]
        if reduce == "keep":
            return _all_rows(shape, keys, data, order, shift, dtype)
        first = cupy.empty(m, np.bool_)
        SOURCE.kernels("mark_first").mark_first(m, (m, keys, first))
        distinct = compact(first, keys)
        count = distinct.size
        dtype = np.dtype(np.int64) if count > np.iinfo(dtype).max else dtype
        indices = gpu.empty(count, dtype, "assemble")
        SOURCE.kernels("columns", I=dtype).columns(count, (count, distinct, shift, indices))
        indptr = first_places(distinct, shape[0], dtype, shift=shift)
        if data is None and reduce != "count":
            return indptr, indices, None
        heads = compact(first)
        return indptr, indices, _values(keys, heads, order, data, reduce)


def _values(keys: Any, heads: Any, order: Any, data: Any, reduce: str) -> Any:
    """One value for each run of equal keys, which begin at `heads`."""
    cupy = engines.cupy()
    m, count = keys.size, heads.size
    if data is None or (reduce == "sum" and data.dtype.kind == "i"):
        # Integers: differences of sums from the first on, exact even where those overflow.
        if count == 0:
            return cupy.zeros(0, np.int64)
        ends = cupy.empty_like(heads)
        ends[:-1] = heads[1:]
        ends[-1:] = cupy.searchsorted(keys, cupy.asarray([DROPPED]))
        if data is None:
            return (ends - heads).astype(np.int64, copy=False)
        sums = cupy.zeros(m + 1, np.int64)
        cupy.cumsum(data[order if data.size == m else order % data.size], out=sums[1:])
        return sums[ends] - sums[heads]
    values = gpu.empty(count, data.dtype, "assemble")
    k = SOURCE.kernels("join_values", W=data.dtype, H=heads.dtype)
    data = cupy.ascontiguousarray(data)
    k.join_values(count, (count, heads, m, keys, order, data, data.size, WAYS[reduce], values))
    return values


def _all_rows(
    shape: tuple[int, int], keys: Any, data: Any, order: Any, shift: int, dtype: Any
) -> tuple[Any, Any, Any]:
    """All sorted entries but the dropped ones, which are last; values of any type."""
    indptr = first_places(keys, shape[0], dtype, shift=shift)
    count = int(indptr[-1])
    indices = gpu.empty(count, dtype, "assemble")
    SOURCE.kernels("columns", I=dtype).columns(count, (count, keys, shift, indices))
    return indptr, indices, None if data is None else data[order[:count] % data.size]


def canonical(
    indptr: Any, indices: Any, data: Any, columns: int, *, reduce: str = "sum",
    ordered: bool = False, threads: int | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    indptr = engines.cupy().ascontiguousarray(indptr)
    rows = expand_rows(indptr, indices.size)
    shape = (indptr.size - 1, columns)
    return sorted_rows(
        shape, rows, indices, data, indptr.dtype, symmetric=False, loops=True, reduce=reduce
    )
