"""The loops of check.py: edges looked up, cycles found, ways up compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import atomic_min, crew, device, interrupted, kernel, share, share_rows
from matchwood.spanning.forest.cpu_order import code_of, rows_of, upper_entry

Array = np.ndarray[Any, Any]


@kernel
def _find(team: Any, indptr: Array, indices: Array, u: Array, v: Array, entries: Array) -> None:
    lo, hi = share(team, u.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        entries[i] = -1
        if u[i] < v[i]:
            k = upper_entry(indptr, indices, np.int64(u[i]), np.int64(v[i]))
            if k < np.uint64(indptr[u[i] + 1]) and indices[k] == v[i]:
                entries[i] = np.int64(k)


def find_entries(costs: Any, u: Array, v: Array) -> Array:
    """The entry of each edge (u, v), u < v; -1 where there is none."""
    entries = np.empty(u.size, np.int64)
    u, v = np.ascontiguousarray(u), np.ascontiguousarray(v)
    crew(None, work=8 * u.size).run(_find, costs.indptr, costs.indices, u, v, entries)
    return entries


@device
def _root(parent: Array, v: int) -> int:
    while parent[v] != v:
        v = parent[v]
    return v


@kernel
def _link(team: Any, u: Array, v: Array, parent: Array, link: Array, cycle: Array) -> None:
    """Join sets in turn, the smaller under the larger; link[x] = the edge from x to its parent.

    Sizes are kept in `link` of roots, negative.  One member works; no paths are shortened.
    """
    if team.rank > 0:
        return
    for x in range(parent.size):
        parent[x] = x
        link[x] = -1
    for i in range(u.size):
        if interrupted(team, i):
            return
        a, b = _root(parent, u[i]), _root(parent, v[i])
        if a == b:
            cycle[0] = i
            return
        if link[a] < link[b]:  # a has more
            a, b = b, a
        link[b] += link[a]
        link[a] = i
        parent[a] = b


class JoinForest(NamedTuple):
    """A forest of low height: the parent of each vertex, and the edge that joined it there."""

    parent: Array
    link: Array
    cycle: int  # the first edge of the sequence that closes one with those before; -1: none does


def join_forest(n: int, edges: Array) -> JoinForest:
    """Join the ends of the edges in turn."""
    parent, link = np.empty(n, np.int64), np.empty(n, np.int64)
    cycle = np.full(1, -1, np.int64)
    u, v = np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])
    crew(1, work=8 * n).run(_link, u, v, parent, link, cycle)
    return JoinForest(parent, link, int(cycle[0]))


@kernel
def _compare(
    team: Any,
    indptr: Array,
    indices: Array,
    bits: Array,
    order: Any,
    parent: Array,
    link: Array,
    entries: Array,
    exact: Any,
    found: Array,
) -> None:
    """found[0] = the first entry that comes before the last edge on the way between its ends.

    Of equal weights the ends decide if `exact`, else nothing does.
    """
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        for k in range(np.int64(indptr[i]), np.int64(indptr[i + 1])):
            j = np.int64(indices[k])
            if j <= i:
                continue
            last = _last_on_way(parent, link, i, j)
            other = entries[last]
            a, b = code_of(order, bits[k]), code_of(order, bits[other])
            if a < b or (exact and a == b and k < other):
                atomic_min(found, 0, k)
                return


@device
def _last_on_way(parent: Array, link: Array, u: int, v: int) -> int:
    """Which edge of the sequence is the last between u and v; links ascend on every way up."""
    last = -1
    while u != v:
        # roots have no link: their word is negative, and stands for "after all"
        if link[v] < 0 or 0 <= link[u] < link[v]:
            last = link[u]
            u = parent[u]
        else:
            last = link[v]
            v = parent[v]
    return last


def find_earlier(
    costs: Any, order: Any, joined: JoinForest, entries: Array, exact: bool = True
) -> tuple[int, int]:
    """An entry (u, v) that comes before an edge on the way from u to v, and that edge's rank.

    `entries` is the forest in the order of edges, and `joined` was made from it; it must span.
    (-1, -1): there is none.
    """
    if costs.nnz == 0:
        return -1, -1
    parent, link, _ = joined
    found = np.full(1, np.iinfo(np.int64).max, np.int64)
    crew(None, work=8 * costs.nnz).run(
        _compare, costs.indptr, costs.indices, rows_of(costs).bits, order, parent, link,
        np.ascontiguousarray(entries), exact, found,
    )  # fmt: skip
    at = int(found[0])
    if at == np.iinfo(np.int64).max:
        return -1, -1
    u = int(np.searchsorted(costs.indptr, at, "right")) - 1
    return at, int(_last_on_way.py_func(parent, link, u, int(costs.indices[at])))
