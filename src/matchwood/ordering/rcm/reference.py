"""Cuthill-McKee by its definition, in plain Python.  The rule and the papers: __init__.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

METHODS = ("serial",)


def order(
    view: Any,
    starts: Any,
    method: str,
    reverse: bool,
    *,
    stats: bool = False,
    threads: int | None = None,
) -> tuple[Any, dict[str, Any]]:
    neighbours = _neighbours(view)
    given: dict[int, int] = {}  # smallest vertex of a component -> its given start
    parts = _components(neighbours)
    for part in parts:
        inside = sorted(set(part).intersection(starts.tolist()))
        if len(inside) > 1:
            raise ValueError(f"start: vertices {inside[0]} and {inside[1]} are in one component")
        if inside:
            given[part[0]] = inside[0]
    found: list[int] = []
    levels = searches = 0
    for part in parts:
        start = given.get(part[0])
        if start is None:
            start, rounds = find_start(neighbours, part)
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


def start_of(view: Any, vertex: int, *, threads: int | None = None) -> int:
    neighbours = _neighbours(view)
    return find_start(neighbours, sorted(_levels(neighbours, vertex)))[0]


def place_from(neighbours: list[list[int]], start: int) -> list[int]:
    """The vertices of one component in the order of Cuthill and McKee."""
    queue, seen = [start], {start}
    for parent in queue:  # grows while it is read
        children = [v for v in neighbours[parent] if v not in seen]
        queue += sorted(children, key=lambda v: (len(neighbours[v]), v))
        seen.update(children)
    return queue


def find_start(neighbours: list[list[int]], part: Sequence[int]) -> tuple[int, int]:
    """A vertex at the rim of a component, and how many searches it took."""

    def weight(v: int) -> tuple[int, int]:
        return len(neighbours[v]), v

    def search(v: int) -> tuple[int, int, int]:
        """Width, depth, and the vertex of the last level to search from next."""
        level = _levels(neighbours, v)
        depth = max(level.values())
        sizes = [0] * (depth + 2)
        for k in level.values():
            sizes[k] += 1
        width = max(sizes[k] + sizes[k + 1] for k in range(depth + 1))
        return width, depth, min((u for u in level if level[u] == depth), key=weight)

    v = min(part, key=weight)
    if len(part) == 1:
        return v, 0
    width, depth, far = search(v)
    searches = 1
    while True:
        x = far
        new_width, new_depth, far = search(x)
        searches += 1
        if new_width >= width:
            return v, searches
        if new_depth <= depth:
            return x, searches
        v, width, depth = x, new_width, new_depth


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
