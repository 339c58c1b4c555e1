"""The loops of check.py: entries looked up, edges compared with those on the way."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import crew, device, interrupted, kernel, share, share_rows
from matchwood.spanning.forest.cpu_order import Rows, code_of, rows_of

Array = np.ndarray[Any, Any]


@kernel
def _find(
    team: Any, indptr: Array, indices: Array, names: Array, rows: Array, high: Array, entries: Array
) -> None:
    """entries[i] = where the column of that name stands in its row, -1 for nowhere."""
    lo, hi = share(team, rows.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        entries[i] = -1
        start, end = np.int64(indptr[rows[i]]), np.int64(indptr[rows[i] + 1])
        last = end
        while start < end:
            middle = (start + end) // 2
            if names[indices[middle]] < high[i]:
                start = middle + 1
            else:
                end = middle
        if start < last and names[indices[start]] == high[i]:
            entries[i] = start


def find_entries(
    view: Any, names: Array, rows: Array, high: Array, threads: int | None
) -> Array:  # fmt: skip
    """Where the column named high[i] stands in row rows[i] of a block; -1 where it does not."""
    entries = np.empty(rows.size, np.int64)
    team = crew(threads, work=8 * rows.size)
    team.run(_find, view.indptr, view.indices, names, rows, high, entries)
    return entries


class Ways(NamedTuple):
    """What is known of local vertices after a round: their components, and edges on the way up."""

    before: Array  # the component before this round, by its root
    after: Array  # and after it
    code: Array  # of the last edge, in the order of edges, that the vertex's components chose
    low: Array
    high: Array  # its ends; -1 where they chose none


@device
def _later(ways: Ways, i: Any, j: Any) -> Any:
    """Which of the two vertices has the last edge on its way."""
    mine = (ways.code[i], ways.low[i], ways.high[i])
    theirs = (ways.code[j], ways.low[j], ways.high[j])
    return j if mine < theirs else i


@kernel
def _compare(
    team: Any, rows: Rows, order: Any, names: Array, ways: Ways, exact: bool, found: Array,
    entry: Array,
) -> None:  # fmt: skip
    """found[member] = the first edge (u, v) that comes before the last one between its ends.

    Of the edges whose ends this round joined; found has its ends, and those of that last one.
    """
    indptr, indices, bits = rows
    first = found[team.rank]
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        u = names[i]
        for k in range(np.int64(indptr[i]), np.int64(indptr[i + 1])):
            j = np.int64(indices[k])
            v = names[j]
            if v <= u or ways.after[i] != ways.after[j] or ways.before[i] == ways.before[j]:
                continue
            last = _later(ways, i, j)
            code = code_of(order, bits[k])
            if exact:
                wrong = (code, u, v) < (ways.code[last], ways.low[last], ways.high[last])
            else:
                wrong = code < ways.code[last]
            if wrong and (first[0] < 0 or (u, v) < (first[0], first[1])):
                first[0], first[1] = u, v
                first[2], first[3] = ways.low[last], ways.high[last]
                entry[team.rank] = k


def first_earlier(
    costs: Any, order: Any, names: Array, ways: Ways, exact: bool, threads: int | None
) -> tuple[tuple[int, int, int, int], int] | None:
    """((u, v, a, b), entry): edge (u, v) comes before (a, b) on the way between its ends."""
    team = crew(threads, work=4 * costs.nnz + costs.n)
    found, entry = np.full((team.size, 4), -1, np.int64), np.zeros(team.size, np.int64)
    team.run(_compare, rows_of(costs), order, names, ways, exact, found, entry)
    edges = [
        (tuple(found[k].tolist()), int(entry[k])) for k in range(team.size) if found[k, 0] >= 0
    ]
    return min(edges) if edges else None


@kernel
def _apart(
    team: Any, indptr: Array, indices: Array, names: Array, label: Array, found: Array
) -> None:
    """found[member] = the first entry (u, v) whose ends are in different components."""
    first = found[team.rank]
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        for k in range(np.int64(indptr[i]), np.int64(indptr[i + 1])):
            j = indices[k]
            if label[i] == label[j]:
                continue
            if first[0] < 0 or (names[i], names[j]) < (first[0], first[1]):
                first[0], first[1] = names[i], names[j]


def first_apart(
    costs: Any, names: Array, label: Array, threads: int | None
) -> tuple[int, int] | None:
    """The first entry (u, v) of the block, by names, whose ends have different labels."""
    team = crew(threads, work=costs.nnz + costs.n)
    found = np.full((team.size, 2), -1, np.int64)
    team.run(_apart, costs.indptr, costs.indices, names, label, found)
    edges = [tuple(found[k].tolist()) for k in range(team.size) if found[k, 0] >= 0]
    return min(edges) if edges else None
