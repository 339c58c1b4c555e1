"""Kruskal's algorithm on a team, and the variant that sorts few edges.  Read order.py before.

Kruskal: the edges are sorted by the codes of their weights (a stable radix sort, by all members),
then taken one after the other, by one member, wherever two sets are joined.

Filter-Kruskal: only the lightest edges, about as many as there are vertices, are sorted and taken;
then those with both ends in one set are dropped, and the lightest of the rest are next, twice as
many each time.  Of a graph with many edges for each vertex few are ever sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    barrier,
    crew,
    fail,
    interrupted,
    kernel,
    load_relaxed,
    share,
    share_rows,
)
from matchwood.primitives.sort import radix_sort
from matchwood.primitives.union_find.cpu import find
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.cpu import BROKEN, ERRORS, code_of, mark, no_marks
from matchwood.spanning.forest.order import CostRows, rows_of

Array = np.ndarray[Any, Any]

EDGES_PER_VERTEX = 1.0  # edges sorted first, per vertex.  Measured: bench/spanning/forest.py
NO_LIMIT = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


@kernel
def _list_edges(
    team: Any, rows: CostRows, order: Any, sums: Array, u_out: Array, v_out: Array, codes: Array,
    entries: Array,
) -> None:  # fmt: skip
    """List the edges of the upper triangle, in the order of entries."""
    indptr, indices, bits = rows
    lo, hi = share_rows(team, indptr)
    count = 0
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        own = indices.dtype.type(u)
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            count += indices[k] > own
    sums[team.me] = count
    if barrier(team):
        return
    place = total = 0
    for member in range(team.size):
        place += sums[member] if member < team.me else 0
        total += sums[member]
    if total != u_out.size:
        fail(team, BROKEN, total)
        return
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        own = indices.dtype.type(u)
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            if indices[k] > own:
                u_out[place] = u
                v_out[place] = indices[k]
                codes[place] = code_of(order, bits[k])
                entries[place] = k
                place += 1


@kernel
def _take(
    team: Any, sequence: Array, u: Array, v: Array, entries: Array, parent: Array, marks: Array
) -> None:
    """Join the ends of edges in this sequence and mark those that were apart; one member does."""
    if team.me > 0:
        return
    for i in range(sequence.size):
        if interrupted(team, i):
            return
        k = sequence[i]
        a, b = load_relaxed(parent, u[k]), load_relaxed(parent, v[k])
        if a == b:
            continue
        a, b = find(parent, a), find(parent, b)
        if a != b:
            parent[max(a, b)] = min(a, b)
            mark(marks, entries[k])


@kernel
def _flatten(team: Any, parent: Array) -> None:
    lo, hi = share(team, parent.size)
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        parent[v] = find(parent, parent.dtype.type(v))


@kernel
def _split(
    team: Any, count: int, u: Array, v: Array, codes: Array, entries: Array, parent: Array,
    limit: Any, sums: Array, chosen: Array,
) -> None:  # fmt: skip
    """Drop the edges within one set; put the places of those up to `limit` into `chosen`.

    Members keep the order and remove the gaps at the end: sums[0, size] edges are left, of which
    sums[1, size] are chosen.
    """
    lo, hi = share(team, count)
    kept = taken = 0
    place = lo
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        a, b = parent[u[i]], parent[v[i]]
        if a == b:
            continue
        u[place] = a
        v[place] = b
        codes[place] = codes[i]
        entries[place] = entries[i]
        taken += codes[i] <= limit
        place += 1
    kept = place - lo
    sums[0, team.me] = kept
    sums[1, team.me] = taken
    if barrier(team):
        return
    start = at = 0
    for member in range(team.me):
        start += sums[0, member]
        at += sums[1, member]
    # Parts move down in turn, since one may move to where another still is.
    for member in range(team.size):
        if member == team.me:
            for i in range(kept):
                u[start + i] = u[lo + i]
                v[start + i] = v[lo + i]
                codes[start + i] = codes[lo + i]
                entries[start + i] = entries[lo + i]
        if barrier(team):
            return
    for i in range(start, start + kept):
        if codes[i] <= limit:
            chosen[at] = i
            at += 1
    if team.me == team.size - 1:
        sums[0, team.size] = start + kept
        sums[1, team.size] = at


class _Edges:
    """The list of edges, and the sets that the taken ones have joined."""

    def __init__(self, costs: Any, order: orders.Order, threads: int | None) -> None:
        m, kind = costs.nnz // 2, costs.indices.dtype
        rows = rows_of(costs)
        unsigned = rows.indices.dtype
        self.threads, self.n, self.count, self.places = threads, costs.n, m, kind
        self.u, self.v, self.entries = (np.empty(m, unsigned) for _ in range(3))
        short = costs.data.dtype.itemsize == 4
        self.codes = np.empty(m, np.uint32 if short else np.uint64)
        self.marks = no_marks(costs.nnz)
        self.parent = np.arange(costs.n, dtype=unsigned)
        team = crew(threads, work=costs.nnz + costs.n)
        team.run(
            _list_edges, rows, order, np.zeros(team.size, np.int64), self.u, self.v,
            self.codes, self.entries, errors=ERRORS,
        )  # fmt: skip

    def take(self, sequence: Array) -> None:
        crew(1, work=4 * sequence.size).run(
            _take, sequence, self.u, self.v, self.entries, self.parent, self.marks
        )

    def split(self, limit: Any) -> Array:
        """Places of the edges between different sets whose code is at most `limit`."""
        team = crew(self.threads, work=self.n + self.count)
        team.run(_flatten, self.parent)
        sums = np.zeros((2, team.size + 1), np.int64)
        chosen = np.empty(self.count, self.places)
        team.run(
            _split, self.count, self.u, self.v, self.codes, self.entries, self.parent,
            limit, sums, chosen,
        )  # fmt: skip
        self.count = int(sums[0, -1])
        return chosen[: int(sums[1, -1])]


def mark_forest(
    costs: Any, order: orders.Order, method: str, threads: int | None
) -> tuple[Array, int]:
    """Marks of the forest's entries, and rounds.

    Memory: 32 bytes an edge (float32, int32); of filter-Kruskal, which has at most log2(m / n) + 2
    rounds, 20 bytes an edge, 20 more if sorted.
    """
    edges = _Edges(costs, order, threads)
    if method == "kruskal":
        edges.take(radix_sort(edges.codes, threads=threads)[1])
        return edges.marks, 1
    target, rounds = EDGES_PER_VERTEX * max(costs.n, 1), 0
    while edges.count:
        limit = NO_LIMIT
        if edges.count > 2 * target:
            sample = np.sort(edges.codes[: edges.count : max(1, edges.count // orders.SAMPLE)])
            limit = np.uint64(sample[int(sample.size * target / edges.count)])
        chosen = edges.split(limit)
        order_of = radix_sort(edges.codes[chosen], threads=threads)[1]
        edges.take(chosen[order_of])
        rounds += 1
        target *= 2
        if limit == NO_LIMIT:
            break
    return edges.marks, rounds
