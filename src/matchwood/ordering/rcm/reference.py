"""Cuthill-McKee by its definition, in plain Python.  The rule and the papers: __init__.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

METHODS = ("serial",)

Array = np.ndarray[Any, Any]
FromStarts = Callable[[Array], Array]
"""A function from the starts of all components to one number for each."""

# Vertices, and edges, of a graph in which several starts are tried: a few milliseconds at most.
SMALL_GRAPH_EDGES = 1 << 16


def is_small(view: Any, loops: int = 0) -> bool:
    """Whether components try a few starts; `loops` is the number of loops among the entries."""
    return bool(view.n <= SMALL_GRAPH_EDGES and view.nnz - loops <= 2 * SMALL_GRAPH_EDGES)


def two_starts(caller: str, a: int, b: int) -> ValueError:
    return ValueError(
        f"{caller}: start must have at most one vertex of a component, "
        f"but vertices {a} and {b} are in one component"
    )


def order(
    graph: Any, starts: Any, method: str, reverse: bool, *, stats: bool = False,
    threads: int | None = None, caller: str = "reverse_cuthill_mckee",
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    view = graph.undirected_pattern()
    neighbours = _neighbours(view)
    given: dict[int, int] = {}  # smallest vertex of a component -> its given start
    parts = _components(neighbours)
    for part in parts:
        inside = sorted(set(part).intersection(starts.tolist()))
        if len(inside) > 1:
            raise two_starts(caller, *inside[:2])
        if inside:
            given[part[0]] = inside[0]
    found: list[int] = []
    levels = searches = 0
    for part in parts:
        start = given.get(part[0])
        if start is None:
            start, rounds = find_start(neighbours, part, is_small(view))
            searches += rounds
        found += place_from(neighbours, start)
        levels += max(_levels(neighbours, start).values()) + 1
    perm = np.array(found, view.indptr.dtype)
    counters = {
        "method": "serial",
        "components": len(parts),
        "levels": levels,
        "front": view.n / max(1, levels),
        "searches": searches,
    }
    return perm[::-1].copy() if reverse else perm, counters


def start_of(graph: Any, vertex: int, *, threads: int | None = None) -> int:
    view = graph.undirected_pattern()
    neighbours = _neighbours(view)
    return find_start(neighbours, sorted(_levels(neighbours, vertex)), is_small(view))[0]


def place_from(neighbours: list[list[int]], start: int) -> list[int]:
    """The vertices of one component in the order of Cuthill and McKee."""
    queue, seen = [start], {start}
    for parent in queue:  # grows while it is read
        children = [v for v in neighbours[parent] if v not in seen]
        queue += sorted(children, key=lambda v: (len(neighbours[v]), v))
        seen.update(children)
    return queue


def find_start(neighbours: list[list[int]], part: Sequence[int], small: bool) -> tuple[int, int]:
    """Where a component starts, and how many searches it took."""
    if len(part) == 1:
        return part[0], 0
    return _tried_start(neighbours, part) if small else _searched_start(neighbours, part)


def _tried_start(neighbours: list[list[int]], part: Sequence[int]) -> tuple[int, int]:
    """In a small graph: of four vertices the first whose order has the least bandwidth."""

    def band(start: int) -> int:
        place = {u: k for k, u in enumerate(place_from(neighbours, start))}
        return max(abs(place[u] - place[w]) for u in part for w in neighbours[u])

    degree = min(len(neighbours[u]) for u in part)
    least = [u for u in part if len(neighbours[u]) == degree]
    v, z = min(least), max(least)
    x = _search(neighbours, v)[2]
    y = _search(neighbours, x)[2]
    tried = list(dict.fromkeys((v, x, y, z)))  # each once
    return min(tried, key=band), len(tried)


def tried_starts(
    v: Array, last: Array, far_from: FromStarts, bands_from: FromStarts
) -> tuple[Array, Array]:
    """`_tried_start` for all components at once, in NumPy, and how many were tried.

    For the check of an order and for the GPU, which pass their own searches and orders.

    `v` and `last` are the first and the last vertex of least degree.  `far_from` gives the vertex
    of least (degree, vertex) in the last level, and `bands_from` the bandwidth of the order.
    """
    x = far_from(v)
    candidates = [v, x, far_from(x), last]
    start, band = v, bands_from(v)
    tried = np.ones(v.size, np.int64)
    for k, other in enumerate(candidates[1:], 1):
        fresh = np.all([other != earlier for earlier in candidates[:k]], axis=0)
        if fresh.any():
            tried += fresh
            new_band = bands_from(other)
            start = np.where(new_band < band, other, start)
            band = np.minimum(band, new_band)
    return start, tried


def _searched_start(neighbours: list[list[int]], part: Sequence[int]) -> tuple[int, int]:
    """In a larger graph: go on from vertex to vertex while levels get narrower and more."""
    v = _least(neighbours, part)
    width, depth, far = _search(neighbours, v)
    searches = 1
    while True:
        x = far
        new_width, new_depth, far = _search(neighbours, x)
        searches += 1
        if new_width >= width:
            return v, searches
        if new_depth <= depth:
            return x, searches
        v, width, depth = x, new_width, new_depth


def _search(neighbours: list[list[int]], v: int) -> tuple[int, int, int]:
    """Width, depth, and the vertex of the last level to search from next."""
    level = _levels(neighbours, v)
    depth = max(level.values())
    sizes = [0] * (depth + 2)
    for k in level.values():
        sizes[k] += 1
    width = max(sizes[k] + sizes[k + 1] for k in range(depth + 1))
    return width, depth, _least(neighbours, [u for u in level if level[u] == depth])


def _least(neighbours: list[list[int]], vertices: Sequence[int]) -> int:
    return min(vertices, key=lambda u: (len(neighbours[u]), u))


def _neighbours(view: Any) -> list[list[int]]:
    ends = view.indptr.tolist()
    return [view.indices[ends[v] : ends[v + 1]].tolist() for v in range(view.n)]


def _levels(neighbours: list[list[int]], start: int) -> dict[int, int]:
    level, queue = {start: 0}, [start]
    for u in queue:
        for v in neighbours[u]:
            if v not in level:
                level[v] = level[u] + 1
                queue.append(v)
    return level


def _components(neighbours: list[list[int]]) -> list[list[int]]:
    """Each sorted, in the order of their smallest vertices."""
    parts: list[list[int]] = []
    seen: set[int] = set()
    for v in range(len(neighbours)):
        if v not in seen:
            parts.append(sorted(_levels(neighbours, v)))
            seen.update(parts[-1])
    return parts
