"""The loops of Boruvka's rounds on one rank, and those of check.py.  Codes of weights: ../cpu.py.

Edges are ordered by (code, smaller end, larger end), ends by the user's numbers.  A rank's rows
have their columns in that order, so within a row the first of equal codes is the earlier edge.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, interrupted, kernel, share, share_rows
from matchwood.spanning.forest.cpu import code_of
from matchwood.spanning.forest.order import CostRows, rows_of

Array = np.ndarray[Any, Any]


@kernel
def _first_entries(team: Any, rows: CostRows, order: Any, entry: Array) -> None:
    """entry[u] = the first edge of row u of the block, -1 for none."""
    indptr, _, bits = rows
    lo, hi = share(team, entry.size)
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        entry[u] = -1
        best = np.uint64(0)
        for k in range(np.int64(indptr[u]), np.int64(indptr[u + 1])):
            code = code_of(order, bits[k])
            if entry[u] < 0 or code < best:
                best = code
                entry[u] = k


def first_entries(rows: CostRows, order: Any, n_rows: int, threads: int | None) -> Array:
    """The entry of each row's first edge, as far as this block has it; -1 for none."""
    entry = np.empty(n_rows, np.int64)
    team = crew(threads, work=rows.indices.size + n_rows)
    team.run(_first_entries, rows, order, entry)
    return entry


@kernel
def _list_edges(
    team: Any, rows: CostRows, order: Any, names: Array, labels: Array, sequence: Array,
    counts: Array, entry: Array, tail: Array, code: Array,
) -> None:  # fmt: skip
    """The entries (u, v), u < v, between different labels, row by row in the given sequence.

    Counted where `entry` has no room: counts[member] gets their number.
    """
    indptr, indices, bits = rows
    write = entry.size > 0
    lo, hi = share(team, sequence.size)
    place = 0
    if write:
        for member in range(team.me):
            place += counts[member]
    first = place
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        u = sequence[i]
        for k in range(np.int64(indptr[u]), np.int64(indptr[u + 1])):
            v = indices[k]
            if names[u] < names[v] and labels[u] != labels[v]:
                if write:
                    entry[place] = k
                    tail[place] = u
                    code[place] = code_of(order, bits[k])
                place += 1
    if not write:
        counts[team.me] = place - first


def list_edges(
    rows: CostRows, order: Any, names: Array, labels: Array, sequence: Array, threads: int | None
) -> tuple[Array, Array, Array]:
    """(entries, rows, codes) of edges between labels, by their ends; `sequence`: rows by names."""
    team = crew(threads, work=rows.indices.size + sequence.size)
    counts = np.zeros(team.size, np.int64)
    none, no_code = np.empty(0, np.int64), np.empty(0, np.uint64)
    team.run(
        _list_edges, rows, order, names, labels, sequence, counts, none, none, no_code
    )  # fmt: skip
    total = int(counts.sum())
    entry, tail = np.empty(total, np.int64), np.empty(total, np.int64)
    code = np.empty(total, np.uint64)
    if total:
        team.run(_list_edges, rows, order, names, labels, sequence, counts, entry, tail, code)
    return entry, tail, code


@device
def _root(parent: Array, v: Any) -> Any:
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@kernel
def _join(
    team: Any, a: Array, b: Array, parent: Array, kept: Array, best: Array, count: Array
) -> None:
    """Kruskal's pass over edges in their order.  best[x] = the first edge at x of those kept.

    One member works: an edge depends on all before it.
    """
    if team.me > 0:
        return
    place = 0
    for i in range(a.size):
        if interrupted(team, i):
            return
        x, y = _root(parent, a[i]), _root(parent, b[i])
        if x == y:
            continue
        if x < y:
            parent[y] = x
        else:
            parent[x] = y
        for end in (a[i], b[i]):
            if best[end] < 0:
                best[end] = place
        kept[place] = i
        place += 1
    count[0] = place


def join(a: Array, b: Array, labels: int) -> tuple[Array, Array]:
    """(kept, best): the edges that close no cycle with those before; each label's first of them.

    An edge that closes one is in no minimum forest, of these edges or of more.
    """
    parent = np.arange(labels, dtype=np.int64)
    kept, best = np.empty(min(a.size, max(labels - 1, 0)), np.int64), np.full(labels, -1, np.int64)
    count = np.zeros(1, np.int64)
    crew(1, work=8 * a.size).run(_join, a, b, parent, kept, best, count)
    return kept[: int(count[0])], best


@kernel
def _first_requests(
    team: Any, places: Array, code: Array, low: Array, high: Array, first: Array
) -> None:
    """first[place] = the first request for it.  A member has a range of places."""
    lo, hi = share(team, first.size)
    for i in range(places.size):
        if interrupted(team, i):
            return
        k = places[i]
        if k < lo or k >= hi:
            continue
        best = first[k]
        if best < 0 or (code[i], low[i], high[i]) < (code[best], low[best], high[best]):
            first[k] = i
    barrier(team)


def first_requests(
    places: Array, code: Array, low: Array, high: Array, first: Array, threads: int | None
) -> Array:
    """The places that were asked for; `first`, which is -1 everywhere, gets the first for each."""
    team = crew(threads, work=4 * places.size)
    team.run(_first_requests, places, code, low, high, first)
    touched = places[first[places] == np.arange(places.size)]
    return touched


# The loops of check.py: edges compared with those on the way


class Ways(NamedTuple):
    """What is known of local vertices after a round: their components, and edges on the way up."""

    before: Array  # the component before this round, by its root
    after: Array  # the component after it
    code: Array  # the code of the last edge, in the order of edges, that its components chose
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
    team: Any, rows: CostRows, order: Any, names: Array, ways: Ways, exact: bool, found: Array,
    entry: Array,
) -> None:  # fmt: skip
    """found[member] = the first edge (u, v) that comes before the last one between its ends.

    Of the edges whose ends this round joined; found has its ends, and those of that last one.
    """
    indptr, indices, bits = rows
    first = found[team.me]
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
                entry[team.me] = k


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
    first = found[team.me]
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
