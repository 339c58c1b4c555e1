"""Entries travel to the rank that keeps them, and become its block.

An entry is sent as (row position, column position, value) to the rank where the row group of u
meets the column group of v.  There it is sorted by (row, column), equal entries in the order of
(sending rank, order of sending): the order in which one machine would have been given them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.dist.exchanges import Record, by_destination
from matchwood.gate.views import View
from matchwood.primitives.assemble import trusted_assemble

SORTED_TYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64))


def sent(comm: Any, grid: Any, u: Any, v: Any, data: Any) -> tuple[Any, Any, Any]:
    """(row positions, column positions, values or None) of the entries for this rank.

    `u` and `v` are numbers of the grid.  All ranks call this, all with values or all without.
    """
    rows, columns = grid.row_position(u), grid.column_position(v)
    if comm.size == 1:
        return rows, columns, data
    order, counts = by_destination(grid.keeper(u, v), comm.size, comm.threads)
    given = [rows[order], columns[order]] + ([] if data is None else [data[order]])
    record = Record(*given)
    flat, _ = comm.alltoallv(record.packed, [int(k) * record.width for k in counts])
    found = record.unpacked(flat)
    return found[0], found[1], None if data is None else found[2]


def sorted_block(
    rows: Any, columns: Any, data: Any, shape: tuple[int, int], threads: int | None
) -> View:
    """The entries by row and column; equal ones stay side by side, in the order given."""
    if data is None or data.dtype in SORTED_TYPES:
        return View(*_assembled(rows, columns, data, shape, threads))
    places = np.arange(rows.size, dtype=np.int64)
    indptr, indices, order = _assembled(rows, columns, places, shape, threads)
    return View(indptr, indices, data[order])


def _assembled(
    rows: Any, columns: Any, data: Any, shape: tuple[int, int], threads: int | None
) -> tuple[Any, Any, Any]:
    return trusted_assemble(*shape, rows, columns, data, reduce="keep", threads=threads)
