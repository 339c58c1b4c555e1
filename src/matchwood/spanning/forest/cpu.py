"""What spanning forests on a team share.  A method (its folder) marks the edges of the forest.

Here: the order of edges in kernels (see order.py), the marks, and the loops of check.py.

An edge {u, v}, u < v, is known by its entry: the place k of column v in row u.  Entries of the
upper triangle ascend as (u, v) do, so of two edges of equal weight the one with the smaller entry
comes first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines.cpu import (
    atomic_min,
    atomic_or,
    barrier,
    crew,
    device,
    fail,
    interrupted,
    kernel,
    share,
    share_rows,
)
from matchwood.engines.cpu.hints import count_ones, trailing_zeros
from matchwood.primitives.patterns import not_symmetric
from matchwood.spanning.forest import METHODS
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.order import rows_of

Array = np.ndarray[Any, Any]


# Codes of weights, entries of edges


ONE = np.uint64(1)
NOTHING = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # no edge: behind all words
BROKEN = 1  # the failure of kernels that find an edge in one of its two rows only
ERRORS = {BROKEN: lambda detail: not_symmetric("minimum_spanning_forest")}


@device
def code_of(order: Any, word: Any) -> Any:
    """The code of a weight given by its bits; see order.py."""
    x = np.uint64(word)
    if order.floating:
        if x == order.sign:  # -0.0
            x = np.uint64(0)
        x ^= ((order.sign << ONE) - ONE) if x & order.sign else order.sign
    else:
        x ^= order.sign
    return (x ^ order.flip) - order.base


@device
def upper_entry(indptr: Array, indices: Array, u: Any, v: Any) -> Any:
    """The entry of the edge {u, v}: where max(u, v) stands in the row of min(u, v).

    NOTHING where it does not stand there: the pattern is not symmetric.
    """
    row, column = min(u, v), max(u, v)
    low, high = np.uint64(indptr[row]), np.uint64(indptr[np.uint64(row) + ONE])
    while low < high:
        middle = (low + high) >> ONE
        if indices[middle] < column:
            low = middle + ONE
        else:
            high = middle
    if low == np.uint64(indptr[np.uint64(row) + ONE]) or indices[low] != column:
        return NOTHING
    return low


# Marked entries: a bit for each, set in any order, and the edges from the bits
#
# Read in the order of entries they are sorted by their ends, whatever the method and the threads.


_SIX, _LOW = np.uint64(6), np.uint64(63)


@device
def mark(marks: Array, k: Any) -> None:
    """Take entry k into the forest."""
    k = np.uint64(k)
    atomic_or(marks, k >> _SIX, ONE << (k & _LOW))


@device
def _row_of(indptr: Array, k: Any) -> int:
    low, high = 0, indptr.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if np.uint64(indptr[middle]) <= k:
            low = middle
        else:
            high = middle
    return low


@kernel
def _collect(
    team: Any, indptr: Array, indices: Array, data: Array, marks: Array, sums: Array, edges: Array,
    weights: Array,
) -> None:  # fmt: skip
    """Write ends and weights of the marked entries, in their order; sums[size] = their number."""
    lo, hi = share(team, marks.size)
    count = 0
    for i in range(lo, hi):
        count += np.int64(count_ones(marks[i]))
    sums[team.me] = count
    if barrier(team):
        return
    place = 0
    for member in range(team.me):
        place += sums[member]
    if team.me == team.size - 1:
        sums[team.size] = place + count
    if place + count > edges.shape[0]:
        fail(team, BROKEN, place + count)
        return
    if count == 0:
        return
    u = -1
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        word = marks[i]
        while word:
            k = (np.uint64(i) << _SIX) + np.uint64(trailing_zeros(word))
            word &= word - ONE
            if u < 0:
                u = _row_of(indptr, k)
            while np.uint64(indptr[u + 1]) <= k:
                u += 1
            edges[place, 0] = u
            edges[place, 1] = indices[k]
            weights[place] = data[k]
            place += 1


def no_marks(nnz: int) -> Array:
    """A bitmap of entries, none of them marked."""
    return np.zeros(-(-nnz // 64), np.uint64)


def forest_of(costs: Any, marks: Array, threads: int | None) -> tuple[Array, Array]:
    """Edges, shape (m, 2), and weights of what is marked."""
    team = crew(threads, work=costs.n + marks.size)
    sums = np.zeros(team.size + 1, np.int64)
    edges = np.empty((costs.n, 2), costs.indices.dtype)
    weights = np.empty(costs.n, costs.data.dtype)
    team.run(_collect, *costs[:3], marks, sums, edges, weights, errors=ERRORS)
    count = int(sums[-1])
    return edges[:count], weights[:count]


def span(
    costs: Any, method: str, maximum: bool, *, threads: int | None = None
) -> tuple[Any, Any, int]:
    """Edges, weights and rounds."""
    if costs.nnz == 0:
        return np.empty((0, 2), costs.indices.dtype), costs.data[:0].copy(), 0
    engine = engines.load(f"{__package__}.{METHODS[method]}", "cpu")
    marks, rounds = engine.mark_forest(costs, orders.make(costs, maximum), method, threads)
    return (*forest_of(costs, marks, threads), rounds)


# The loops of check.py: edges looked up, cycles found, ways up compared


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


def find_entries(view: Any, names: Array, rows: Array, high: Array, threads: int | None) -> Array:
    """Where the column named high[i] stands in row rows[i]; -1 where it does not.

    The columns of a row ascend by name; those of a whole graph are named by themselves.
    """
    entries = np.empty(rows.size, np.int64)
    team = crew(threads, work=8 * rows.size)
    team.run(_find, view.indptr, view.indices, names, rows, high, entries)
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
    if team.me > 0:
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
    team: Any, indptr: Array, indices: Array, bits: Array, order: Any, parent: Array, link: Array,
    entries: Array, exact: Any, found: Array,
) -> None:  # fmt: skip
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
    """An entry (u, v) that comes before an edge on the way from u to v, and that edge's place.

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
