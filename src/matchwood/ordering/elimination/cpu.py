"""The elimination tree and the counts of L on one thread.  Definitions: __init__.py.

Liu: row k of L is the subtree of k that its entries span.  So for k = 0, 1, ... every entry (k, i)
climbs from i to the root of the forest so far, which then becomes a child of k; the paths are
shortened on the way.

Gilbert, Ng and Peyton: let the tree be numbered in postorder.  Of the entries (i, j) of row i, j
is a leaf of the row's subtree when no earlier one lies in the subtree of j.  Each leaf adds one to
the columns on its path to i; where two paths meet, at the least common ancestor of neighbouring
leaves, one is taken off.  Sums over subtrees do the rest.

Kernels follow no pointer out of its array, also where the pattern is not symmetric.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import crew, device, interrupted, kernel, workspace

Array = np.ndarray[Any, Any]


@kernel
def _grow(
    team: Any, indptr: Array, indices: Array, perm: Array, place: Array, parent: Array,
    ancestor: Array,
) -> None:  # fmt: skip
    """The parent of every place; `ancestor` ends as shortened paths."""
    for k in range(perm.size):
        if interrupted(team, k):
            return
        parent[k] = ancestor[k] = -1
        u = perm[k]
        for e in range(indptr[u], indptr[u + 1]):
            i = place[indices[e]]
            while i != -1 and i < k:
                above = ancestor[i]
                ancestor[i] = k
                if above == -1:
                    parent[i] = k
                i = above


class Posted(NamedTuple):
    """The tree in postorder: arrays by postorder number, except `post` and `above`."""

    post: Array  # of each place
    vertex: Array  # whose number this is
    number: Array  # of each vertex
    size: Array  # vertices of the subtree, by place
    above: Array  # where the next child of a place goes, then its level


@kernel
def _number(team: Any, parent: Array, perm: Array, posted: Posted, height: Array) -> None:
    """Postorder: a subtree has consecutive numbers, children in the order of their places."""
    n = parent.size
    post, size, above = posted.post, posted.size, posted.above
    for j in range(n):
        size[j] = 1
    for j in range(n):
        if interrupted(team, j):
            return
        if parent[j] >= 0:
            size[parent[j]] += size[j]
    end = n
    for back in range(n):
        j = n - 1 - back
        if interrupted(team, j):
            return
        p = parent[j]
        if p < 0:
            post[j] = end - 1
            end -= size[j]
        else:
            post[j] = above[p] - 1
            above[p] -= size[j]
        above[j] = post[j]
        posted.vertex[post[j]] = perm[j]
        posted.number[perm[j]] = post[j]
    highest = 0
    for back in range(n):
        j = n - 1 - back
        above[j] = 1 if parent[j] < 0 else above[parent[j]] + 1
        highest = max(highest, np.int64(above[j]))
    height[0] = highest


@device
def _root(ancestor: Array, j: Any) -> Any:
    """The last ancestor of j that has been passed; halves the path."""
    while ancestor[j] != j:
        ancestor[j] = ancestor[ancestor[j]]
        j = ancestor[j]
    return j


class Leaves(NamedTuple):
    """What is known of each row, and of each column, by postorder number."""

    first: Array  # least number of the subtree
    parent: Array
    ancestor: Array
    last: Array  # the last entry of each row, -1 before
    last_leaf: Array  # the last of them that was a leaf
    sums: Array  # int64; a column's count once the subtrees are added


@kernel
def _count(
    team: Any, indptr: Array, indices: Array, parent: Array, posted: Posted, leaves: Leaves,
    counts: Array,
) -> None:  # fmt: skip
    n = parent.size
    first, above, ancestor = leaves.first, leaves.parent, leaves.ancestor
    last, last_leaf, sums = leaves.last, leaves.last_leaf, leaves.sums
    for k in range(n):
        if interrupted(team, k):
            return
        j = posted.post[k]
        first[j] = j - posted.size[k] + 1
        above[j] = -1 if parent[k] < 0 else posted.post[parent[k]]
        ancestor[j] = j
        last[j] = last_leaf[j] = -1
        sums[j] = 1 if posted.size[k] == 1 else 0
    for j in range(n):
        if interrupted(team, j):
            return
        u = posted.vertex[j]
        if above[j] >= 0:
            sums[above[j]] -= 1
        for e in range(indptr[u], indptr[u + 1]):
            i = posted.number[indices[e]]
            if i <= j:
                continue
            if last[i] < first[j]:  # nothing of the row is in the subtree of j: a leaf
                sums[j] += 1
                if last_leaf[i] >= 0:
                    sums[_root(ancestor, last_leaf[i])] -= 1
                last_leaf[i] = j
            last[i] = j
        if above[j] >= 0:
            ancestor[j] = above[j]
    for j in range(n):
        if interrupted(team, j):
            return
        if above[j] >= 0:
            sums[above[j]] += sums[j]
    for k in range(n):
        counts[k] = sums[posted.post[k]]


@kernel
def _climb(
    team: Any, indptr: Array, indices: Array, perm: Array, place: Array, parent: Array, seen: Array,
    counts: Array,
) -> None:  # fmt: skip
    """The counts again, one step for each entry of L: every row's subtree is walked through."""
    steps = 0
    for k in range(perm.size):
        seen[k] = k
        counts[k] += 1
        u = perm[k]
        for e in range(indptr[u], indptr[u + 1]):
            i = place[indices[e]]
            while i >= 0 and i < k and seen[i] != k:
                if interrupted(team, steps):
                    return
                steps += 1
                seen[i] = k
                counts[i] += 1
                i = parent[i]


def tree(view: Any, perm: Array, place: Array) -> Array:
    parent, ancestor = np.empty_like(perm), np.empty_like(perm)
    crew(1, work=view.nnz + view.n).run(
        _grow, view.indptr, view.indices, perm, place, parent, ancestor
    )
    return parent


def count(view: Any, perm: Array, place: Array) -> tuple[Array, Array, int]:
    n, kind = view.n, perm.dtype
    parent = tree(view, perm, place)
    names = ("post", "vertex", "number", "size", "above")
    names += ("first", "parent", "ancestor", "last", "last_leaf")
    space = workspace(**dict.fromkeys(names, (n, kind)), sums=(n, np.int64))
    posted = Posted(space.post, space.vertex, space.number, space.size, space.above)
    leaves = Leaves(
        space.first, space.parent, space.ancestor, space.last, space.last_leaf, space.sums
    )
    counts, height = np.empty(n, np.int64), np.zeros(1, np.int64)
    crew(1, work=n).run(_number, parent, perm, posted, height)
    crew(1, work=view.nnz + n).run(
        _count, view.indptr, view.indices, parent, posted, leaves, counts
    )
    return parent, counts, int(height[0])


def climbed(view: Any, perm: Array, place: Array, parent: Array) -> Array:
    """The counts that a tree gives, for the check."""
    seen, counts = np.full_like(perm, -1), np.zeros(view.n, np.int64)
    crew(1, work=view.nnz + view.n).run(
        _climb, view.indptr, view.indices, perm, place, parent, seen, counts
    )
    return counts
