"""Passes over the entries of a block, on a team.

A block is in local ids: row and column of one vertex have the same id, so that a loop is seen as
on one machine.  `names` are the vertices' numbers for the user, by local id.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.inspect.cpu import value_number, vertex_numbers
from matchwood.teams import crew, interrupted, kernel, share, share_rows

Array = np.ndarray[Any, Any]

_ZERO = np.uint64(0)
_WIDTH = 8  # words of a member's line: it shares no cache line with another
_LOOPS, _SUM1, _SUM2, _BAD, _ZEROS = range(5)


@kernel
def _symmetry(
    team: Any, indptr: Array, indices: Array, names: Array, key: Any, table: Array
) -> None:
    """As in primitives.inspect, of original numbers: the sums of all blocks are those of all."""
    line = table[team.rank]
    lo, hi = share_rows(team, indptr)
    loops = 0
    sum1 = sum2 = _ZERO
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        x1 = y1 = x2 = y2 = _ZERO
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = indices[k]
            loops += j == i
            a, b, c, d = vertex_numbers(key, names[j])
            x1 += a
            y1 += b
            x2 += c
            y2 += d
        a, b, c, d = vertex_numbers(key, names[i])
        sum1 += a * y1 - b * x1
        sum2 += c * y2 - d * x2
    line[_LOOPS] = loops
    line[_SUM1] = np.int64(sum1)
    line[_SUM2] = np.int64(sum2)


def symmetry(
    indptr: Array, indices: Array, names: Array, key: Any, threads: int | None
) -> tuple[int, int, int]:
    """(loops, two sums): symmetric when the sums of all blocks are zero, modulo 2^64."""
    team = crew(threads, work=indices.size + indptr.size)
    table = np.zeros((team.size, _WIDTH), np.int64)
    team.run(_symmetry, indptr, indices, names, key, table)
    return int(table[:, _LOOPS].sum()), int(table[:, _SUM1].sum()), int(table[:, _SUM2].sum())


@kernel
def _values(
    team: Any,
    indptr: Array,
    indices: Array,
    data: Array,
    bits: Array,
    names: Array,
    key: Any,
    table: Array,
    ranges: Array,
) -> None:
    line = table[team.rank]
    line[_BAD] = -1
    lo, hi = share_rows(team, indptr)
    least, most = np.inf, -np.inf
    zeros = 0
    sum1 = sum2 = _ZERO
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        x1 = y1 = x2 = y2 = _ZERO
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = indices[k]
            w = np.float64(data[k])
            if not np.isfinite(w):
                line[_BAD] = k
                return
            if j != i:
                least = min(least, w)
                most = max(most, w)
                zeros += w == 0.0
            h = value_number(key, bits[k]) if w != 0.0 else key.value_start  # -0.0 is 0.0
            a, b, c, d = vertex_numbers(key, names[j])
            x1 += a * h
            y1 += b * h
            x2 += c * h
            y2 += d * h
        a, b, c, d = vertex_numbers(key, names[i])
        sum1 += a * y1 - b * x1
        sum2 += c * y2 - d * x2
    ranges[team.rank, 0] = least
    ranges[team.rank, 1] = most
    line[_ZEROS] = zeros
    line[_SUM1] = np.int64(sum1)
    line[_SUM2] = np.int64(sum2)


def values(
    view: tuple[Array, Array, Array], names: Array, key: Any, threads: int | None
) -> tuple[int, float, float, tuple[int, int, int]]:
    """(an entry that is not finite or -1, least, most, (zeros, two sums)), loops left out."""
    indptr, indices, data = view
    team = crew(threads, work=indices.size + indptr.size)
    table = np.zeros((team.size, _WIDTH), np.int64)
    ranges = np.zeros((team.size, _WIDTH))
    bits = data.view(np.uint32 if data.itemsize == 4 else np.uint64)
    team.run(_values, indptr, indices, data, bits, names, key, table, ranges)
    bad = table[table[:, _BAD] >= 0, _BAD]
    sums = tuple(int(table[:, k].sum()) for k in (_ZEROS, _SUM1, _SUM2))
    return (
        int(bad.min()) if bad.size else -1, float(ranges[:, 0].min()), float(ranges[:, 1].max()),
        (sums[0], sums[1], sums[2]),
    )  # fmt: skip


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
