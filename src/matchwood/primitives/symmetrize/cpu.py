"""Union with the transpose on a team: merge two sorted rows, once to count and once to write."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, device, interrupted, kernel, share_rows
from matchwood.engines.cpu.cpus import suits_one_thread
from matchwood.primitives.transpose.cpu import NO_DATA, transpose

Array = np.ndarray[Any, Any]


# How the two values of an edge are joined.  From ADD on magnitudes are taken, and edges of weight
# zero are dropped.
LEAST, GREATEST, ADD, HEAVIEST, LIGHTEST = range(5)
WAYS = {"sum": ADD, "max": HEAVIEST, "min": LIGHTEST}


@device
def _merged(how: int, x: Any, y: Any) -> Any:
    if how == ADD:
        return abs(x) + abs(y)
    if how >= ADD:
        x, y = abs(x), abs(y)
    if how in (LEAST, LIGHTEST):
        return y if y < x else x
    return y if y > x else x


@device
def _merge_row(
    i: int, indptr: Array, indices: Array, data: Array, t_indptr: Array, t_indices: Array,
    t_data: Array, how: int, place: int, out_indices: Array, out_data: Array,
) -> int:  # fmt: skip
    """Neighbours of i, written from `place` on where out_indices has room; returns how many."""
    with_data = data.size > 0 or t_data.size > 0  # one of the two may have no entries at all
    write = out_indices.size > 0
    p, p_end = np.int64(indptr[i]), np.int64(indptr[i + 1])
    q, q_end = np.int64(t_indptr[i]), np.int64(t_indptr[i + 1])
    count = 0
    weight = data.dtype.type(0)
    while p < p_end or q < q_end:
        from_row = q == q_end or (p < p_end and indices[p] <= t_indices[q])
        from_column = p == p_end or (q < q_end and t_indices[q] <= indices[p])
        j = indices[p] if from_row else t_indices[q]
        if with_data:
            if from_row and from_column:
                weight = _merged(how, data[p], t_data[q])
            else:
                weight = data[p] if from_row else t_data[q]
                if how >= ADD:
                    weight = abs(weight)
        p += from_row
        q += from_column
        if j != i and (how < ADD or weight != 0 or not with_data):
            if write:
                out_indices[place + count] = j
                if with_data:
                    out_data[place + count] = weight
            count += 1
    return count


@kernel
def _merge_rows(
    team: Any, indptr: Array, indices: Array, data: Array, t_indptr: Array, t_indices: Array,
    t_data: Array, how: int, out_indptr: Array, out_indices: Array, out_data: Array,
) -> None:  # fmt: skip
    """Without room in out_indices, out_indptr[i + 1] becomes the length of row i."""
    count_only = out_indices.size == 0
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        count = _merge_row(
            i, indptr, indices, data, t_indptr, t_indices, t_data, how,
            np.int64(out_indptr[i]), out_indices, out_data,
        )  # fmt: skip
        if count_only:
            out_indptr[i + 1] = count


def _with_room(indptr: Array) -> tuple[Array, Array]:
    """The row ends added up, in a type that holds them, and indices of the same type."""
    total = int(indptr.sum(dtype=np.int64))
    dtype = indptr.dtype if total <= np.iinfo(indptr.dtype).max else np.dtype(np.int64)
    return np.cumsum(indptr, dtype=dtype), np.empty(total, dtype)


def merge(
    view: tuple[Array, Array, Array], mirror: tuple[Array, Array, Array], how: int,
    *, threads: int | None = None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The union of two matrices of one shape, without the diagonal.

    The second is the transpose of the first, or a block of it where `view` is a block of a matrix:
    then one of them may be empty while the other is not.  Both have values, or neither has, which
    NO_DATA says (the values of a matrix without entries look the same).
    """
    indptr, indices, data = view
    team = crew(threads, work=indices.size + mirror[1].size + indptr.size)
    lengths, none = np.zeros_like(indptr), np.empty(0, indices.dtype)
    team.run(_merge_rows, *view, *mirror, how, lengths, none, data)
    out_indptr, out_indices = _with_room(lengths)
    valued = data.size > 0 or mirror[2].size > 0
    out_data = np.empty(out_indices.size if valued else 0, data.dtype)
    if out_indices.size:
        team.run(_merge_rows, *view, *mirror, how, out_indptr, out_indices, out_data)
    return out_indptr, out_indices, out_data


def union_with_transpose(
    indptr: Array, indices: Array, data: Array | None, *, reduce: str = "sum",
    threads: int | None = None,
) -> tuple[Array, Array, Array | None]:  # fmt: skip
    if data is None and threads is None and suits_one_thread(indptr.size + indices.size):
        return *small_union(indptr, indices), None
    t_indptr, t_indices, t_data = transpose(indptr, indices, data, indptr.size - 1, threads=threads)
    values = NO_DATA if data is None else data
    t_values = NO_DATA if t_data is None else t_data
    view, mirror = (indptr, indices, values), (t_indptr, t_indices, t_values)
    out_indptr, out_indices, out_data = merge(view, mirror, WAYS[reduce], threads=threads)
    return out_indptr, out_indices, None if data is None else out_data


@kernel
def _keep(
    team: Any, indptr: Array, indices: Array, data: Array, zeros: bool, out_indptr: Array,
    out_indices: Array, out_data: Array,
) -> None:  # fmt: skip
    """Entries off the diagonal; with `zeros` those of weight zero too, else the magnitudes.

    Without room in out_indices, out_indptr[i + 1] becomes the length of row i.
    """
    with_data, write = data.size > 0, out_indices.size > 0
    all_kept = zeros or not with_data
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        place = np.int64(out_indptr[i]) if write else np.int64(0)
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] != i and (all_kept or data[k] != 0):
                if write:
                    out_indices[place] = indices[k]
                    if with_data:
                        out_data[place] = data[k] if zeros else abs(data[k])
                place += 1
        if not write:
            out_indptr[i + 1] = place


def magnitudes(
    indptr: Array, indices: Array, data: Array | None, *, threads: int | None = None
) -> tuple[Array, Array, Array | None]:
    return without_loops(indptr, indices, data, zeros=False, threads=threads)


def without_loops(
    indptr: Array, indices: Array, data: Array | None, *, zeros: bool, threads: int | None = None
) -> tuple[Array, Array, Array | None]:
    """The entries off the diagonal; without `zeros` only weights other than 0, as magnitudes.

    With `zeros`, the arrays themselves where no entry is on the diagonal.
    """
    team = crew(threads, work=indices.size + indptr.size)
    values = NO_DATA if data is None else data
    lengths, none = np.zeros_like(indptr), np.empty(0, indices.dtype)
    team.run(_keep, indptr, indices, values, zeros, lengths, none, values)
    if zeros and int(lengths.sum(dtype=np.int64)) == indices.size:
        return indptr, indices, data
    out_indptr, out_indices = _with_room(lengths)
    out_data = NO_DATA if data is None else np.empty(out_indices.size, data.dtype)
    if out_indices.size:
        team.run(_keep, indptr, indices, values, zeros, out_indptr, out_indices, out_data)
    return out_indptr, out_indices, None if data is None else out_data


# A small pattern, by one thread in one kernel.  There is room for all entries twice, so rows are
# merged once, and not counted before.  Of 13,000 to 300,000 entries this took 0.23 to 0.32 of the
# time of a transpose and two merges by one thread.

_ONE = np.uint64(1)
_ENTRIES_PER_STEP = 5  # entries counted as a step of `crew`, though each takes up to 10 ns: so
# 100,000 rows and entries, less than a millisecond, are read in the calling thread


@device
def _transpose_pattern(indptr: Array, indices: Array, starts: Array, rows: Array) -> None:
    """starts[j + 1] is where column j goes on, and at last where it ends."""
    n, one = np.uint64(indptr.size - 1), starts.dtype.type(1)
    for j in range(n + _ONE):
        starts[j] = 0
    for k in range(np.uint64(indices.size)):
        starts[np.uint64(indices[k]) + _ONE] += one
    total = starts.dtype.type(0)
    for j in range(n):
        here = starts[j + _ONE]
        starts[j + _ONE] = total
        total += here
    for i in range(n):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
            at = np.uint64(indices[k]) + _ONE
            rows[starts[at]] = i
            starts[at] += one


@kernel
def _union(
    team: Any, indptr: Array, indices: Array, starts: Array, rows: Array, out_indptr: Array,
    out_indices: Array,
) -> None:  # fmt: skip
    """Merge each row with the column of its number, the diagonal left out."""
    _transpose_pattern(indptr, indices, starts, rows)
    place = np.uint64(0)
    out_indptr[0] = 0
    nobody = ~indices.dtype.type(0)
    for i in range(np.uint64(indptr.size - 1)):
        if interrupted(team, i):
            return
        p, p_end = np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])
        q, q_end = np.uint64(starts[i]), np.uint64(starts[i + _ONE])
        while p < p_end or q < q_end:
            x = indices[p] if p < p_end else nobody
            y = rows[q] if q < q_end else nobody
            least = min(x, y)
            p += np.uint64(x == least)
            q += np.uint64(y == least)
            out_indices[place] = least
            place += np.uint64(np.uint64(least) != i)
        out_indptr[i + _ONE] = place


def small_union(indptr: Array, indices: Array) -> tuple[Array, Array]:
    n, m = indptr.size - 1, indices.size
    kind: Any = np.uint32 if indices.itemsize == 4 else np.uint64
    out_indptr, out_indices = np.empty_like(indptr), np.empty(2 * m + 1, indices.dtype)
    scratch = np.empty(n + 1 + m, kind)
    crew(1, work=(n + m) // _ENTRIES_PER_STEP).run(
        _union, indptr.view(kind), indices.view(kind), scratch[: n + 1], scratch[n + 1 :],
        out_indptr.view(kind), out_indices.view(kind),
    )  # fmt: skip
    return out_indptr, out_indices[: int(out_indptr[-1])]
