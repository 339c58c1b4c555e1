"""Contraction on a team: list what lies between groups, then assemble.

Entries are listed in the order of the rows, and `assemble` adds up equal ones in the order of the
list.  Of a symmetric matrix only the upper half is listed, i <= j; the transpose of what came of it
is the lower half.  No races: members own their rows, and where they write follows from counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.primitives.assemble.cpu import assemble
from matchwood.primitives.patterns import not_symmetric
from matchwood.primitives.transpose.cpu import NO_DATA, transpose
from matchwood.teams import barrier, crew, device, fail, interrupted, kernel, share, share_rows

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


@kernel
def _number_pairs(
    team: Any, mate: Array, members: Array, sums: Array, label: Array, weights: Array
) -> None:
    """The label of every vertex; weights[:sums[size]] of the groups."""
    lo, hi = share(team, mate.size)
    first = 0
    for v in range(lo, hi):
        first += mate[v] < 0 or mate[v] > v
    sums[team.rank] = first
    if barrier(team):
        return
    number = 0
    for member in range(team.rank):
        number += sums[member]
    for v in range(lo, hi):
        if mate[v] < 0 or mate[v] > v:
            label[v] = number
            weights[number] = members[v] + (members[mate[v]] if mate[v] >= 0 else 0)
            number += 1
    if team.rank == team.size - 1:
        sums[team.size] = number
    if barrier(team):
        return
    for v in range(lo, hi):
        if 0 <= mate[v] < v:
            label[v] = label[mate[v]]


@device
def _kept(i: Any, j: Any, loops: bool, symmetric: bool) -> bool:
    """Is an entry from group i to group j listed?"""
    return i < j or (loops and i == j) or (i > j and not symmetric)


@kernel
def _list_entries(
    team: Any, matrix: Csr, label: Array, loops: bool, symmetric: bool, out: Listed
) -> None:
    """The entries that count, in the order of the rows."""
    lo, hi = share_rows(team, matrix.indptr)
    count = 0
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        for k in range(np.uint64(matrix.indptr[u]), np.uint64(matrix.indptr[u + 1])):
            count += _kept(label[u], label[matrix.indices[k]], loops, symmetric)
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
            j = label[matrix.indices[k]]
            if _kept(label[u], j, loops, symmetric):
                out.rows[place] = label[u]
                out.columns[place] = j
                if with_data:
                    out.values[place] = matrix.data[k]
                place += 1


@kernel
def _join_halves(team: Any, lower: Csr, upper: Csr, out: Csr) -> None:
    """A row is that of the lower half without the diagonal, then that of the upper one with it."""
    with_data = out.data.size > 0
    lo, hi = share_rows(team, out.indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        begin, end = lower.indptr[i], lower.indptr[i + 1]
        if begin < end and lower.indices[end - 1] == i:
            end -= 1
        place = np.int64(out.indptr[i])
        for k in range(begin, end):
            out.indices[place] = lower.indices[k]
            if with_data:
                out.data[place] = lower.data[k]
            place += 1
        for k in range(upper.indptr[i], upper.indptr[i + 1]):
            out.indices[place] = upper.indices[k]
            if with_data:
                out.data[place] = upper.data[k]
            place += 1


def contract(
    indptr: Array,
    indices: Array,
    data: Array | None,
    label: Array,
    count: int,
    *,
    loops: bool = False,
    symmetric: bool = True,
    threads: int | None = None,
    caller: str = "contract",
) -> Any:
    kind, nnz = indices.dtype, indices.size
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    team = crew(threads, work=nnz + label.size)
    values = NO_DATA if data is None else data
    most = nnz // 2 if symmetric and not loops else nnz  # every edge is stored twice
    out = Listed(
        np.empty(most, kind),
        np.empty(most, kind),
        np.empty(0 if data is None else most, values.dtype),
        np.zeros(team.size + 1, np.int64),
    )
    team.run(
        _list_entries, Csr(indptr, indices.view(unsigned), values), label, loops, symmetric, out,
        errors={NOT_SYMMETRIC: lambda found: not_symmetric(caller)},
    )  # fmt: skip
    m = int(out.sums[-1])
    listed = (out.rows[:m], out.columns[:m], None if data is None else out.values[:m])
    made = assemble(count, count, *listed, threads=threads)
    return _both_halves(made, count, threads) if symmetric else made


def _both_halves(made: Any, count: int, threads: int | None) -> Any:
    """The symmetric matrix whose upper half, diagonal included, is `made`."""
    above = (made[0], made[1], made[2])
    below = transpose(*above, count, threads=threads)
    lower, upper = (
        Csr(indptr, indices, NO_DATA if data is None else data)
        for indptr, indices, data in (below, above)
    )
    out_indptr = lower.indptr + upper.indptr
    starts = upper.indptr[:-1]
    rows = np.flatnonzero(starts < upper.indptr[1:])
    loops = np.zeros_like(out_indptr)  # the diagonal is in both halves
    loops[rows + 1] = upper.indices[starts[rows]] == rows
    out_indptr -= np.cumsum(loops, dtype=loops.dtype)
    m = int(out_indptr[-1])
    with_data = made[2] is not None
    data = np.empty(m, upper.data.dtype) if with_data else NO_DATA
    out = Csr(out_indptr, np.empty(m, upper.indices.dtype), data)
    crew(threads, work=m + count).run(_join_halves, lower, upper, out)
    return out.indptr, out.indices, out.data if with_data else None


def contract_pairs(
    indptr: Array,
    indices: Array,
    data: Array,
    mate: Array,
    members: Array,
    caller: str,
    threads: int | None,
) -> Any:
    n = mate.size
    team = crew(threads, work=indices.size + n)
    sums = np.zeros(team.size + 1, np.int64)
    label = np.empty(n, indices.dtype)
    weights = np.empty(n, members.dtype)
    team.run(_number_pairs, mate, members, sums, label, weights)
    count = int(sums[-1])
    made = contract(indptr, indices, data, label, count, threads=threads, caller=caller)
    return made, label, weights[:count].copy()
