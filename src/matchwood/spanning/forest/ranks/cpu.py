"""The loops of Boruvka's rounds on one rank.  Codes of weights: order.py and cpu_order.py.

An edge comes before another by (code, smaller end, larger end), ends by the user's numbers.  A
rank's rows have their columns in that order, so within a row the first of equal codes comes first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, interrupted, kernel, share
from matchwood.spanning.forest.cpu_order import Rows, code_of

Array = np.ndarray[Any, Any]


@kernel
def _first_entries(team: Any, rows: Rows, order: Any, entry: Array) -> None:
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


def first_entries(rows: Rows, order: Any, n_rows: int, threads: int | None) -> Array:
    """The entry of each row's first edge, as far as this block has it; -1 for none."""
    entry = np.empty(n_rows, np.int64)
    team = crew(threads, work=rows.indices.size + n_rows)
    team.run(_first_entries, rows, order, entry)
    return entry


@kernel
def _list_edges(
    team: Any, rows: Rows, order: Any, names: Array, labels: Array, sequence: Array, counts: Array,
    entry: Array, tail: Array, code: Array,
) -> None:  # fmt: skip
    """The entries (u, v), u < v, between different labels, row by row in the given sequence.

    Counted where `entry` has no room: counts[member] gets their number.
    """
    indptr, indices, bits = rows
    write = entry.size > 0
    lo, hi = share(team, sequence.size)
    place = 0
    if write:
        for member in range(team.rank):
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
        counts[team.rank] = place - first


def list_edges(
    rows: Rows, order: Any, names: Array, labels: Array, sequence: Array, threads: int | None
) -> tuple[Array, Array, Array]:
    """(entries, rows, codes) of edges between different labels, each once, by their ends.

    `sequence` are the rows, ascending by names.
    """
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
    """Kruskal's pass: edges come in their order.  best[x] = the first edge at x of those kept.

    One member works: an edge depends on all before it.
    """
    if team.rank > 0:
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
    """first[place] = the request for it that comes first.  A member has a range of places."""
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
