"""Rabbit order by the paper's sequential rule, to compare with: one vertex after the other.

Arai et al. (IPDPS 2016) visit the vertices by increasing degree.  Each joins the neighbouring
community with which modularity gains most, if it gains at all; its edges are handed over to that
community when they are next looked at.  The order is depth first through the tree of joins.

Written from the paper's description.  Plain Numba, one thread.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]


@numba.njit(cache=False)
def _find(parent: Array, v: int) -> int:
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@numba.njit(cache=False)
def _join(indptr: Array, indices: Array, visit: Array) -> tuple[Array, Array, Array]:
    """child[v], sibling[v]: the tree, the last child first; top[v]: v never joined."""
    n = visit.size
    child, sibling = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    top = np.zeros(n, np.bool_)
    root = np.arange(n)  # community of each vertex, by union-find
    strength = (indptr[1:] - indptr[:-1]).astype(np.float64)
    total = max(1.0, strength.sum())
    # edges of a community: its own row at first, then a list of its own
    begin, size = indptr[:-1].astype(np.int64), (indptr[1:] - indptr[:-1]).astype(np.int64)
    pool = np.empty(8 * indices.size + 64, np.int64)
    weights = np.empty(pool.size, np.float64)
    used = 0
    own = np.zeros(n, np.bool_)
    weight, seen = np.zeros(n), np.empty(n, np.int64)
    for at in range(n):
        v = visit[at]
        count = 0
        stack = v
        while stack >= 0:  # the edges of v, and of those that joined it
            for k in range(begin[stack], begin[stack] + size[stack]):
                to = _find(root, pool[k] if own[stack] else indices[k])
                w = weights[k] if own[stack] else 1.0
                if to == v:
                    continue
                if weight[to] == 0:
                    seen[count] = to
                    count += 1
                weight[to] += w
            stack = child[v] if stack == v else sibling[stack]
        best, gain = -1, 0.0
        for k in range(count):
            u = seen[k]
            value = weight[u] - strength[v] * strength[u] / total
            if value > gain or (value == gain and best >= 0 and u < best):
                best, gain = u, value
        if used + count > pool.size:  # only with very many rounds of handing over
            best = -1
        begin[v], size[v], own[v] = used, count, True
        for k in range(count):
            pool[used], weights[used] = seen[k], weight[seen[k]]
            used += 1
            weight[seen[k]] = 0
        if best < 0:
            top[v] = True
            continue
        root[v] = best
        strength[best] += strength[v]
        sibling[v] = child[best]
        child[best] = v
    return child, sibling, top


@numba.njit(cache=False)
def _depth_first(child: Array, sibling: Array, top: Array) -> Array:
    n = child.size
    perm, stack = np.empty(n, np.int64), np.empty(n, np.int64)
    placed = 0
    for v in range(n):
        if not top[v]:
            continue
        stack[0], height = v, 1
        while height:
            height -= 1
            u = stack[height]
            perm[placed] = u
            placed += 1
            c = child[u]
            while c >= 0:  # the last child first in the list, so the first ends on top
                stack[height] = c
                height += 1
                c = sibling[c]
    return perm


def sequential_rabbit_order(view: Any) -> Array:
    """perm[new] = old, of an undirected pattern."""
    degree = np.diff(view.indptr)
    visit = np.argsort(degree, kind="stable")
    tree = _join(view.indptr.astype(np.int64), view.indices.astype(np.int64), visit)
    return _depth_first(*tree)
