"""A largest matching from the definition: paths that gain an edge, one vertex after the other.

Edmonds' search as in textbooks: contracted odd cycles are kept as the base of each vertex, and a
contraction goes through all bases.

`turn_paths` is the phases of cpu/bipartite.py in plain Python: from one start both find the same
mates.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

MASK64 = (1 << 64) - 1


def two_sides(view: Any) -> Any:
    """0 or 1 for each vertex, no edge inside a side; None where an odd cycle forbids that."""
    rows = _rows(view)
    side = [-1] * view.n
    for start in range(view.n):
        if side[start] >= 0:
            continue
        side[start] = 0
        waiting = deque([start])
        while waiting:
            u = waiting.popleft()
            for v in rows[u]:
                if side[v] == side[u]:
                    return None
                if side[v] < 0:
                    side[v] = 1 - side[u]
                    waiting.append(v)
    return np.array(side, np.uint8)


def match(view: Any, method: str, threads: int | None = None) -> tuple[Any, int, str]:
    if method == "hopcroft_karp" and two_sides(view) is None:
        raise ValueError(
            "maximum_matching: the graph must be bipartite for 'hopcroft_karp', got an odd one"
        )
    rows, mate = _rows(view), [-1] * view.n
    found = 0
    for root in range(view.n):
        if mate[root] < 0:
            found += _augment(rows, mate, root)
    return np.array(mate, view.indices.dtype), found, "blossom"


def turn_paths(view: Any, side: Any, mate: Any, worth: int) -> int:
    """Make a matching of a bipartite graph as large as possible; returns the number of phases."""
    rows, n, phases = _rows(view), view.n, 0
    roots = {x for x in range(n) if side[x] == 0 and mate[x] < 0}
    parent: dict[int, int] = {}  # of side 1
    root = {x: x for x in roots}  # of side 0
    end: dict[int, int] = {}  # of a root
    frontier = roots
    while True:
        while frontier:
            claims: dict[int, int] = {}
            for x in frontier:
                for y in rows[x] if root[x] not in end else ():
                    if y not in parent:
                        claims[y] = min(claims.get(y, x), x, key=_order(y).__xor__)
            frontier = _attach(claims, mate, parent, root, end)
        if not end:
            return phases
        phases += 1
        for y in end.values():
            while y >= 0:
                x = parent[y]
                following = mate[x]
                mate[x], mate[y] = y, x
                y = following
        loose = [y for y in parent if root[parent[y]] in end]
        parent = {y: x for y, x in parent.items() if root[x] not in end}
        root = {x: r for x, r in root.items() if r not in end}
        roots, end = roots - set(end), {}
        if len(parent) * worth < len(loose):
            parent, root, frontier = {}, {x: x for x in roots}, roots
            continue
        grafts = {y: next((x for x in _from_place(rows[y], y) if x in root), -1) for y in loose}
        claims = {y: x for y, x in grafts.items() if x >= 0}
        frontier = _attach(claims, mate, parent, root, end)


def _order(y: int) -> int:
    """30 bits of a hash, as cpu/bipartite.py has it."""
    return (y * 0x9E3779B97F4A7C15 & MASK64) >> 34


def _from_place(row: list[int], y: int) -> list[int]:
    place = _order(y) % max(len(row), 1)
    return row[place:] + row[:place]


def _attach(claims: Any, mate: Any, parent: Any, root: Any, end: Any) -> set[int]:
    """Add claimed vertices to their trees; returns the next frontier."""
    parent |= claims
    for y, x in claims.items():
        if mate[y] >= 0:
            root[mate[y]] = root[x]
        else:
            end[root[x]] = min(end.get(root[x], y), y)
    return {mate[y] for y in claims if mate[y] >= 0}


def _rows(view: Any) -> list[list[int]]:
    indptr, indices = view.indptr.tolist(), view.indices.tolist()
    return [indices[indptr[u] : indptr[u + 1]] for u in range(view.n)]


def _augment(rows: list[list[int]], mate: list[int], root: int) -> bool:
    """Find a path from `root` to another free vertex, and turn it round."""
    n = len(rows)
    before, base, outer = [-1] * n, list(range(n)), [False] * n
    outer[root] = True
    waiting = deque([root])

    def meeting(a: int, b: int) -> int:
        seen = set()
        while True:
            a = base[a]
            seen.add(a)
            if mate[a] < 0:
                break
            a = before[mate[a]]
        while base[b] not in seen:
            b = before[mate[base[b]]]
        return base[b]

    def contract(v: int, top: int, child: int, inside: set[int]) -> None:
        while base[v] != top:
            inside |= {base[v], base[mate[v]]}
            before[v] = child
            child = mate[v]
            v = before[mate[v]]

    while waiting:
        v = waiting.popleft()
        for u in rows[v]:
            if base[v] == base[u] or mate[v] == u:
                continue
            if u == root or (mate[u] >= 0 and before[mate[u]] >= 0):
                top = meeting(v, u)
                inside: set[int] = set()
                contract(v, top, u, inside)
                contract(u, top, v, inside)
                for w in range(n):
                    if base[w] in inside:
                        base[w] = top
                        if not outer[w]:
                            outer[w] = True
                            waiting.append(w)
            elif before[u] < 0:
                before[u] = v
                if mate[u] < 0:
                    while u >= 0:
                        w = before[u]
                        after = mate[w]
                        mate[u], mate[w] = w, u
                        u = after
                    return True
                outer[mate[u]] = True
                waiting.append(mate[u])
    return False
