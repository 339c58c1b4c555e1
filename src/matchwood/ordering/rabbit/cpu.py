"""Rabbit order on a team: the tree of joins (__init__.py), then depth first through each tree.

Children lie in one list, by parent and then by (round, vertex): a stable sort by parent of the
vertices that joined, which are in that order.  A member takes trees, and places the vertices of
each in its part of the order.  The end of that part is the stack: placed and stacked vertices
together are at most those of the tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, device, interrupted, kernel, next_chunk
from matchwood.ordering.rabbit import Joined, join_all
from matchwood.primitives.sort import radix_sort

Array = np.ndarray[Any, Any]

CHUNK = 16  # trees that a member takes at a time


@device
def _walk(team: Any, root: Any, begins: Array, children: Array, part: Array) -> bool:
    """Fill `part` with the vertices of a tree, depth first.  True: the team stops."""
    placed, top = 0, part.size - 1
    part[top] = root
    while placed < part.size:
        if interrupted(team, placed):
            return True
        v = np.uint64(part[top])
        top += 1
        part[placed] = v
        placed += 1
        first, last = np.int64(begins[v]), np.int64(begins[v + np.uint64(1)])
        for k in range(last - 1, first - 1, -1):  # the first child ends on top
            top -= 1
            part[top] = children[k]
    return False


@kernel
def _depth_first(
    team: Any, roots: Array, starts: Array, begins: Array, children: Array, perm: Array
) -> None:
    first = next_chunk(team, roots.size, CHUNK)
    while first >= 0:
        for t in range(first, min(first + CHUNK, roots.size)):
            part = perm[starts[t] : starts[t + 1]]
            if _walk(team, roots[t], begins, children, part):
                return
        first = next_chunk(team, roots.size, CHUNK)


def order_of(tree: Joined, threads: int | None) -> Array:
    kind = tree.parent.dtype
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    n = tree.parent.size
    above = tree.parent[tree.sequence]
    children = radix_sort(above.view(unsigned), tree.sequence, threads=threads)[1]
    begins, starts = np.zeros(n + 1, kind), np.zeros(tree.roots.size + 1, np.int64)
    np.cumsum(np.bincount(above, minlength=n), out=begins[1:])
    np.cumsum(tree.sizes, out=starts[1:])
    perm = np.empty(n, kind)
    crew(threads, work=4 * n).run(_depth_first, tree.roots, starts, begins, children, perm)
    return perm


def order(view: Any, *, threads: int | None = None) -> tuple[Array, Array, Array, dict[str, int]]:
    tree = join_all(view, "cpu", threads)
    counters = {"rounds": tree.rounds, "communities": int(tree.roots.size)}
    return order_of(tree, threads), tree.parent, tree.round, counters
