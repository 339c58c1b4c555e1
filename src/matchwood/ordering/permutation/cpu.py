"""A symmetric permutation on a team: rows are copied, renamed, and sorted one by one.

A member takes rows of the result, equal parts of the entries.  A row's new columns are packed with
the positions of their values into one word and sorted: by insertion where short, else by merging
runs back and forth between two buffers as long as the longest row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import barrier, crew, kernel, share, share_rows, stopping
from matchwood.ordering.cpu import CHECK_ENTRIES, sort_runs

Array = np.ndarray[Any, Any]

ONE = np.uint64(1)
LAST = CHECK_ENTRIES - 1


@kernel
def _lengths(team: Any, indptr: Array, perm: Array, out: Array, sums: Array) -> None:
    n = perm.size
    lo, hi = share(team, n)
    total = np.int64(0)
    for i in range(lo, hi):
        total += np.int64(indptr[perm[i] + 1]) - np.int64(indptr[perm[i]])
    sums[team.me] = total
    if barrier(team):
        return
    at = np.int64(0)
    for member in range(team.me):
        at += sums[member]
    for i in range(lo, hi):
        out[i] = at
        at += np.int64(indptr[perm[i] + 1]) - np.int64(indptr[perm[i]])
    if hi == n:
        out[n] = at


@kernel
def _rows(
    team: Any, indptr: Array, indices: Array, data: Array, perm: Array, place: Array,
    out_indptr: Array, out_indices: Array, out_data: Array, shift: Any, buffers: Array,
) -> None:  # fmt: skip
    words, other = buffers[team.me, 0], buffers[team.me, 1]
    mask = (ONE << shift) - ONE
    lo, hi = share_rows(team, out_indptr)
    since = np.int64(0)  # entries since the last check
    for i in range(lo, hi):
        first = np.int64(indptr[perm[i]])
        count = np.int64(indptr[perm[i] + 1]) - first
        since += count + 1
        if since > CHECK_ENTRIES:
            since = np.int64(0)
            if stopping(team):
                return
        for k in range(count):
            if k & LAST == LAST and stopping(team):
                return
            column = np.uint64(place[indices[first + k]])
            words[k] = (column << shift) | np.uint64(k)
        found = other if sort_runs(team, words, other, count) else words
        at = np.int64(out_indptr[i])
        for k in range(count):
            if k & LAST == LAST and stopping(team):
                return
            out_indices[at + k] = found[k] >> shift
            if data.size > 0:
                out_data[at + k] = data[first + np.int64(found[k] & mask)]


def permute(
    view: Any, perm: Any, place: Any, *, threads: int | None = None
) -> tuple[Array, Array, Array | None]:
    n, kind = view.n, view.indptr.dtype
    team = crew(threads, work=view.nnz + n)
    indptr, indices = np.zeros(n + 1, kind), np.empty(view.nnz, kind)
    if n == 0:
        return indptr, indices, view.data
    longest = int((view.indptr[1:] - view.indptr[:-1]).max())
    shift = max(1, longest.bit_length())
    if shift + n.bit_length() > 64:
        raise OverflowError(f"permute: {n} columns and rows of {longest} do not fit 64 bits")
    given = view.data
    word = _as_words(given)
    if given is not None and word is None:
        return _by_position(view, perm, place, threads)
    values = np.empty(0, np.uint32) if word is None else word
    out = np.empty(values.size, values.dtype)
    team.run(_lengths, view.indptr, perm, indptr, np.zeros(team.size, np.int64))
    team.run(
        _rows, view.indptr, view.indices, values, perm, place, indptr, indices, out,
        np.uint64(shift), np.empty((team.size, 2, max(1, longest)), np.uint64),
    )  # fmt: skip
    return indptr, indices, None if given is None else out.view(given.dtype)


def _as_words(data: Any) -> Array | None:
    """The values as uint32 or uint64, so that kernels need two types only; None for other sizes."""
    if data is None or data.dtype.itemsize not in (4, 8):
        return None
    return np.ascontiguousarray(data).view(f"u{data.dtype.itemsize}")


def _by_position(
    view: Any, perm: Any, place: Any, threads: int | None
) -> tuple[Array, Array, Array | None]:
    """For values of another size: permute their positions, then gather the values."""
    positions = view._replace(data=np.arange(view.nnz, dtype=np.int64))
    indptr, indices, order = permute(positions, perm, place, threads=threads)
    assert order is not None
    return indptr, indices, view.data[order]
