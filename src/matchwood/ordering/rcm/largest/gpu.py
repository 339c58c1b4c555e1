"""The largest component and the rest of a graph, on the GPU.  Kernels: gpu.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import csr, engines, gpu
from matchwood.primitives.compact import compact
from matchwood.primitives.scan import gpu as scan

SOURCE = gpu.Source(__package__, "gpu.cu", ("merge_list<I>", "mark_vertices<I>", "copy_rows<I>"))


class Listed(NamedTuple):
    """Vertices in their order, and the smallest vertex of the component of each."""

    vertices: Any
    keys: Any


def alone(view: Any) -> Any:
    """The vertices without neighbours."""
    found = compact(view.indptr[1:] == view.indptr[:-1], engine="gpu")
    return found.astype(view.indptr.dtype, copy=False)


def members(view: Any, vertices: Any) -> Any:
    """A flag for every vertex: is it one of these?"""
    marks = engines.cupy().zeros(view.n, np.uint8)
    k = SOURCE.kernels(I=view.indptr.dtype)
    k.mark_vertices(vertices.size, (vertices.size, vertices, marks))
    return marks


def rest(view: Any, marks: Any) -> Any:
    """The vertices that are not marked and have neighbours."""
    mask = (marks == 0) & (view.indptr[1:] > view.indptr[:-1])
    return compact(mask, engine="gpu").astype(view.indptr.dtype, copy=False)


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
    return csr.graph((starts, copied), index_dtype=kind)


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
