"""Contraction of pairs on a team: the pairs are numbered, then entries are listed and sorted."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import barrier, crew, kernel, share
from matchwood.primitives.contract.listed.cpu import list_and_sort

Array = np.ndarray[Any, Any]


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
    made = list_and_sort(
        indptr, indices, data, label, count, symmetric=True, threads=threads, caller=caller
    )
    return made, label, weights[:count].copy()
