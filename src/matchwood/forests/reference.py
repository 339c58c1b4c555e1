"""The linear forest by its definition: walk, cut, walk again; the values along its paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.forests.result import PathOrder


def forest(
    neighbours: Any, weights: Any, *, method: str = "auto", threads: int | None = None
) -> PathOrder:
    n, kind = neighbours.shape[0], neighbours.dtype
    table = [{int(w) for w in row if w >= 0} for row in neighbours]
    weight = {
        (v, int(w)): float(x)
        for v in range(n)
        for w, x in zip(neighbours[v], weights[v], strict=True)
        if w >= 0
    }
    cuts = _cut_cycles(table, weight)
    perm, path, position = [], np.empty(n, kind), np.zeros(n, kind)
    for end in range(n):  # ascending: the first end of a path is its smaller one
        if len(table[end]) == 2 or position[end] > 0:
            continue
        for place, v in enumerate(_walk(table, end), start=1):
            perm.append(v)
            path[v], position[v] = end, place
    order = np.array(perm, kind)
    where = np.empty(n, kind)
    where[order] = np.arange(n)
    cut = np.array(cuts, kind).reshape(-1, 2)
    return PathOrder(order, path, position, where, lambda: cut, dict)


def _walk(table: list[set[int]], start: int) -> list[int]:
    """The vertices from `start` on, until there is no next one or it has been met."""
    found, seen = [start], {start}
    while True:
        ahead = sorted(table[found[-1]] - seen)
        if not ahead:
            return found
        found.append(ahead[0])
        seen.add(ahead[0])


def _cut_cycles(
    table: list[set[int]], weight: dict[tuple[int, int], float]
) -> list[tuple[int, int]]:
    """Take the weakest edge, by (weight, smaller end, larger end), out of each cycle."""
    cuts = []
    seen: set[int] = set()
    for start in range(len(table)):
        if start in seen:
            continue
        ring = _walk(table, start)
        if any(len(table[v]) < 2 for v in ring):
            continue  # a path
        seen.update(ring)
        edges = zip(ring, ring[1:] + ring[:1], strict=True)
        _, u, v = min((weight[a, b], min(a, b), max(a, b)) for a, b in edges)
        table[u].remove(v)
        table[v].remove(u)
        cuts.append((u, v))
    return cuts


def coefficients(
    view: Any, table: Any, place: Any, position: Any, *, threads: int | None = None
) -> tuple[Any, Any, Any]:
    dl, d, du = (np.zeros(view.n, view.data.dtype) for _ in range(3))
    for v in range(view.n):
        near = {int(w): int(position[w]) - int(position[v]) for w in table[v] if w >= 0}
        for k in range(int(view.indptr[v]), int(view.indptr[v + 1])):
            j, value = int(view.indices[k]), view.data[k]
            if j == v:
                d[place[v]] = value
            elif near.get(j) == -1:
                dl[place[v]] = value
            elif near.get(j) == 1:
                du[place[v]] = value
    return dl, d, du
