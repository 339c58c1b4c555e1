"""Passes over the entries of a block, on a team.

A block is in local ids: row and column of one vertex have the same id, so that a loop is seen as
on one machine.  Facts about symmetry and values: primitives/inspect.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, interrupted, kernel, share, share_rows

Array = np.ndarray[Any, Any]

_WIDTH = 8  # words of a member's line: it shares no cache line with another


@kernel
def _count_without_loops(team: Any, indptr: Array, indices: Array, lengths: Array) -> None:
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        count = 0
        for k in range(indptr[i], indptr[i + 1]):
            count += indices[k] != i
        lengths[i + 1] = count


@kernel
def _write_without_loops(
    team: Any,
    indptr: Array,
    indices: Array,
    data: Array,
    out_indptr: Array,
    out_indices: Array,
    out_data: Array,
) -> None:
    with_data = data.size > 0
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        place = np.int64(out_indptr[i])
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] != i:
                out_indices[place] = indices[k]
                if with_data:
                    out_data[place] = data[k]
                place += 1


def without_loops(
    indptr: Array, indices: Array, data: Array, threads: int | None
) -> tuple[Array, Array, Array]:
    """The entries off the diagonal; the arrays themselves where all are.  Empty data is none."""
    team = crew(threads, work=indices.size + indptr.size)
    lengths = np.zeros(indptr.size, np.int64)
    team.run(_count_without_loops, indptr, indices, lengths)
    total = int(lengths.sum())
    if total == indices.size:
        return indptr, indices, data
    out_indptr = np.cumsum(lengths).astype(indptr.dtype)
    out_indices = np.empty(total, indices.dtype)
    out_data = np.empty(total if data.size else 0, data.dtype)
    team.run(_write_without_loops, indptr, indices, data, out_indptr, out_indices, out_data)
    return out_indptr, out_indices, out_data


@kernel
def _distinct(team: Any, indptr: Array, indices: Array, table: Array) -> None:
    lo, hi = share_rows(team, indptr)
    count = 0
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        for k in range(indptr[i], indptr[i + 1]):
            count += k == indptr[i] or indices[k] != indices[k - 1]
    table[team.rank, 0] = count


def distinct(indptr: Array, indices: Array, threads: int | None) -> int:
    """Entries of sorted rows, equal ones counted once."""
    team = crew(threads, work=indices.size + indptr.size)
    table = np.zeros((team.size, _WIDTH), np.int64)
    team.run(_distinct, indptr, indices, table)
    return int(table[:, 0].sum())


@kernel
def _diagonal(team: Any, indptr: Array, indices: Array, data: Array, found: Array) -> None:
    """found[i] = a_ii; it stays as it is where none is stored."""
    lo, hi = share(team, found.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] == i:
                found[i] = data[k]
                break


def diagonal(view: tuple[Array, Array, Array], found: Array, threads: int | None) -> None:
    """The values on the diagonal, into `found`."""
    crew(threads, work=view[1].size).run(_diagonal, *view, found)


@kernel
def _renamed(team: Any, indices: Array, names: Array, shift: int, out: Array) -> None:
    lo, hi = share(team, indices.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        out[k] = names[indices[k]] + shift


def renamed(indices: Array, names: Array, out: Array, threads: int | None, shift: int = 0) -> Array:
    """names[indices] + shift into `out`, which may be `indices` itself."""
    crew(threads, work=indices.size).run(_renamed, indices, names, shift, out)
    return out
