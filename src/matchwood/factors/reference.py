"""Both methods as the paper defines them, with lists and loops."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from matchwood.factors.result import FactorArrays, Plan
from matchwood.primitives.edge_order.reference import edge_key
from matchwood.primitives.hashing import round_number
from matchwood.primitives.hashing.reference import quarter_md5_number


def find(view: Any, plan: Plan, *, keep: Any = None, threads: int | None = None) -> FactorArrays:
    return (_greedy if plan.method == "greedy" else _rounds)(view, plan)


def _greedy(view: Any, plan: Plan) -> FactorArrays:
    """Algorithm 1, with the paper's line numbers."""
    pi: list[list[int]] = [[] for _ in range(view.n)]
    edges = [(w, u, v) for u in range(view.n) for v, w in _row_of(view, u).items() if u < v]
    edges.sort(key=lambda e: edge_key(e[0], e[1], e[2], plan.seed, plan.by_hash))
    for _, u, v in edges:  # 4
        if len(pi[u]) < plan.n and len(pi[v]) < plan.n:  # 5
            pi[u].append(v)
            pi[v].append(u)
    return _tabulated(view, plan, pi, 0, True)


def _rounds(view: Any, plan: Plan) -> FactorArrays:
    """Algorithm 2, with the paper's line numbers."""
    n, vertices = plan.n, range(view.n)
    preference = _preferences(view, plan)
    pi: list[list[int]] = [[] for _ in vertices]  # 4
    maximal, rounds, idle = False, 0, 0
    for k in itertools.count():  # 7
        if k == plan.limit or (plan.limit < 0 and idle == plan.period):
            break
        rounds = k + 1
        r = round_number(plan.seed, k)
        charge = [quarter_md5_number(v, r) < plan.barrier for v in vertices]  # 10
        proposals: list[list[int]] = []
        for v in vertices:  # 14
            admissible = [
                w
                for w in preference[v]
                if len(pi[w]) < n  # 15
                and not (plan.charged(k) and charge[w] == charge[v])  # 17
                and w not in pi[v]
            ]
            proposals.append(admissible[: n - len(pi[v])])  # 20
        if not plan.charged(k) and not any(proposals):  # 23
            maximal = True
            break
        mutual = [[w for w in proposals[v] if v in proposals[w]] for v in vertices]  # 27
        pi = [pi[v] + mutual[v] for v in vertices]
        idle = 0 if any(mutual) else idle + 1
    return _tabulated(view, plan, pi, rounds, maximal)


def _row_of(view: Any, v: int) -> dict[int, float]:
    part = slice(int(view.indptr[v]), int(view.indptr[v + 1]))
    columns, weights = view.indices[part].tolist(), view.data[part].tolist()
    return dict(zip(columns, weights, strict=True))


def _preferences(view: Any, plan: Plan) -> list[list[int]]:
    """The neighbours of each vertex, the preferred ones first."""
    lists = []
    for v in range(view.n):
        keys = {w: edge_key(a, v, w, plan.seed, plan.by_hash) for w, a in _row_of(view, v).items()}
        lists.append(sorted(keys, key=keys.__getitem__))
    return lists


def _tabulated(
    view: Any, plan: Plan, pi: list[list[int]], rounds: int, maximal: bool
) -> FactorArrays:
    """The arrays of the factor in which pi[v] are the neighbours of v."""
    neighbours = np.full((view.n, plan.n), -1, view.indices.dtype)
    weights = np.zeros((view.n, plan.n), view.data.dtype)
    for v, preferred in enumerate(_preferences(view, plan)):
        row = _row_of(view, v)
        for slot, w in enumerate(w for w in preferred if w in pi[v]):
            neighbours[v, slot], weights[v, slot] = w, row[w]
    return FactorArrays(neighbours, weights, rounds, maximal)
