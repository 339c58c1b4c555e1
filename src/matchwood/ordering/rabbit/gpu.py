"""Rabbit order on the GPU: the tree of joins (__init__.py), then places from sizes of subtrees.

A place is the parent's place, 1, and the sizes of the elder siblings' subtrees.  Sizes are added up
from the leaves; what a vertex adds to its parent's place is then added up along the way to its
root, twice as far at each step.  Kernels: gpu.cu.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.ordering.rabbit import Joined, begun, join_all
from matchwood.primitives.scan.gpu import scan_into

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    (
        "note_joins<I>", "count_children<I>", "add_sizes<I>", "key_siblings<I>",
        "sizes_in_order<I,O>", "place_children<I>", "place_roots<I>", "leap<I>", "set_places<I>",
    ),
    types={"O": (np.int32, np.int64)},
)  # fmt: skip
CALLER = "rabbit_order"
LEAPS = 3  # doubling steps between two tests whether all have reached their roots


def order_of(tree: Joined) -> Any:
    cupy = engines.cupy()
    kind, n = tree.parent.dtype, tree.parent.size
    perm = gpu.empty(n, kind, CALLER)
    if n == 0:
        return perm
    k, joined = SOURCE.kernels(I=kind, O=np.int64), n - tree.roots.size
    with gpu.guard(CALLER, 12 * n * kind.itemsize + 40 * n):
        counts, size, begins = cupy.zeros(n, kind), cupy.ones(n, kind), cupy.empty(n + 1, kind)
        k.count_children(n, (n, tree.parent, counts))
        scan_into(counts, begins)
        k.add_sizes(n, (n, tree.parent, counts, counts.copy(), size))
        children = _siblings(cupy, k, tree)
        ordered, before = cupy.empty(n, kind), cupy.empty(n + 1, np.int64)
        offset = cupy.empty(n, kind)
        k.sizes_in_order(joined, (joined, children, size, ordered))
        scan_into(ordered[:joined], before[: joined + 1])
        k.place_children(joined, (joined, children, tree.parent, begins, before, offset))
        roots = tree.roots
        k_roots = SOURCE.kernels("sizes_in_order", I=kind, O=kind)
        k_roots.sizes_in_order(roots.size, (roots.size, roots, size, ordered))
        scan_into(ordered[: roots.size], before[: roots.size + 1])
        ancestor = tree.parent.copy()
        k.place_roots(roots.size, (roots.size, roots, before, offset, ancestor))
        k.set_places(n, (n, _added_up(cupy, k, ancestor, offset), perm))
        return perm


def _siblings(cupy: Any, k: Any, tree: Joined) -> Any:
    """Siblings side by side: by parent, round, larger degree and vertex; roots last."""
    n, most = tree.parent.size, int(tree.degree.max())
    round_bits, degree_bits = tree.rounds.bit_length(), most.bit_length()
    first = None
    if n.bit_length() + round_bits + degree_bits > 64:  # the degrees apart, in a sort before
        first, degree_bits = cupy.argsort(-tree.degree, kind="stable"), 0
    keys = cupy.empty(n, np.uint64)
    bits = (round_bits, degree_bits, most)
    k.key_siblings(n, (n, tree.parent, tree.round, tree.degree, *bits, keys))
    if first is None:
        return cupy.argsort(keys, kind="stable")
    return first[cupy.argsort(keys[first], kind="stable")]


def _added_up(cupy: Any, k: Any, ancestor: Any, offset: Any) -> Any:
    """The sum of the offsets of each vertex and all above it."""
    n = ancestor.size
    here, there = (ancestor, offset), (cupy.empty_like(ancestor), cupy.empty_like(offset))
    flag = gpu.Flag()
    while True:
        for _ in range(LEAPS):
            flag.clear()
            k.leap(n, (n, *here, *there, flag))
            here, there = there, here
        flag.fetch()
        if not flag.read():
            return here[1]


def note(target: Any, names: Any, number: int, parent: Any, when: Any) -> None:
    """Store the joins of a round, without waiting for the device: see `join_all`."""
    k, n = SOURCE.kernels("note_joins", I=target.dtype), target.size
    k.note_joins(n, (n, target, names, number, parent, when))


def order(view: Any, *, threads: int | None = None) -> tuple[Any, Any, Any, dict[str, int]]:
    tree = join_all(view, begun(view), "gpu", None, note)
    counters = {"rounds": tree.rounds, "communities": int(tree.roots.size)}
    return order_of(tree), tree.parent, tree.round, counters
