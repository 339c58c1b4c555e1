"""Rabbit order by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.hashing.reference import mix64_number


def order(view: Any, *, threads: int | None = None) -> tuple[Any, Any, Any, dict[str, int]]:
    n, kind = view.n, view.indptr.dtype
    links: dict[int, dict[int, int]] = {v: {} for v in range(n)}  # edges between communities
    for v in range(n):
        for u in view.indices[view.indptr[v] : view.indptr[v + 1]].tolist():
            links[v][u] = 1
    k = {v: len(row) for v, row in links.items()}
    parent, when = list(range(n)), [0] * n
    total, number = view.nnz, 0

    def key(r: int) -> tuple[int, int, int]:
        return k[r], mix64_number(r), r

    while True:
        target = {r: r for r in links}
        for r, row in links.items():
            gains = [(w - 1.0 * k[r] * k[u] / total, mix64_number(u), u) for u, w in row.items()]
            best = max((g for g in gains if g[0] > 0), default=None)
            if best is not None and key(r) < key(best[2]):
                target[r] = best[2]
        movers = [r for r in links if target[r] != r]
        if not movers:
            break
        number += 1
        for r in movers:
            parent[r], when[r] = target[r], number
        links, k = _contracted(links, k, target)
    perm = _depth_first(parent, when, np.diff(view.indptr).tolist())
    arrays = np.array(perm, kind), np.array(parent, kind), np.array(when, np.int32)
    return (*arrays, {"rounds": number, "communities": len(links)})


def _contracted(
    links: dict[int, dict[int, int]], k: dict[int, int], target: dict[int, int]
) -> tuple[dict[int, dict[int, int]], dict[int, int]]:
    def root(r: int) -> int:
        while target[r] != r:
            r = target[r]
        return r

    of = {r: root(r) for r in links}
    tops = sorted(set(of.values()))
    merged: dict[int, dict[int, int]] = {r: {} for r in tops}
    volume = dict.fromkeys(tops, 0)
    for r, row in links.items():
        volume[of[r]] += k[r]
        for u, w in row.items():
            if of[u] != of[r]:
                merged[of[r]][of[u]] = merged[of[r]].get(of[u], 0) + w
    return merged, volume


def _depth_first(parent: list[int], when: list[int], degree: list[int]) -> list[int]:
    n = len(parent)
    children: list[list[int]] = [[] for _ in range(n)]
    for v in sorted(range(n), key=lambda v: (when[v], -degree[v], v)):
        if parent[v] != v:
            children[parent[v]].append(v)
    perm = []
    for root in range(n):
        stack = [root] if parent[root] == root else []
        while stack:
            v = stack.pop()
            perm.append(v)
            stack += reversed(children[v])
    return perm
