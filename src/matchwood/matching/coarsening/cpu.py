"""Coarsening on a team: number the pairs, keep each edge once, assemble.

An edge between different coarse vertices is written once, from the end that goes to the smaller
one, in the order of the rows; `assemble` mirrors the list and adds up equal entries in its order.
No races: members own their rows, and where they write follows from counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.assemble.cpu import assemble
from matchwood.primitives.patterns import not_symmetric
from matchwood.teams import barrier, crew, fail, interrupted, kernel, share, share_rows

Array = np.ndarray[Any, Any]

BROKEN = 1  # more edges than a symmetric pattern has


@kernel
def _number(
    team: Any, mate: Array, members: Array, sums: Array, map: Array, weights: Array
) -> None:
    """map of every vertex; weights[:sums[size]] of the coarse ones."""
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
            map[v] = number
            weights[number] = members[v] + (members[mate[v]] if mate[v] >= 0 else 0)
            number += 1
    if team.rank == team.size - 1:
        sums[team.size] = number
    if barrier(team):
        return
    for v in range(lo, hi):
        if 0 <= mate[v] < v:
            map[v] = map[mate[v]]


@kernel
def _edges(
    team: Any,
    indptr: Array,
    indices: Array,
    data: Array,
    map: Array,
    sums: Array,
    rows: Array,
    columns: Array,
    values: Array,
) -> None:
    """The coarse edges (i, j) with i < j, in the order of the fine rows."""
    lo, hi = share_rows(team, indptr)
    count = 0
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            count += map[u] < map[indices[k]]
    sums[team.rank] = count
    if barrier(team):
        return
    place = np.int64(0)
    for member in range(team.rank):
        place += sums[member]
    if place + count > rows.size:
        fail(team, BROKEN, place + count)
        return
    if team.rank == team.size - 1:
        sums[team.size] = place + count
    if place + count > rows.size:  # the matrix is not symmetric after all: the caller sees it
        return
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            j = map[indices[k]]
            if map[u] < j:
                rows[place] = map[u]
                columns[place] = j
                values[place] = data[k]
                place += 1


def coarsen(view: Any, mate: Array, members: Array, threads: int | None = None) -> Any:
    n, kind = view.n, view.indices.dtype
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    team = crew(threads, work=view.nnz + n)
    sums = np.zeros(team.size + 1, np.int64)
    map = np.empty(n, kind)
    weights = np.empty(n, members.dtype)
    team.run(_number, mate, members, sums, map, weights)
    k = int(sums[-1])
    half = view.nnz // 2  # at most: every edge is stored twice
    rows, columns = np.empty(half, kind), np.empty(half, kind)
    values = np.empty(half, view.data.dtype)
    team.run(
        _edges, view.indptr, view.indices.view(unsigned), view.data, map,
        sums, rows, columns, values, errors={BROKEN: lambda count: not_symmetric("coarsen")},
    )  # fmt: skip
    m = int(sums[-1])
    if m > half:
        raise ValueError("coarsen: A must have symmetric weights here, got more above the diagonal")
    coarse = assemble(
        k, k, rows[:m], columns[:m], values[:m], symmetric=True, loops=False, threads=threads
    )
    return coarse, map, weights[:k].copy()
