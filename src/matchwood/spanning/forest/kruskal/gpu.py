"""Kruskal's methods on the GPU; kernels: boruvka/gpu.cu.

Edges are sorted (CuPy's radix sort) and taken in that order, a growing number at once.  Each of
these is offered to both of its trees, and those that are first at one of them are taken.  This has
the same result as taking one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.transpose.gpu import expand_rows
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.boruvka.gpu import CALLER, Lists


class _Sorted:
    """All edges of a graph, to be taken in their order."""

    def __init__(self, costs: Any, order: orders.Order) -> None:
        cupy = engines.cupy()
        kind, nnz = costs.indices.dtype, costs.nnz
        self.lists = Lists(costs, order, sorted_words=True)
        self.n = costs.n
        self.lists.up[...] = cupy.arange(costs.n, dtype=kind)
        with gpu.guard(CALLER, nnz * (kind.itemsize * 4 + 16)):
            rows = expand_rows(costs.indptr, nnz)
            upper = cupy.flatnonzero(costs.indices > rows)
            self.u, self.v = rows[upper], costs.indices[upper]
            self.codes = orders.codes(costs.data[upper], order, cupy)
            self.entries = upper.astype(kind)

    def keep(self, chosen: Any) -> None:
        self.u, self.v, self.codes, self.entries = (
            array[chosen] for array in (self.u, self.v, self.codes, self.entries)
        )

    def take(self, chosen: Any) -> None:
        """Join the ends of these edges in their order, a growing number of them at once."""
        cupy = engines.cupy()
        lists = self.lists
        with gpu.guard(CALLER):
            codes = self.codes if chosen is None else self.codes[chosen]
            sequence = cupy.argsort(codes, kind="stable")
            if chosen is not None:
                sequence = chosen[sequence]
            u, v, entries = self.u[sequence], self.v[sequence], self.entries[sequence]
        start, batch = 0, max(self.n, 1024)
        while start < entries.size:
            end = min(start + batch, entries.size)
            lists.make_room(end - start)
            ends = cupy.stack([u[start:end], v[start:end]], axis=1)
            words = cupy.arange(start, end, dtype=np.uint64)
            lists.sizes[1] = end - start
            lists.shrink(1, lists.size(1), ends, words, min(end - start, lists.most))
            lists.current = 0
            lists.hook_and_shrink(end - start, entries)
            start, batch = end, 2 * batch


def mark_forest(
    costs: Any, order: orders.Order, method: str, threads: int | None
) -> tuple[Any, int]:
    """Marks of the forest's entries, and rounds; `method` is one of the two."""
    return (filter_kruskal if method == "filter_kruskal" else kruskal)(costs, order)


def kruskal(costs: Any, order: orders.Order) -> tuple[Any, int]:
    """Marks of the forest's entries, and rounds.  Memory: about 80 bytes an edge."""
    edges = _Sorted(costs, order)
    edges.take(None)
    return edges.lists.marks, edges.lists.rounds


def filter_kruskal(costs: Any, order: orders.Order) -> tuple[Any, int]:
    """Marks of the forest's entries, and rounds.  Memory: about 60 bytes an edge."""
    cupy = engines.cupy()
    edges = _Sorted(costs, order)
    target = max(costs.n, 1024)
    while edges.codes.size:
        size = edges.codes.size
        if size <= 2 * target:
            edges.take(None)
            break
        sample = cupy.sort(edges.codes[:: max(1, size // orders.SAMPLE)])
        limit = sample[int(sample.size * target / size)]
        edges.take(cupy.flatnonzero(edges.codes <= limit))
        edges.lists.flatten()
        up = edges.lists.up
        edges.keep(cupy.flatnonzero(up[edges.u] != up[edges.v]))
        target *= 2
    return edges.lists.marks, edges.lists.rounds
