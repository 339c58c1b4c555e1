"""Cuthill-McKee on the GPU.  Kernels: gpu.cu in the folders leveled, batch and start.

All components are ordered at once, as if their starts were one level: within a component that
gives the component's own order, and a stable sort by component puts the parts one after the other.
Vertices without neighbours do not take part until then.  In a large graph a component of half of
the others is ordered first, by itself (largest/).

A small graph makes an order from each of four starts, and keeps the best (start/gpu_tried.py).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.ordering.rcm import reference
from matchwood.ordering.rcm.batch import gpu as gpu_batch
from matchwood.ordering.rcm.largest import gpu as gpu_largest
from matchwood.ordering.rcm.leveled.gpu import Levels, find_levels, place_levels
from matchwood.ordering.rcm.start import gpu as gpu_start
from matchwood.ordering.rcm.start import gpu_tried
from matchwood.primitives.patterns import not_symmetric

METHODS = ("leveled", "batch")
NO_STARTS = np.empty(0, np.int64)

# Vertices from which the largest component is ordered by itself: it saves passes over all vertices.
# If others are not tiny, these become a graph of their own, which takes some 30 launches more, or
# the order is taken as the part that it is; batches are not.
ALONE_VERTICES, APART_VERTICES = 1 << 20, 1 << 24
SAMPLE = 1024  # vertices whose labels tell which component is the largest


def order(
    graph: Any,
    starts: Any,
    method: str,
    reverse: bool,
    *,
    stats: bool = False,
    threads: int | None = None,
    caller: str = "reverse_cuthill_mckee",
) -> tuple[Any, dict[str, Any]]:
    view = graph.undirected_pattern()
    n, kind = view.n, view.indptr.dtype
    if n == 0:
        return gpu.empty(0, kind, caller), {"components": 0, "levels": 0}
    method = "leveled" if method == "auto" else method
    clock = _Clock(stats)
    small = reference.is_small(view)
    with gpu.guard(caller):
        # before components are known: often there is but one
        levels, searches = _from_one(view, starts, method, small, caller)
        if levels is not None and not stats:
            levels, found = _ordered_alone(view, levels, method, small, caller)
            if found is not None:
                return _turned(found, reverse), {}
        parts = gpu_start.components(graph)
        closed = gpu_start.given(parts, starts, caller)
        if levels is None and not small:
            levels, searches = _from_largest(view, parts, closed, caller)
        if levels is not None and searches:
            component = int(parts.label[levels.start])
            parts.start[component], parts.searches = levels.start, searches
            closed = np.append(closed, component)
        if small:
            gpu_tried.several(graph, parts, closed, caller)
        else:
            gpu_start.search(graph, parts, closed)
        clock.lap("search")
        use = levels is not None and levels.in_order and method == "leveled"
        found, counters = _place(view, parts, method, levels if use else None, stats, caller)
        perm = _turned(found, reverse)
        clock.lap("order")
        if stats:
            count = gpu_start.levels(graph, parts)
            counters |= {
                "method": method,
                "components": parts.count,
                "levels": count,
                "front": n / max(1, count),
                "searches": parts.searches,
                "seconds": clock.seconds,
            }
    return perm, counters


def start_of(graph: Any, vertex: int, *, threads: int | None = None) -> int:
    caller = "pseudo_peripheral_vertex"
    view = graph.undirected_pattern()
    with gpu.guard(caller):
        if not reference.is_small(view):
            levels = find_levels(view, caller=caller)
            if levels.size < view.n:
                parts = gpu_start.components(graph)
                levels = find_levels(view, int(parts.start[parts.label[vertex]]), caller=caller)
            return _search_on(view, levels, caller)[0].start if levels.size > 1 else vertex
        found, _ = gpu_tried.connected(view, caller)
        if found is not None:
            return found.start
        parts = gpu_start.components(graph)
        component = int(parts.label[vertex])
        gpu_tried.several(graph, parts, np.delete(np.arange(parts.count), component), caller)
        return int(parts.start[component])


def _turned(order: Any, reverse: bool) -> Any:
    return engines.cupy().ascontiguousarray(order[::-1]) if reverse else order


class _Clock:
    """Seconds of the parts of a call; waits for the device only where they are wanted."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.seconds: dict[str, float] = {}
        self.since = time.perf_counter()

    def lap(self, name: str) -> None:
        if self.wanted:
            engines.cupy().cuda.get_current_stream().synchronize()
            now = time.perf_counter()
            self.seconds[name] = now - self.since
            self.since = now


def _from_one(
    view: Any, starts: Any, method: str, small: bool, caller: str
) -> tuple[Levels | None, int]:
    """Levels of one component that has many vertices, from its start, and the searches for it.

    The component of the only start given, or that of the vertex of least (degree, vertex).  Where
    starts are tried, it has to be the whole graph.
    """
    if starts.size == 0 and small:
        return gpu_tried.connected(view, caller)
    if starts.size == 1 and method == "leveled":
        levels = place_levels(view, int(starts[0]), view.n, caller=caller)
    elif starts.size == 0:
        levels = find_levels(view, caller=caller)
    else:
        return None, 0
    if levels.size <= max(1, view.n // 4):
        return None, 0
    return (levels, 0) if starts.size else _search_on(view, levels, caller)


def _from_largest(view: Any, parts: Any, closed: Any, caller: str) -> tuple[Levels | None, int]:
    """As _from_one, of a component of most of the vertices that has to search for its start."""
    sample = parts.label[:: max(1, view.n // SAMPLE)].get()
    values, counts = np.unique(sample, return_counts=True)
    component = int(values[counts.argmax()])
    if component in closed or 4 * int(counts.max()) < sample.size:
        return None, 0
    levels = find_levels(view, int(parts.start[component]), caller=caller)
    return _search_on(view, levels, caller) if levels.size > 1 else (None, 0)


def _search_on(view: Any, best: Levels, caller: str) -> tuple[Levels, int]:
    """Levels from the start of a component, and the searches for it, of which `best` is one."""
    searches = 1
    while True:
        found = find_levels(view, best.far, best.size, best.width, caller=caller)
        searches += 1
        if found.width >= best.width:
            return best, searches
        deeper, best = found.depth > best.depth, found
        if not deeper:
            return best, searches


def _ordered_alone(
    view: Any, levels: Levels, method: str, small: bool, caller: str
) -> tuple[Levels, Any | None]:
    """The order of a graph most of which is one component, of which the levels are known.

    None unless it has half of the vertices that have neighbours, and the graph is large.  The
    others search for their starts, so it has to be all of a small graph.  Also the levels, in order
    if they were placed.
    """
    if levels.size == view.n:
        return levels, _ordered(view, levels, method, caller).order
    if small or view.n < (ALONE_VERTICES if method == "leveled" else APART_VERTICES):
        return levels, None
    alone = gpu_largest.alone(view)
    if 2 * levels.size < view.n - alone.size:
        return levels, None
    levels = _ordered(view, levels, method, caller)
    part = levels.order[: levels.size]
    others, smallest = gpu_largest.rest(view, levels.owner, part)
    listed = gpu_largest.tiny(view, others, caller)
    if listed is None:
        if view.n < APART_VERTICES:
            return levels, None
        graph = gpu_largest.subgraph(view, others, caller)
        parts = gpu_start.components(graph)
        gpu_start.search(graph, parts, NO_STARTS)
        found = _place(graph.undirected_pattern(), parts, method, None, False, caller)[0]
        listed = gpu_largest.keyed(found, parts.label, parts.count, others)
    lists = (gpu_largest.Listed(alone, alone), listed)
    return levels, gpu_largest.merged(view, part, smallest, lists, caller)


def _ordered(view: Any, levels: Levels, method: str, caller: str) -> Levels:
    """The levels of a component that are known, in order from where they start."""
    if levels.in_order and method == "leveled":
        return levels
    if method == "leveled":
        placed = place_levels(view, levels.start, levels.size, caller=caller)
        if placed.size < levels.size:
            raise not_symmetric(caller)
        return placed
    start = engines.cupy().array([levels.start], view.indptr.dtype)
    order = gpu_batch.place_batches(view, start, levels.size, caller=caller)[0]
    return levels._replace(order=order, owner=None, in_order=True)


def _place(
    view: Any, parts: Any, method: str, levels: Levels | None, stats: bool, caller: str
) -> tuple[Any, dict[str, Any]]:
    """The order, from the starts; `levels` has that of one component already."""
    cupy = engines.cupy()
    n = view.n
    if levels is None:
        found, placed = gpu.empty(n, view.indptr.dtype, caller), 0
    else:
        found, placed = levels.order, levels.size
    first = parts.start
    if parts.count > 1:
        inner = view.indptr[first + 1] > view.indptr[first]
        alone = parts.count - int(inner.sum())
        if placed:
            inner[parts.label[found[0]]] = False
        first = first[inner]
    else:
        alone = int(n == 1)
        if placed or alone:
            first = first[:0]
    counters: dict[str, Any] = {}
    more = n - alone - placed
    if more:
        if method == "leveled":
            levels = place_levels(view, first, more, caller=caller)
            if levels.size < more:  # the rest of the array holds anything
                raise not_symmetric(caller)
            rest = levels.order
        else:
            rest, counters = gpu_batch.place_batches(view, first, more, stats=stats, caller=caller)
        if placed or alone:
            found[placed : placed + more] = rest[:more]
        else:
            found = rest
    if alone:
        found[n - alone :] = cupy.flatnonzero(view.indptr[1:] == view.indptr[:-1])
    if parts.count > 1:
        found = found[cupy.argsort(parts.label[found], kind="stable")]
    return found, counters
