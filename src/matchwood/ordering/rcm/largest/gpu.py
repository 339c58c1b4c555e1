"""The largest component and the rest of a graph, on the GPU.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.gate import graph as csr
from matchwood.primitives.compact import compact
from matchwood.primitives.patterns import not_symmetric
from matchwood.primitives.scan import gpu as scan

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("merge_list<I>", "mark_rest<I>", "copy_rows<I>", "measure_tiny<I>", "order_tiny<I>"),
)


class Listed(NamedTuple):
    """Vertices in their order, and the smallest vertex of the component of each."""

    vertices: Any
    keys: Any


def alone(view: Any) -> Any:
    """The vertices without neighbours."""
    found = compact(view.indptr[1:] == view.indptr[:-1], engine="gpu")
    return found.astype(view.indptr.dtype, copy=False)


def rest(view: Any, owner: Any, largest: Any) -> tuple[Any, int]:
    """The vertices outside of the largest component that have neighbours; its smallest vertex.

    `owner` is n for those outside, or None; then it is made from the component's vertices.
    """
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    if owner is None:
        owner = cupy.full(n, n, kind)
        owner[largest] = 0
    marks, smallest = cupy.empty(n, np.uint8), cupy.full(1, n, kind)
    SOURCE.kernels(I=kind).mark_rest(n, (n, view.indptr, owner, marks, smallest))
    found = compact(marks, engine="gpu").astype(kind, copy=False)
    return found, int(smallest[0])


def tiny(view: Any, vertices: Any, caller: str) -> Listed | None:
    """The order of some components that have few vertices each; None if one of them has more."""
    cupy = engines.cupy()
    size, kind = vertices.size, view.indptr.dtype
    if size == 0:
        return Listed(vertices, vertices)
    k = SOURCE.kernels(I=kind)
    pattern = (view.indptr, view.indices)
    sizes, large = gpu.empty(size, kind, caller), cupy.zeros(1, kind)
    k.measure_tiny(size, (size, vertices, *pattern, sizes, large))
    if int(large[0]):
        return None
    starts, ordered, keys = (gpu.empty(size + extra, kind, caller) for extra in (1, 0, 0))
    scan.scan_into(sizes, starts)
    if int(starts[size]) != size:
        raise not_symmetric(caller)
    k.order_tiny(size, (size, vertices, starts, *pattern, ordered, keys))
    return Listed(ordered, keys)


def subgraph(view: Any, vertices: Any, caller: str) -> Any:
    """The graph of some vertices that have no other neighbours, numbered as they are listed."""
    cupy = engines.cupy()
    size, kind = vertices.size, view.indptr.dtype
    starts = gpu.empty(size + 1, kind, caller)
    number = gpu.empty(view.n, kind, caller)
    number[vertices] = cupy.arange(size, dtype=kind)
    scan.scan_into(view.indptr[vertices + 1] - view.indptr[vertices], starts)
    entries = int(starts[size])
    copied = gpu.empty(entries, kind, caller)
    k = SOURCE.kernels(I=kind)
    pattern = (view.indptr, view.indices)
    k.copy_rows(entries, (entries, size, starts, vertices, *pattern, number, copied))
    return csr.as_graph((starts, copied), caller, index_dtype=kind)


def keyed(order: Any, label: Any, count: int, vertices: Any) -> Listed:
    """An order of a subgraph of `vertices`, whose components it has one after the other."""
    cupy = engines.cupy()
    by_label = cupy.argsort(label, kind="stable")
    first = by_label[cupy.searchsorted(label[by_label], cupy.arange(count, dtype=label.dtype))]
    return Listed(vertices[order], vertices[first[label[order]]])


def merged(
    view: Any, largest: Any, smallest: int, lists: tuple[Listed, Listed], caller: str
) -> Any:
    """The whole order: the largest component, whose smallest vertex is given, and two lists."""
    cupy = engines.cupy()
    kind = view.indptr.dtype
    order = gpu.empty(view.n, kind, caller)
    k = SOURCE.kernels(I=kind)
    at = 0
    for mine, other in (lists, lists[::-1]):
        size, others = mine.vertices.size, other.vertices.size
        at += int(cupy.searchsorted(mine.keys, cupy.array([smallest], kind))[0]) if size else 0
        where = (others, other.keys, smallest, largest.size, order)
        k.merge_list(size, (size, mine.vertices, mine.keys, *where))
    order[at : at + largest.size] = largest
    return order
