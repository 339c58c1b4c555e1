"""The transpose on a team: count, add up, place.

Every member counts the columns of its own rows in counters of its own.  A prefix sum over
columns and, within a column, over members gives the place of each member's first entry.  So no
two members write the same word, no atomics are needed, and the order of arrival is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, interrupted, kernel, share, share_rows

Array = np.ndarray[Any, Any]

NO_DATA = np.empty(0, np.float32)  # stands for "no values", so that a kernel has one signature


@device
def first_places(team: Any, counts: Array, indptr: Array, sums: Array) -> bool:
    """Turn counts[member, column] into the place of that member's first entry of the column.

    Also fills `indptr`.  `sums` has a place for each member.  True: the team stops.
    """
    columns = indptr.size - 1
    lo, hi = share(team, columns)
    total = np.int64(0)
    for member in range(team.size):
        for j in range(lo, hi):
            total += counts[member, j]
    sums[team.me] = total
    if barrier(team):
        return True
    place = np.int64(0)
    for member in range(team.me):
        place += sums[member]
    for j in range(lo, hi):
        indptr[j] = place
        for member in range(team.size):
            count = counts[member, j]
            counts[member, j] = place
            place += count
    if team.me == team.size - 1:
        indptr[columns] = place
    return barrier(team)


@kernel
def _transpose(
    team: Any, indptr: Array, indices: Array, data: Array, counts: Array, sums: Array,
    t_indptr: Array, t_indices: Array, t_data: Array,
) -> None:  # fmt: skip
    mine = counts[team.me]
    mine[:] = 0
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        for k in range(indptr[i], indptr[i + 1]):
            mine[indices[k]] += 1
    if barrier(team) or first_places(team, counts, t_indptr, sums):
        return
    with_data = data.size > 0
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        for k in range(indptr[i], indptr[i + 1]):
            place = mine[indices[k]]
            mine[indices[k]] += 1
            t_indices[place] = i
            if with_data:
                t_data[place] = data[k]


def transpose(
    indptr: Array, indices: Array, data: Array | None, columns: int, *, threads: int | None = None
) -> tuple[Array, Array, Array | None]:
    team = crew(threads, work=indices.size + indptr.size + columns)
    t_indptr = np.empty(columns + 1, indptr.dtype)
    t_indices = np.empty_like(indices)
    t_data = NO_DATA if data is None else np.empty_like(data)
    counts = np.empty((team.size, columns), indptr.dtype)
    sums = np.zeros(team.size, np.int64)
    values = NO_DATA if data is None else data
    team.run(_transpose, indptr, indices, values, counts, sums, t_indptr, t_indices, t_data)
    return t_indptr, t_indices, None if data is None else t_data
