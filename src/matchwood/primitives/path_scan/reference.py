"""Path scans by their definition: from every vertex, walk each way to the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.path_scan import fault

FUNCTIONS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "minimum": lambda a, b: a if a <= b else b,
    "maximum": lambda a, b: a if a >= b else b,
}


def path_scan(
    table: Any, values: Any, op: Any, *, method: str = "walk", threads: int | None = None
) -> tuple[Any, Any, Any]:
    combine = FUNCTIONS[op] if isinstance(op, str) else op
    n = table.shape[0]
    for v in range(n):
        for side in (0, 1):
            w = int(table[v, side])
            if w == -1:
                continue
            if not 0 <= w < n or w in (v, table[v, 1 - side]) or v not in table[w]:
                raise fault(table, 2 * v + side)
    rows = [[int(w) for w in row] for row in table]
    cycle = _cut_cycles(rows)
    ends = np.empty((n, 2), table.dtype)
    reduced = np.empty((n, 2), values.dtype)
    with np.errstate(over="ignore"):
        for v in range(n):
            for side in (0, 1):
                walk = _walk(rows, v, side)
                total = values[walk[-1]]
                for w in reversed(walk[:-1]):
                    total = values.dtype.type(combine(values[w], total))
                ends[v, side], reduced[v, side] = walk[-1], total
    return ends, reduced, cycle


def _walk(rows: list[list[int]], v: int, side: int) -> list[int]:
    """v and those after it on that side, until there is none or v is reached again."""
    walk, before, at = [v], v, rows[v][side]
    while at not in (-1, v):
        walk.append(at)
        one, other = rows[at]
        before, at = at, other if one == before else one
    return walk


def _cut_cycles(rows: list[list[int]]) -> Any:
    """Cut each cycle between its smallest vertex and the larger neighbour of that."""
    cycle = np.zeros(len(rows), bool)
    for v in range(len(rows)):
        if cycle[v] or -1 in rows[v]:
            continue
        ring = _walk(rows, v, 0)
        if any(-1 in rows[w] for w in ring):
            continue
        cycle[ring] = True  # v is the smallest: it came first
        other = max(rows[v])
        rows[v][rows[v].index(other)] = -1
        rows[other][rows[other].index(v)] = -1
    return cycle
