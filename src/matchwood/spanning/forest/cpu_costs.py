"""A matrix and its mirror in one: rows merged, of two values the one that counts is kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import crew, device, interrupted, kernel, share_rows

Array = np.ndarray[Any, Any]


@device
def _merge_row(
    i: int,
    indptr: Array,
    indices: Array,
    data: Array,
    t_indptr: Array,
    t_indices: Array,
    t_data: Array,
    maximum: bool,
    place: int,
    out_indices: Array,
    out_data: Array,
) -> int:
    """Neighbours of i, written from `place` on where out_indices has room; returns how many."""
    write = out_indices.size > 0
    p, p_end = np.int64(indptr[i]), np.int64(indptr[i + 1])
    q, q_end = np.int64(t_indptr[i]), np.int64(t_indptr[i + 1])
    count = 0
    while p < p_end or q < q_end:
        from_row = q == q_end or (p < p_end and indices[p] <= t_indices[q])
        from_column = p == p_end or (q < q_end and t_indices[q] <= indices[p])
        j = indices[p] if from_row else t_indices[q]
        if j != i:
            if write:
                w = data[p] if from_row else t_data[q]
                if from_row and from_column:
                    other = t_data[q]
                    w = max(w, other) if maximum else min(w, other)
                out_indices[place + count] = j
                out_data[place + count] = w
            count += 1
        p += from_row
        q += from_column
    return count


@kernel
def _count(
    team: Any,
    indptr: Array,
    indices: Array,
    data: Array,
    t_indptr: Array,
    t_indices: Array,
    t_data: Array,
    maximum: bool,
    none: Array,
    out_indptr: Array,
) -> None:
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        out_indptr[i + 1] = _merge_row(
            i, indptr, indices, data, t_indptr, t_indices, t_data, maximum, 0, none, t_data
        )


@kernel
def _write(
    team: Any,
    indptr: Array,
    indices: Array,
    data: Array,
    t_indptr: Array,
    t_indices: Array,
    t_data: Array,
    maximum: bool,
    out_indptr: Array,
    out_indices: Array,
    out_data: Array,
) -> None:
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        _merge_row(
            i, indptr, indices, data, t_indptr, t_indices, t_data, maximum,
            out_indptr[i], out_indices, out_data,
        )  # fmt: skip


def merge(view: Any, mirror: Any, maximum: bool) -> tuple[Array, Array, Array]:
    """The union of both without the diagonal; of two values the lighter, or the heavier."""
    indptr, indices, data = view
    team = crew(None, work=2 * indices.size + indptr.size)
    lengths = np.zeros(indptr.size, np.int64)
    none = np.empty(0, indices.dtype)
    team.run(_count, *view, *mirror, maximum, none, lengths)
    total = int(lengths.sum())
    kind = indptr.dtype if total <= np.iinfo(indptr.dtype).max else np.dtype(np.int64)
    out_indptr = np.cumsum(lengths).astype(kind)
    out_indices, out_data = np.empty(total, kind), np.empty(total, data.dtype)
    if total:
        team.run(_write, *view, *mirror, maximum, out_indptr, out_indices, out_data)
    return out_indptr, out_indices, out_data
