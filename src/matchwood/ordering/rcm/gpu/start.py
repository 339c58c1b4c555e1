"""Where components start, on the GPU: all components search at once.  Kernels: start.cu.

In a small graph orders from four vertices are made, of which the best is kept.  The rule is
`tried_starts`, which compares a few numbers of each component on the host.  `place_levels` makes
the orders, and finds where the next one starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.components import connected_components
from matchwood.engines import gpu
from matchwood.ordering.rcm.gpu.leveled import Levels, place_levels
from matchwood.ordering.rcm.reference import tried_starts, two_starts
from matchwood.primitives.patterns import not_symmetric
from matchwood.traversal import bfs

Array = np.ndarray[Any, Any]

SOURCE = gpu.Source(
    __package__,
    "start.cu",
    (
        "least_degree<I>",
        "least_vertex<I>",
        "deepest<I>",
        "count_levels<I>",
        "widest<I>",
        "decide<I>",
        "last_alike<I>",
        "widest_band<I>",
    ),
)


@dataclass
class Parts:
    """The components of a graph: their number, the label of each vertex, and their starts."""

    count: int
    label: Any
    start: Any
    searches: int = 0


def components(graph: Any) -> Parts:
    """Components; each starts at its vertex of least (degree, vertex)."""
    view = graph.undirected_pattern()
    count, label = connected_components(graph, engine="gpu")
    k = SOURCE.kernels(I=view.indptr.dtype)
    return Parts(count, label, _least(k, view, label, count, None, None))


def enter_given(parts: Parts, starts: Array, caller: str) -> Any:
    """Enter the given starts; the components that have one, in ascending order."""
    cupy = engines.cupy()
    if starts.size == 0:
        return np.empty(0, np.int64)
    here = cupy.asarray(starts.astype(parts.label.dtype))
    labels = parts.label[here].get()
    order = np.argsort(labels, kind="stable")  # starts ascend
    twice = np.flatnonzero(np.diff(labels[order]) == 0)
    if twice.size:
        a, b = (int(starts[order[twice[0] + i]]) for i in (0, 1))
        raise two_starts(caller, a, b)
    parts.start[cupy.asarray(labels)] = here
    return labels[order].astype(np.int64)


def search(graph: Any, parts: Parts, closed: Array) -> None:
    """Find the starts of all components but the `closed` ones."""
    cupy = engines.cupy()
    view = graph.undirected_pattern()
    kind = view.indptr.dtype
    count, n = parts.count, view.n
    if closed.size == count:
        return
    opened = view.indptr[parts.start + 1] > view.indptr[parts.start]
    if closed.size:
        opened[cupy.asarray(closed)] = False
    sources = parts.start[opened].get()
    if sources.size == 0:
        return
    k = SOURCE.kernels(I=kind)
    space = gpu.workspace(
        "pseudo_peripheral_vertex",
        counts=(n, kind),
        x=(count, kind),
        width=(count, kind),
        depth=(count, kind),
        found_width=(count, kind),
        found_depth=(count, kind),
        following=(sources.size, kind),
        size=(1, kind),
    )
    first = True
    while sources.size:
        level = _levels(graph, sources)
        parts.searches += int(sources.size)
        far = _measure(k, view, parts, level, space)
        space.size.fill(0)
        k.decide(
            count,
            (count, first, space.found_width, space.found_depth, far, parts.start, space.x,
             space.width, space.depth, opened, space.following, space.size),
        )  # fmt: skip
        sources = space.following[: int(space.size[0])].get()
        first = False


def _levels(graph: Any, starts: Array) -> Any:
    return bfs(graph, starts, directed=False, engine="gpu").level


def far_from(graph: Any, parts: Parts, starts: Array) -> Array:
    """The vertex of least (degree, vertex) in the last level from the start, for each component."""
    cupy = engines.cupy()
    view = graph.undirected_pattern()
    level = _levels(graph, starts)
    depth = cupy.full(parts.count, -1, level.dtype)
    k = SOURCE.kernels(I=level.dtype)
    k.deepest(view.n, (view.n, parts.label, level, depth))
    found = _least(k, view, parts.label, parts.count, level, depth)
    return np.asarray(found.get())


def levels(graph: Any, parts: Parts) -> int:
    """The sum of the levels of the searches from all starts."""
    cupy = engines.cupy()
    level = _levels(graph, parts.start.get())
    depth = cupy.full(parts.count, -1, level.dtype)
    k = SOURCE.kernels(I=level.dtype)
    k.deepest(graph.n, (graph.n, parts.label, level, depth))
    return int(depth.sum(dtype=np.int64)) + parts.count


def _measure(k: Any, view: Any, parts: Parts, level: Any, space: Any) -> Any:
    """Width and depth of each component's search, and its vertex for the next one."""
    cupy = engines.cupy()
    n, label, depth = view.n, parts.label, space.found_depth
    depth.fill(-1)
    space.found_width.fill(0)
    space.counts.fill(0)
    k.deepest(n, (n, label, level, depth))
    end = cupy.cumsum(depth + 1, dtype=depth.dtype)
    k.count_levels(n, (n, label, level, depth, end, space.counts))
    k.widest(n, (n, label, level, depth, end, space.counts, space.found_width))
    return _least(k, view, label, parts.count, level, depth)


def _least(k: Any, view: Any, label: Any, count: int, level: Any, depth: Any) -> Any:
    """The vertex of least (degree, vertex) of each component, or of its last level."""
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    degree = cupy.full(count, n, kind)
    vertex = cupy.full(count, n, kind)
    k.least_degree(n, (n, view.indptr, label, level, depth, degree))
    k.least_vertex(n, (n, view.indptr, label, level, depth, degree, vertex))
    return vertex


# Small graphs


def connected(view: Any, caller: str) -> tuple[Levels | None, int]:
    """The order of a connected graph from its start, and the number of starts tried.

    None instead of levels if the order from the first start shows that it is not connected.
    """
    if view.nnz == 0:
        return None, 0
    cupy = engines.cupy()
    n, kind = view.n, view.indptr.dtype
    v = place_levels(view, -1, n, caller=caller)
    if v.size < n:
        return None, 0
    k = SOURCE.kernels(I=kind)
    last = cupy.full(1, -1, kind)
    k.last_alike(n, (n, view.indptr, None, v.order, last))  # v is the first of its order
    made = {v.start: v}

    def order_from(starts: Array) -> Levels:
        start = int(starts[0])
        if start not in made:
            made[start] = _complete(place_levels(view, start, n, caller=caller), n, caller)
        return made[start]

    def bands_from(starts: Array) -> Array:
        levels, band = order_from(starts), cupy.zeros(1, kind)
        k.widest_band(n, (n, levels.order, levels.owner, None, None, band))
        return np.asarray(band.get())

    starts, tried = tried_starts(
        np.array([v.start]),
        last.get(),
        lambda starts: np.array([order_from(starts).far]),
        bands_from,
    )
    return order_from(starts), int(tried[0])


def several(graph: Any, parts: Parts, closed: Array, caller: str) -> None:
    """Find the starts of all components of a small graph but the `closed` ones."""
    cupy = engines.cupy()
    view = graph.undirected_pattern()
    n, kind, label, count = view.n, view.indptr.dtype, parts.label, parts.count
    inner = view.indptr[parts.start + 1] > view.indptr[parts.start]
    opened = inner.get()
    total = n - count + int(opened.sum())  # vertices that have neighbours
    opened[closed] = False
    if not opened.any():
        return
    k = SOURCE.kernels(I=kind)
    last = cupy.full(count, -1, kind)
    k.last_alike(n, (n, view.indptr, label, parts.start, last))
    place = gpu.empty(n, kind, caller)

    def bands_from(starts: Array) -> Array:
        first = cupy.asarray(starts.astype(kind))[inner]
        levels = _complete(place_levels(view, first, total, caller=caller), total, caller)
        order = levels.order[:total]  # level by level, those of all components
        place[order[cupy.argsort(label[order], kind="stable")]] = cupy.arange(total, dtype=kind)
        band = cupy.zeros(count, kind)
        k.widest_band(total, (total, order, levels.owner, place, label, band))
        return np.asarray(band.get())

    given = parts.start.get()
    starts, tried = tried_starts(
        given, last.get(), lambda starts: far_from(graph, parts, starts), bands_from
    )
    parts.start = cupy.asarray(np.where(opened, starts, given).astype(kind))
    parts.searches += int(tried[opened].sum())


def _complete(levels: Levels, total: int, caller: str) -> Levels:
    if levels.size < total:  # the rest of the array holds anything
        raise not_symmetric(caller)
    return levels
