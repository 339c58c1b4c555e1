"""Entries between groups, listed on a team and then assembled.

Entries are listed in the order of the rows, and `assemble` adds up equal ones in the order of the
list.  Of a symmetric matrix only the upper half is listed, i < j, and `assemble` mirrors the list.
No races: members own their rows, and where they write follows from counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, fail, interrupted, kernel, share_rows
from matchwood.primitives.assemble.cpu import assemble
from matchwood.primitives.patterns import not_symmetric
from matchwood.primitives.transpose.cpu import NO_DATA

Array = np.ndarray[Any, Any]

NOT_SYMMETRIC = 1  # code of a failure: more edges than a symmetric pattern has


class Csr(NamedTuple):
    """Rows of entries; `data` is empty where there are no values."""

    indptr: Array
    indices: Array
    data: Array


class Listed(NamedTuple):
    """Entries one after the other; `sums` counts those of each member and, last, all."""

    rows: Array
    columns: Array
    values: Array
    sums: Array


@device
def _kept(i: Any, j: Any, symmetric: bool) -> bool:
    """Is an entry from group i to group j listed?"""
    return i < j or (i > j and not symmetric)


@kernel
def _list_entries(team: Any, matrix: Csr, labels: Array, symmetric: bool, out: Listed) -> None:
    """The entries that count, in the order of the rows."""
    lo, hi = share_rows(team, matrix.indptr)
    count = 0
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        for k in range(np.uint64(matrix.indptr[u]), np.uint64(matrix.indptr[u + 1])):
            count += _kept(labels[u], labels[matrix.indices[k]], symmetric)
    out.sums[team.rank] = count
    if barrier(team):
        return
    place = np.int64(0)
    for member in range(team.rank):
        place += out.sums[member]
    if place + count > out.rows.size:
        fail(team, NOT_SYMMETRIC, place + count)
        return
    if team.rank == team.size - 1:
        out.sums[team.size] = place + count
    with_data = matrix.data.size > 0
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        for k in range(np.uint64(matrix.indptr[u]), np.uint64(matrix.indptr[u + 1])):
            j = labels[matrix.indices[k]]
            if _kept(labels[u], j, symmetric):
                out.rows[place] = labels[u]
                out.columns[place] = j
                if with_data:
                    out.values[place] = matrix.data[k]
                place += 1


def list_and_sort(
    indptr: Array,
    indices: Array,
    data: Array | None,
    labels: Array,
    count: int,
    *,
    symmetric: bool,
    threads: int | None = None,
    caller: str = "contract",
) -> Any:
    """(indptr, indices, data) of the groups, without loops; `data` may be None."""
    kind, nnz = indices.dtype, indices.size
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    team = crew(threads, work=nnz + labels.size)
    values = NO_DATA if data is None else data
    most = nnz // 2 if symmetric else nnz  # every edge is stored twice
    out = Listed(
        np.empty(most, kind),
        np.empty(most, kind),
        np.empty(0 if data is None else most, values.dtype),
        np.zeros(team.size + 1, np.int64),
    )
    team.run(
        _list_entries, Csr(indptr, indices.view(unsigned), values), labels, symmetric, out,
        errors={NOT_SYMMETRIC: lambda found: not_symmetric(caller)},
    )  # fmt: skip
    m = int(out.sums[-1])
    listed = (out.rows[:m], out.columns[:m], None if data is None else out.values[:m])
    return assemble(count, count, *listed, symmetric=symmetric, threads=threads)
