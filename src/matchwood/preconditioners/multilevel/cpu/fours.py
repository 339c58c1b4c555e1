"""Matrices laid out for products: four rows at a time, each as long as the longest of them.

A loop over the entries of one row ends after a number of steps that the processor cannot foretell,
and every addition waits for the one before.  Four rows have one loop for all, and four sums: a
product with the matrix of a coarse level takes half the time, one with a 5-point grid two thirds
(bench/preconditioners/multilevel.py).  Within windows of rows those of similar lengths stand
together, so that little is added.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import crew, expanded, interrupted, kernel, share, share_rows
from matchwood.primitives.tally.cpu import Rows, rows_of, unsigned

Array = np.ndarray[Any, Any]

WINDOW = 64  # rows; a multiple of four


class Fours(NamedTuple):
    """Rows by length within each window; their entries, the first of four rows, then the second.

    Entries 4 ptr[g] to 4 ptr[g + 1] are those of rows order[4 g : 4 g + 4].  `order` ends with
    rows n, which are empty, up to a multiple of four.
    """

    order: Array
    ptr: Array
    indices: Array
    data: Array


@expanded
def of_four(a: Fours, g: Any, x: Array) -> Any:
    """The products of four rows with x."""
    two, one = np.uint64(2), np.uint64(1)
    t0 = t1 = t2 = t3 = x.dtype.type(0)
    for k in range(np.uint64(a.ptr[g]), np.uint64(a.ptr[g + one])):
        e = k << two
        t0 += a.data[e] * x[np.uint64(a.indices[e])]
        t1 += a.data[e + one] * x[np.uint64(a.indices[e + one])]
        t2 += a.data[e + two] * x[np.uint64(a.indices[e + two])]
        t3 += a.data[e + two + one] * x[np.uint64(a.indices[e + two + one])]
    return t0, t1, t2, t3


@kernel
def _sort_windows(team: Any, rows: Rows, more: int, out: Fours) -> None:
    """Fill out.order, and out.ptr[1:] with lengths."""
    n = rows.indptr.size - 1
    lo, hi = share(team, (n + WINDOW - 1) // WINDOW)
    for w in range(lo, hi):
        if interrupted(team, w << 8):
            return
        begin, end = w * WINDOW, min(n, (w + 1) * WINDOW)
        for i in range(begin, end):
            size = rows.indptr[i + 1] - rows.indptr[i]
            at: Any = i
            while at > begin:
                j = np.int64(out.order[at - 1])
                if rows.indptr[j + 1] - rows.indptr[j] <= size:
                    break
                out.order[at] = j
                at -= 1
            out.order[at] = i
        for first in range(begin, end, 4):
            last = np.int64(out.order[min(first + 3, end - 1)])  # the longest
            out.ptr[(first >> 2) + 1] = np.int64(rows.indptr[last + 1] - rows.indptr[last]) + more


@kernel
def _fill(team: Any, rows: Rows, inner: Array, out: Fours) -> None:
    """The entries, and where a row is too short, zeros."""
    n = rows.indptr.size - 1
    lo, hi = share_rows(team, out.ptr)
    for g in range(lo, hi):
        if interrupted(team, np.int64(g) << 2):
            return
        end = np.uint64(out.ptr[g + 1]) << np.uint64(2)
        for lane in range(4):
            at = (np.uint64(out.ptr[g]) << np.uint64(2)) + np.uint64(lane)
            i = np.int64(out.order[4 * g + lane])
            last = np.uint64(0)
            if i < n:
                if inner.size:
                    last = np.uint64(i)
                    out.indices[at], out.data[at] = last, inner[i]
                    at += np.uint64(4)
                for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
                    last = np.uint64(rows.indices[k])
                    out.indices[at], out.data[at] = last, rows.data[k]
                    at += np.uint64(4)
            while at < end:
                out.indices[at], out.data[at] = last, 0
                at += np.uint64(4)


def in_windows(matrix: tuple[Array, ...], beside: bool, kind: Any, threads: int | None) -> Fours:
    """`order` and `ptr` for CSR arrays and, if it is to be `beside` them, a diagonal."""
    indptr, indices, data = matrix
    n, index = indptr.size - 1, unsigned(indices.dtype)
    groups = (n + 3) // 4
    out = Fours(
        np.full(4 * groups, n, index), np.zeros(groups + 1, index), np.empty(0, index),
        np.empty(0, kind),
    )  # fmt: skip
    team = crew(threads, work=indices.size + n)
    team.run(_sort_windows, rows_of(indptr, indices, data), int(beside), out)
    np.cumsum(out.ptr, out=out.ptr)
    return out


def fill(matrix: tuple[Array, ...], inner: Array | None, out: Fours, threads: int | None) -> None:
    """The entries of the matrix and of the diagonal `inner`, into room for 4 ptr[-1] of them."""
    indptr, indices, data = matrix
    team = crew(threads, work=indices.size + indptr.size)
    team.run(_fill, rows_of(indptr, indices, data), np.empty(0) if inner is None else inner, out)
