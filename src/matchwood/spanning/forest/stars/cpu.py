"""Awerbuch's and Shiloach's rounds on a team, in the form of sparse matrix products.

Trees are kept in one array, parent[v]; a star is a tree of height one.  A round:

1.  Every vertex of a star looks along its row for the first edge into another tree: a product of
    the matrix with `parent`, in which "times" compares the trees and "plus" keeps the first.
2.  Every root of a star gets the first of what its vertices found.
3.  Roots of stars are hooked: under the parent of the other end of that edge.
4.  Of two stars that chose the same edge the one with the smaller root stays a root.
5.  The grandparent of each vertex becomes its parent; then the stars are determined.

Why it ends.  Step 1 compares edges by the total order (weight, ends), so stars that hook in a
cycle could only do so along one and the same edge, which makes two of them; step 4 breaks just
these.  (With weights alone a cycle of equal weights is longer, and is never broken.)  Steps are
separated by barriers, so no member reads a half-hooked tree.  A star that has an edge leaves the
roots or is hooked to, a tree that is no star loses height: no more than log2(n) / log2(1.5) + 2
rounds ([3] in ../__init__.py).  Which stars hook, and so the number of rounds, depends on the graph
alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    atomic_cas,
    barrier,
    crew,
    device,
    fail,
    interrupted,
    kernel,
    load_acquire,
    load_relaxed,
    share,
    share_rows,
    store_relaxed,
)
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.cpu import (
    BROKEN,
    ERRORS,
    NOTHING,
    code_of,
    mark,
    no_marks,
    upper_entry,
)
from matchwood.spanning.forest.order import CostRows, rows_of
from matchwood.spanning.forest.stars import round_limit

Array = np.ndarray[Any, Any]


class Stars(NamedTuple):
    """What is known of each vertex."""

    parent: Array
    above: Array  # the parent after the hooks of this round
    star: Array  # 1: in a star; 2: a root that stays one in this round; 0: in a higher tree
    at: Array  # the entry of the first edge into another tree
    chosen: Array  # of roots: the vertex that found the star's first edge, or n


@device
def _edge_before(u: Any, v: Any, at: Array, indices: Array, bits: Array, order: Any) -> bool:
    """Does the edge that vertex u found come before the one that v found?"""
    k, j = at[u], at[v]
    a, b = code_of(order, bits[k]), code_of(order, bits[j])
    if a != b:
        return a < b
    x, y = indices[k], indices[j]
    low_u, low_v = min(u, x), min(v, y)
    return max(u, x) < max(v, y) if low_u == low_v else low_u < low_v


@kernel
def _stars(
    team: Any, rows: CostRows, order: Any, limit: int, marks: Array, stars: Stars, sums: Array,
    rounds: Array,
) -> None:  # fmt: skip
    indptr, indices, bits = rows
    parent, above, star, at, chosen = stars
    n = parent.size
    no_vertex = parent.dtype.type(n)
    lo, hi = share(team, n)
    r_lo, r_hi = share_rows(team, indptr)
    for v in range(lo, hi):
        parent[v] = v
        star[v] = 1
    if barrier(team):
        return
    count = 0
    while True:
        for v in range(lo, hi):
            chosen[v] = no_vertex
        if barrier(team):
            return
        for i in range(r_lo, r_hi):  # 1 and 2
            if interrupted(team, i):
                return
            if star[i] == 0:
                continue
            u = parent.dtype.type(i)
            mine = parent[u]
            best: Any = NOTHING
            found: Any = NOTHING
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                code = code_of(order, bits[k])
                if (code < best or found == NOTHING) and parent[indices[k]] != mine:
                    best, found = code, k
            if found == NOTHING:
                continue
            at[u] = found
            seen = load_acquire(chosen, mine)  # with what it found
            while seen == no_vertex or _edge_before(u, seen, at, indices, bits, order):
                before = atomic_cas(chosen, mine, seen, u)
                if before == seen:
                    break
                seen = before
        if barrier(team):
            return
        hooked = 0
        for i in range(lo, hi):  # 3
            r = parent.dtype.type(i)
            above[i] = parent[i]
            if parent[i] == r and star[i] and chosen[i] != no_vertex:
                above[i] = parent[indices[at[chosen[i]]]]
                hooked += 1
        sums[team.me] = hooked
        if barrier(team):
            return
        total = 0
        for member in range(team.size):
            total += sums[member]
        for i in range(lo, hi):  # 4: `parent` still has the roots of before
            r = parent.dtype.type(i)
            if parent[i] != r or star[i] == 0 or chosen[i] == no_vertex:
                continue
            other = above[i]
            if above[other] == r and r < other:
                star[i] = 2  # stays a root
                continue
            u = chosen[i]
            v = indices[at[u]]
            entry = at[u] if u < v else upper_entry(indptr, indices, u, v)
            if entry == NOTHING:
                fail(team, BROKEN, i)
                return
            mark(marks, entry)
        if barrier(team):
            return
        for i in range(lo, hi):
            if star[i] == 2:
                above[i] = i
        if barrier(team):
            return
        changed = 0
        for i in range(lo, hi):  # 5
            grand = above[above[i]]
            changed += grand != parent[i]
            parent[i] = grand
            star[i] = 1
        sums[team.size + team.me] = changed
        if barrier(team):
            return
        for member in range(team.size):
            total += sums[team.size + member]
        if total == 0:
            break
        count += 1
        if count > limit:
            fail(team, BROKEN, count)
            return
        for i in range(lo, hi):
            up = parent[i]
            grand = parent[up]
            if up != grand:
                store_relaxed(star, i, 0)
                store_relaxed(star, grand, 0)
        if barrier(team):
            return
        for i in range(lo, hi):
            if load_relaxed(star, parent[i]) == 0:
                store_relaxed(star, i, 0)
        if barrier(team):
            return
    if team.me == 0:
        rounds[0] = count


def mark_forest(
    costs: Any, order: orders.Order, method: str, threads: int | None
) -> tuple[Array, int]:
    """Marks of the forest's entries, and rounds.  Memory: 24 bytes a vertex, a bit an entry."""
    n = costs.n
    rows = rows_of(costs)
    kind = rows.indices.dtype
    team = crew(threads, work=4 * costs.nnz)
    marks, rounds = no_marks(costs.nnz), np.zeros(1, np.int64)
    parent, above, chosen = (np.empty(n, kind) for _ in range(3))
    stars = Stars(parent, above, np.empty(n, np.int32), np.empty(n, np.uint64), chosen)
    sums = np.zeros(2 * team.size, np.int64)
    team.run(_stars, rows, order, round_limit(n), marks, stars, sums, rounds, errors=ERRORS)
    return marks, int(rounds[0])
