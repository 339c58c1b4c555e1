"""The greedy factor as the paper defines it, with lists and loops.  Line numbers: Algorithm 1."""

from __future__ import annotations

from typing import Any

from matchwood.factors.preferences import row_of, tabulated
from matchwood.factors.result import Found, Plan
from matchwood.primitives.edge_order.reference import edge_key


def find(view: Any, plan: Plan, *, keep: Any = None, threads: int | None = None) -> Found:
    """See matchwood.factors.degree_factor."""
    pi: list[list[int]] = [[] for _ in range(view.n)]
    edges = [(w, u, v) for u in range(view.n) for v, w in row_of(view, u).items() if u < v]
    edges.sort(key=lambda e: edge_key(e[0], e[1], e[2], plan.seed, plan.by_hash))
    for _, u, v in edges:  # 4
        if len(pi[u]) < plan.n and len(pi[v]) < plan.n:  # 5
            pi[u].append(v)
            pi[v].append(u)
    return tabulated(view, plan, pi, 0, True)
