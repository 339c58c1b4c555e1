"""`assemble` on a team: sort by column while reading the list, transpose, merge duplicates."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, interrupted, kernel, share, share_rows
from matchwood.primitives.transpose.cpu import NO_DATA, first_places, transpose

Array = np.ndarray[Any, Any]


@kernel
def _by_column(
    team: Any, rows: Array, cols: Array, data: Array, symmetric: bool, loops: bool, counts: Array,
    sums: Array, indptr: Array, out_rows: Array, out_data: Array,
) -> None:  # fmt: skip
    """Stable counting sort by column of the list, followed by its mirror when `symmetric`."""
    m = rows.size
    mine = counts[team.me]
    mine[:] = 0
    lo, hi = share(team, 2 * m if symmetric else m)
    for k in range(lo, min(hi, m)):
        if interrupted(team, k):
            return
        if loops or rows[k] != cols[k]:
            mine[cols[k]] += 1
    for k in range(max(lo, m) - m, hi - m):
        if interrupted(team, k):
            return
        if loops or rows[k] != cols[k]:
            mine[rows[k]] += 1
    if barrier(team) or first_places(team, counts, indptr, sums):
        return
    with_data = data.size > 0
    for k in range(lo, min(hi, m)):
        if interrupted(team, k):
            return
        if loops or rows[k] != cols[k]:
            place = mine[cols[k]]
            mine[cols[k]] += 1
            out_rows[place] = rows[k]
            if with_data:
                out_data[place] = data[k]
    for k in range(max(lo, m) - m, hi - m):
        if interrupted(team, k):
            return
        if loops or rows[k] != cols[k]:
            place = mine[rows[k]]
            mine[rows[k]] += 1
            out_rows[place] = cols[k]
            if with_data:
                out_data[place] = data[k]


@device
def _distinct(indptr: Array, indices: Array, i: int) -> int:
    """Distinct columns of row i; inlined by hand this loop takes three times as long."""
    count = 0
    for k in range(indptr[i], indptr[i + 1]):
        if k == indptr[i] or indices[k] != indices[k - 1]:
            count += 1
    return count


@kernel
def _count_distinct(team: Any, indptr: Array, indices: Array, out_indptr: Array) -> None:
    """out_indptr[i + 1] = distinct columns of row i."""
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        out_indptr[i + 1] = _distinct(indptr, indices, i)


# How entries that are given more than once are joined; the same numbers as in gpu.cu.  Of equal
# values the first is kept.
SUM, FIRST, LEAST, GREATEST, HEAVIEST = range(5)
WAYS = {"sum": SUM, "first": FIRST, "min": LEAST, "max": GREATEST, "heaviest": HEAVIEST}


@device
def _joined(how: int, x: Any, y: Any) -> Any:
    if how == SUM:
        return x + y
    if how == LEAST:
        return y if y < x else x
    if how == GREATEST:
        return y if y > x else x
    if how == HEAVIEST:
        return y if abs(y) > abs(x) else x
    return x


@kernel
def _merge(
    team: Any, indptr: Array, indices: Array, data: Array, how: int, out_indptr: Array,
    out_indices: Array, out_data: Array,
) -> None:  # fmt: skip
    with_data = data.size > 0
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        place = np.int64(out_indptr[i]) - 1
        for k in range(indptr[i], indptr[i + 1]):
            if k == indptr[i] or indices[k] != indices[k - 1]:
                place += 1
                out_indices[place] = indices[k]
                if with_data:
                    out_data[place] = data[k]
            elif with_data:
                out_data[place] = _joined(how, out_data[place], data[k])


def distinct_before(indptr: Array, indices: Array, threads: int | None) -> Array:
    """How many entries the rows before each one have, equal neighbours counted once."""
    found = np.zeros_like(indptr)
    team = crew(threads, work=indices.size + indptr.size)
    team.run(_count_distinct, indptr, indices, found)
    return np.cumsum(found, out=found)


def merge_duplicates(
    indptr: Array, indices: Array, data: Array | None, *, reduce: str, threads: int | None = None
) -> tuple[Array, Array, Array | None]:
    """Join equal neighbours in sorted rows; the arrays themselves where there are none."""
    team = crew(threads, work=indices.size + indptr.size)
    out_indptr = distinct_before(indptr, indices, threads)
    m = int(out_indptr[-1])
    if m == indices.size:
        return indptr, indices, data
    out_indices = np.empty(m, indices.dtype)
    values = NO_DATA if data is None else data
    out_data = NO_DATA if data is None else np.empty(m, data.dtype)
    team.run(_merge, indptr, indices, values, WAYS[reduce], out_indptr, out_indices, out_data)
    return out_indptr, out_indices, None if data is None else out_data


def assemble(
    n_rows: int, n_cols: int, rows: Array, cols: Array, data: Array | None = None, *,
    symmetric: bool = False, loops: bool = True, reduce: str = "sum", threads: int | None = None,
) -> tuple[Array, Array, Array | None]:  # fmt: skip
    m = 2 * rows.size if symmetric else rows.size
    team = crew(threads, work=m + n_cols)
    dtype = rows.dtype
    if max(m, n_rows, n_cols) > np.iinfo(dtype).max:
        dtype = np.dtype(np.int64)
    counts = np.empty((team.size, n_cols), dtype)
    sums = np.zeros(team.size, np.int64)
    indptr = np.empty(n_cols + 1, dtype)
    by_column = np.empty(m, dtype)
    values = NO_DATA if data is None else data
    moved = NO_DATA if data is None else np.empty(m, data.dtype)
    team.run(
        _by_column, rows, cols, values, symmetric, loops, counts, sums, indptr, by_column, moved
    )
    del counts
    m = int(indptr[-1])
    csr = transpose(
        indptr, by_column[:m], None if data is None else moved[:m], n_rows, threads=threads
    )
    del by_column, moved
    if reduce == "keep":
        return csr
    return merge_duplicates(*csr, reduce=reduce, threads=threads)


def canonical(
    indptr: Array, indices: Array, data: Array | None, columns: int, *, reduce: str = "sum",
    ordered: bool = False, threads: int | None = None,
) -> tuple[Array, Array, Array | None]:  # fmt: skip
    if ordered:
        return merge_duplicates(indptr, indices, data, reduce=reduce, threads=threads)
    flipped = transpose(indptr, indices, data, columns, threads=threads)
    rows = transpose(*flipped, indptr.size - 1, threads=threads)
    return merge_duplicates(*rows, reduce=reduce, threads=threads)
