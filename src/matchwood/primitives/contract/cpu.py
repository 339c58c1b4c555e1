"""Contraction on a team: list each edge between two groups once, then assemble.

An edge is written from the end whose group has the smaller number, in the order of the rows;
`assemble` mirrors the list and adds up equal entries in its order.
No races: members own their rows, and where they write follows from counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.assemble.cpu import assemble
from matchwood.primitives.patterns import not_symmetric
from matchwood.teams import barrier, crew, fail, interrupted, kernel, share, share_rows

Array = np.ndarray[Any, Any]

NOT_SYMMETRIC = 1  # code of a failure: more edges than a symmetric pattern has


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


@kernel
def _edges(
    team: Any,
    indptr: Array,
    indices: Array,
    data: Array,
    label: Array,
    sums: Array,
    rows: Array,
    columns: Array,
    values: Array,
) -> None:
    """The edges between groups i < j, in the order of the rows."""
    lo, hi = share_rows(team, indptr)
    count = 0
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            count += label[u] < label[indices[k]]
    sums[team.rank] = count
    if barrier(team):
        return
    place = np.int64(0)
    for member in range(team.rank):
        place += sums[member]
    if place + count > rows.size:
        fail(team, NOT_SYMMETRIC, place + count)
        return
    if team.rank == team.size - 1:
        sums[team.size] = place + count
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            j = label[indices[k]]
            if label[u] < j:
                rows[place] = label[u]
                columns[place] = j
                values[place] = data[k]
                place += 1


def contract(
    indptr: Array,
    indices: Array,
    data: Array,
    label: Array,
    count: int,
    threads: int | None = None,
    caller: str = "contract",
) -> Any:
    kind, nnz = indices.dtype, indices.size
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    team = crew(threads, work=nnz + label.size)
    sums = np.zeros(team.size + 1, np.int64)
    half = nnz // 2  # at most: every edge is stored twice
    rows, columns = np.empty(half, kind), np.empty(half, kind)
    values = np.empty(half, data.dtype)
    team.run(
        _edges, indptr, indices.view(unsigned), data, label, sums, rows, columns, values,
        errors={NOT_SYMMETRIC: lambda found: not_symmetric(caller)},
    )  # fmt: skip
    m = int(sums[-1])
    return assemble(
        count, count, rows[:m], columns[:m], values[:m],
        symmetric=True, loops=False, threads=threads,
    )  # fmt: skip


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
    made = contract(indptr, indices, data, label, count, threads, caller)
    return made, label, weights[:count].copy()
