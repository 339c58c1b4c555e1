"""Cuthill-McKee on the GPU: components, and the choice of a method.

    leveled.py     the method "leveled", and levels alone
    batch.py       the method "batch"
    start.py       where components start; a small graph makes an order from each of four starts

All components are ordered at once, as if their starts were one level: within a component that
gives the component's own order, and a stable sort by component puts the parts one after the other.
Vertices without neighbours do not take part until then.

In a large graph, a component of at least half of the vertices is ordered first, by itself, so that
the components of the whole graph need not be found.  The rest is ordered as a graph of its own:
vertices keep their order in it, so that ties and the order of components stay as they are.  Its
arrays need no gate: `subgraph` takes them from a checked graph.  Last, these two and the vertices
without neighbours are merged by the smallest vertex of each component.  Kernels: largest.cu.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.gate import graph as csr
from matchwood.ordering.rcm import reference
from matchwood.ordering.rcm.gpu import batch, start
from matchwood.ordering.rcm.gpu.leveled import Levels, find_levels, place_levels
from matchwood.primitives.compact import compact
from matchwood.primitives.patterns import not_symmetric
from matchwood.primitives.scan import gpu as scan

METHODS = ("leveled", "batch")
NO_STARTS = np.empty(0, np.int64)

SOURCE = gpu.Source(
    __package__,
    "largest.cu",
    ("merge_list<I>", "mark_rest<I>", "copy_rows<I>", "measure_tiny<I>", "order_tiny<I>"),
)

# Vertices from which the largest component is ordered by itself, which saves passes over all
# vertices: the first for levels, the second for batches, and where the others are not tiny: as a
# graph of their own they take some 30 launches more.
ALONE_VERTICES, APART_VERTICES = 1 << 20, 1 << 24
SAMPLE = 1024  # vertices whose labels show which component is the largest


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
        # before components are known: often there is only one
        levels, searches = _from_one(view, starts, method, small, caller)
        if levels is not None and not stats:
            levels, found = _ordered_alone(view, levels, method, small, caller)
            if found is not None:
                return _turned(found, reverse), {}
        parts = start.components(graph)
        closed = start.enter_given(parts, starts, caller)
        if levels is None and not small:
            levels, searches = _from_largest(view, parts, closed, caller)
        if levels is not None and searches:
            component = int(parts.label[levels.start])
            parts.start[component], parts.searches = levels.start, searches
            closed = np.append(closed, component)
        if small:
            start.several(graph, parts, closed, caller)
        else:
            start.search(graph, parts, closed)
        clock.lap("search")
        use = levels is not None and levels.in_order and method == "leveled"
        found, counters = _place(view, parts, method, levels if use else None, stats, caller)
        perm = _turned(found, reverse)
        clock.lap("order")
        if stats:
            count = start.levels(graph, parts)
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
                parts = start.components(graph)
                levels = find_levels(view, int(parts.start[parts.label[vertex]]), caller=caller)
            return _search_on(view, levels, caller)[0].start if levels.size > 1 else vertex
        found, _ = start.connected(view, caller)
        if found is not None:
            return found.start
        parts = start.components(graph)
        component = int(parts.label[vertex])
        start.several(graph, parts, np.delete(np.arange(parts.count), component), caller)
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
        return start.connected(view, caller)
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
    """As `_from_one`, for a component of most vertices that has to search for its start."""
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
    """The order of a graph most of which is one component, whose levels are given.

    None unless it has half of the vertices that have neighbours, and the graph is large.  The
    others search for their starts, so it has to be all of a small graph.  Also returns the levels,
    in order if they were placed.
    """
    if levels.size == view.n:
        return levels, _ordered(view, levels, method, caller).order
    if small or view.n < (ALONE_VERTICES if method == "leveled" else APART_VERTICES):
        return levels, None
    alone = without_neighbours(view)
    if 2 * levels.size < view.n - alone.size:
        return levels, None
    levels = _ordered(view, levels, method, caller)
    part = levels.order[: levels.size]
    others, smallest = rest(view, levels.owner, part)
    listed = tiny(view, others, caller)
    if listed is None:
        if view.n < APART_VERTICES:
            return levels, None
        graph = subgraph(view, others, caller)
        parts = start.components(graph)
        start.search(graph, parts, NO_STARTS)
        found = _place(graph.undirected_pattern(), parts, method, None, False, caller)[0]
        listed = keyed(found, parts.label, parts.count, others)
    lists = (KeyedVertices(alone, alone), listed)
    return levels, merged(view, part, smallest, lists, caller)


def _ordered(view: Any, levels: Levels, method: str, caller: str) -> Levels:
    """The given levels of a component, in the order of Cuthill and McKee from their start."""
    if levels.in_order and method == "leveled":
        return levels
    if method == "leveled":
        placed = place_levels(view, levels.start, levels.size, caller=caller)
        if placed.size < levels.size:
            raise not_symmetric(caller)
        return placed
    begin = engines.cupy().array([levels.start], view.indptr.dtype)
    order = batch.place_batches(view, begin, levels.size, caller=caller)[0]
    return levels._replace(order=order, owner=None, in_order=True)


def _place(
    view: Any, parts: Any, method: str, levels: Levels | None, stats: bool, caller: str
) -> tuple[Any, dict[str, Any]]:
    """The order and counters, from the starts; `levels` has those of one component already."""
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
            rest, counters = batch.place_batches(view, first, more, stats=stats, caller=caller)
        if placed or alone:
            found[placed : placed + more] = rest[:more]
        else:
            found = rest
    if alone:
        found[n - alone :] = cupy.flatnonzero(view.indptr[1:] == view.indptr[:-1])
    if parts.count > 1:
        found = found[cupy.argsort(parts.label[found], kind="stable")]
    return found, counters


# The largest component and the rest


class KeyedVertices(NamedTuple):
    """Vertices in their order, and the smallest vertex of the component of each."""

    vertices: Any
    keys: Any


def without_neighbours(view: Any) -> Any:
    found = compact(view.indptr[1:] == view.indptr[:-1], engine="gpu")
    return found.astype(view.indptr.dtype, copy=False)


def rest(view: Any, owner: Any, largest: Any) -> tuple[Any, int]:
    """The vertices with neighbours outside the largest component, and the smallest inside.

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


def tiny(view: Any, vertices: Any, caller: str) -> KeyedVertices | None:
    """The order of some components that have few vertices each; None if one of them has more."""
    cupy = engines.cupy()
    size, kind = vertices.size, view.indptr.dtype
    if size == 0:
        return KeyedVertices(vertices, vertices)
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
    return KeyedVertices(ordered, keys)


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


def keyed(order: Any, label: Any, count: int, vertices: Any) -> KeyedVertices:
    """The keyed vertices of an order of the subgraph of `vertices`, component by component."""
    cupy = engines.cupy()
    by_label = cupy.argsort(label, kind="stable")
    first = by_label[cupy.searchsorted(label[by_label], cupy.arange(count, dtype=label.dtype))]
    return KeyedVertices(vertices[order], vertices[first[label[order]]])


def merged(
    view: Any, largest: Any, smallest: int, lists: tuple[KeyedVertices, KeyedVertices], caller: str
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
