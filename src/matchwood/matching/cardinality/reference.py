"""A largest matching from the definition: paths that gain an edge, one vertex after the other.

Edmonds' search as it is taught: the graph with odd cycles contracted is kept as the base of each
vertex, and all bases are gone through at a contraction.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np


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


def match(view: Any, method: str) -> tuple[Any, int, str]:
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
