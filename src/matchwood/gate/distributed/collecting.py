"""How entries are sent to the rank that keeps them, and become its block.

An entry is sent as (row position, column position, value) to the rank where the row group of u
meets the column group of v.  There it is sorted by (row, column), equal entries in the order of
(sending rank, order of sending): the order in which one machine would have been given them.

Entries are sent in rounds of `BATCH`, and wait in ranges of rows at the rank that keeps them.  In
the end the ranges are sorted one after the other, each freed when it is done.  So a rank needs at
most two indices (and the value) of each entry, beside one batch.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines.ranks.exchanges import by_destination
from matchwood.gate.views import View
from matchwood.primitives.assemble import trusted_assemble

SORTED_TYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64))
BATCH = 1 << 20  # entries that a rank sends at a time
RANGES = 16  # of rows, where a rank has more than one batch; the sort of each passes all columns
INT32_MAX = np.iinfo(np.int32).max

Entry = tuple[Any, Any, Any]  # arrays: rows, columns, values or None


def batches(u: Any, v: Any, data: Any, stride: int = 1) -> Iterator[Entry]:
    """Arrays of entries in parts, or every stride-th of these."""
    for start in range(0, max(u.shape[0], 1), BATCH * stride):
        part = slice(start, start + BATCH)
        yield u[part], v[part], None if data is None else data[part]


class Collector:
    """What a rank has received so far of the entries that it keeps.

    `expected`: about the entries of all ranks together.  `kind`: type of the values, or None.
    """

    def __init__(self, comm: Any, grid: Any, order: Any, expected: int, kind: Any) -> None:
        self.comm, self.grid, self.order, self.kind = comm, grid, order, kind
        ranges = RANGES if expected > BATCH * comm.size else 1
        self.height = max(-(-grid.n_rows // ranges), 1)  # rows of a range
        self.ranges = max(-(-grid.n_rows // self.height), 1)
        self.waiting: list[list[tuple[Entry, Any]]] = [[] for _ in range(self.ranges)]
        self.received = 0

    def collect(self, parts: Iterable[Entry], rounds: int) -> None:
        """Send all parts, `rounds` at most on any rank; all ranks call this together."""
        parts = iter(parts)
        index = np.int32 if self.grid.n <= INT32_MAX else np.int64
        nothing = np.empty(0, index)
        for _ in range(rounds):
            u, v, data = next(parts, (nothing, nothing, None))
            if self.kind is not None and data is None:
                data = np.empty(0, self.kind)
            u, v = u.astype(index, copy=False), v.astype(index, copy=False)  # one type everywhere
            self._keep(*self._sent(u, v, data if self.kind is not None else None))

    def _sent(self, u: Any, v: Any, data: Any) -> tuple[Entry, Any]:
        """The entries for this rank of one round, and how many each rank sent."""
        threads = self.comm.threads
        if self.order is not None:
            u, v = self.order.inside(u, threads), self.order.inside(v, threads)
        to, rows, columns = routes(self.grid, u, v, threads)
        if self.comm.size == 1:
            return (rows, columns, data), np.array([rows.size])
        order, counts = by_destination(to, self.comm.size, threads)
        counts = counts.tolist()
        rows, received = self.comm.alltoallv(rows[order], counts)
        columns, _ = self.comm.alltoallv(columns[order], counts)
        if data is not None:
            data, _ = self.comm.alltoallv(data[order], counts)
        return (rows, columns, data), np.asarray(received)

    def _keep(self, entries: Entry, received: Any) -> None:
        rows, columns, data = entries
        self.received += int(rows.size)
        if self.ranges == 1:
            self.waiting[0].append((entries, received))
            return
        ranks = self.comm.size
        of = rows // self.height
        order, counts = by_destination(of, self.ranges, self.comm.threads)
        table = np.zeros(self.ranges * ranks, np.int64)
        if self.kind is not None:  # where the order of equal entries matters
            of = of.astype(np.int64) * ranks + np.repeat(np.arange(ranks), received)
            table = np.bincount(of, minlength=self.ranges * ranks)
        ends = np.concatenate([[0], np.cumsum(counts)])
        for k in range(self.ranges):
            if counts[k]:
                at = order[ends[k] : ends[k + 1]]
                part = (rows[at], columns[at], None if data is None else data[at])
                self.waiting[k].append((part, table[k * ranks : (k + 1) * ranks]))

    def block(self, columns_sorted: Any, reduce: str = "keep") -> View:
        """The entries by row and column, which are then given up; `reduce`: primitives.assemble."""
        wide = self.received > INT32_MAX or self.grid.n > INT32_MAX
        kind = np.dtype(np.int64 if wide else np.int32)
        lengths = np.zeros(self.grid.n_rows + 1, np.int64)
        indices = np.empty(self.received, kind)  # as many at most; memory is taken when written to
        values = None if self.kind is None else np.empty(self.received, self.kind)
        filled = 0
        for k in range(self.ranges):
            first = k * self.height
            rows, columns, data = self._of_range(k, kind)
            if columns_sorted is not None:
                columns = columns_sorted[columns].astype(kind)
            rows -= kind.type(first)
            shape = (min(self.height, self.grid.n_rows - first), self.grid.n_columns)
            view = sorted_block(rows, columns, data, shape, reduce, self.comm.threads)
            lengths[first + 1 : first + 1 + shape[0]] = np.diff(view.indptr)
            indices[filled : filled + view.nnz] = view.indices
            if values is not None:
                values[filled : filled + view.nnz] = view.data
            filled += view.nnz
            del rows, columns, data, view
            give_back()
        indices.resize(filled, refcheck=False)
        if values is not None:
            values.resize(filled, refcheck=False)
        return View(np.cumsum(lengths, out=lengths), indices, values)

    def _of_range(self, k: int, kind: Any) -> Entry:
        """The entries of a range, by the rank that sent them and then by round."""
        parts, self.waiting[k] = self.waiting[k], []
        if self.kind is not None and len(parts) > 1:
            parts = [(piece, None) for piece in _by_source(parts, self.comm.size)]
        rows = joined([part[0] for part, _ in parts], kind)
        columns = joined([part[1] for part, _ in parts], kind)
        if self.kind is None:
            return rows, columns, None
        return rows, columns, joined([part[2] for part, _ in parts], self.kind)


def give_back() -> None:
    """Give freed memory back to the system, where the C library needs a call for it (glibc).

    The waiting pieces are small, and many; without this they stay with the process, beside the
    block that is made of them.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None


def joined(arrays: list[Any], kind: Any) -> Any:
    """One new array of several; the list is emptied."""
    whole = np.concatenate(arrays) if arrays else np.empty(0, kind)
    arrays.clear()
    return whole.astype(kind, copy=False)


def _by_source(parts: list[tuple[Entry, Any]], ranks: int) -> Iterator[Entry]:
    ends = [np.concatenate([[0], np.cumsum(received)]) for _, received in parts]
    for rank in range(ranks):
        for (rows, columns, data), end in zip([part for part, _ in parts], ends, strict=True):
            at = slice(int(end[rank]), int(end[rank + 1]))
            yield rows[at], columns[at], data[at]


def routes(grid: Any, u: Any, v: Any, threads: int | None) -> Entry:
    """(the rank that keeps it, its row position, its column position) of each entry (u, v)."""
    if grid.layout != "stripes":
        return grid.keeper(u, v), grid.row_position(u), grid.column_position(v)
    to = np.empty(u.shape[0], np.int32)
    rows, columns = np.empty(u.shape[0], u.dtype), np.empty(v.shape[0], v.dtype)
    engines.load(__package__, "cpu").routes(grid.shape, u, v, (to, rows, columns), threads)
    return to, rows, columns


def sorted_block(
    rows: Any, columns: Any, data: Any, shape: tuple[int, int], reduce: str, threads: int | None
) -> View:
    """The entries by row and column; equal ones are joined, or stay side by side."""
    if data is None or data.dtype in SORTED_TYPES:
        return View(*trusted_assemble(*shape, rows, columns, data, reduce=reduce, threads=threads))
    places = np.arange(rows.size, dtype=np.int64)
    indptr, indices, order = trusted_assemble(
        *shape, rows, columns, places, reduce="keep", threads=threads
    )
    view = View(indptr, indices, data[order])
    return view if reduce == "keep" else _joined_values(view, reduce)


def _joined_values(view: View, reduce: str) -> View:
    """Equal entries of types that no kernel sorts: added up, or the first of them."""
    first = np.ones(view.nnz, np.bool_)
    first[1:] = view.indices[1:] != view.indices[:-1]
    starts = view.indptr[:-1]
    first[starts[starts < view.nnz]] = True
    at = np.flatnonzero(first)
    before = np.concatenate([[0], np.cumsum(first)]).astype(view.indptr.dtype)
    data = view.data[at]
    if reduce == "sum" and at.size:
        data = np.add.reduceat(view.data, at)
    return View(before[view.indptr], view.indices[at], data)
