"""Rabbit order on the GPU: the tree of joins (rounds.py), then places from sizes of subtrees.

A place is the parent's place, 1, and the sizes of the elder siblings' subtrees.  Sizes are added up
from the leaves; what a vertex adds to its parent's place is then added up along the way to its
root, twice as far at each step.  Kernels: gpu.cu.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines, gpu
from matchwood.ordering.rabbit.rounds import Joined, join_all
from matchwood.primitives.sort import radix_sort

SOURCE = gpu.Source(__package__, "gpu.cu", ("count_children<I>", "add_sizes<I>", "leap<I>"))
CALLER = "rabbit_order"


def order_of(tree: Joined) -> Any:
    """The vertices depth first."""
    cupy = engines.cupy()
    kind, n = tree.parent.dtype, tree.parent.size
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    k = SOURCE.kernels(I=kind)
    with gpu.guard(CALLER, 12 * n * kind.itemsize + 32 * n):
        counts, size = cupy.zeros(n, kind), cupy.ones(n, kind)
        k.count_children(n, (n, tree.parent, counts))
        k.add_sizes(n, (n, tree.parent, counts, counts.copy(), size))
        # siblings side by side, elder ones first: the sequence is by (round, vertex)
        above, children = radix_sort(tree.parent[tree.sequence].view(unsigned), tree.sequence)
        offset = cupy.empty(n, kind)
        sums = cupy.cumsum(size[children], dtype=np.int64) - size[children]
        first = cupy.searchsorted(above, above, side="left")
        offset[children] = (1 + sums - sums[first]).astype(kind)
        offset[tree.roots] = cupy.cumsum(tree.sizes) - tree.sizes
        ancestor = tree.parent.copy()
        ancestor[tree.roots] = -1
        place = _added_up(cupy, k, ancestor, offset)
        perm = cupy.empty(n, kind)
        perm[place] = cupy.arange(n, dtype=kind)
        return perm


def _added_up(cupy: Any, k: Any, ancestor: Any, offset: Any) -> Any:
    """The sum of the offsets of each vertex and all above it."""
    n = ancestor.size
    here, there = (ancestor, offset), (cupy.empty_like(ancestor), cupy.empty_like(offset))
    flag = gpu.Flag()
    while n:
        flag.clear()
        k.leap(n, (n, *here, *there, flag))
        here, there = there, here
        flag.fetch()
        if not flag.read():
            break
    return here[1]


def order(view: Any, *, threads: int | None = None) -> tuple[Any, Any, Any, dict[str, int]]:
    tree = join_all(view, "gpu", None)
    counters = {"rounds": tree.rounds, "communities": int(tree.roots.size)}
    return order_of(tree), tree.parent, tree.round, counters
