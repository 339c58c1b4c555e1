"""The greedy factor on a team: the edges are sorted by all members and taken by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew, interrupted, kernel, share_rows
from matchwood.engines.cpu.hints import natural
from matchwood.factors.result import FactorArrays, Plan
from matchwood.primitives.edge_order import order_edges

Array = np.ndarray[Any, Any]


@kernel
def _list_edges(team: Team, indptr: Array, indices: Array, data: Array, starts: Array,
                fill: bool, u: Array, v: Array, w: Array) -> None:  # fmt: skip
    """Count (into starts[member + 1]), or with `fill` write, the entries above the diagonal."""
    lo, hi = share_rows(team, indptr)
    at = starts[team.me] if fill else 0
    for i in range(natural(lo), hi):
        if interrupted(team, i):
            return
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if indices[k] > i:
                if fill:
                    u[at] = i
                    v[at] = indices[k]
                    w[at] = data[k]
                at += 1
    if not fill:
        starts[team.me + 1] = at


@kernel
def _take(
    team: Team, perm: Array, u: Array, v: Array, w: Array, n: int, degree: Array,
    neighbours: Array, weights: Array,
) -> None:  # fmt: skip
    """Algorithm 1: each edge in turn, if both ends have room."""
    for i in range(perm.size):
        if interrupted(team, i):
            return
        e = natural(np.int64(perm[i]))
        a, b = natural(np.int64(u[e])), natural(np.int64(v[e]))
        if degree[a] < n and degree[b] < n:
            at, back = natural(a * n + degree[a]), natural(b * n + degree[b])
            neighbours[at], neighbours[back] = b, a
            weights[at] = weights[back] = w[e]
            degree[a] += 1
            degree[b] += 1


def find(view: Any, plan: Plan, *, keep: Any = None, threads: int | None = None) -> FactorArrays:
    rows, n = view.n, plan.n
    neighbours = np.full((rows, n), -1, view.indices.dtype)
    weights = np.zeros((rows, n), view.data.dtype)
    team = crew(threads, work=view.nnz + rows)
    starts = np.zeros(team.size + 1, np.int64)
    u, v, w = _edge_arrays(view, 0)
    team.run(_list_edges, *view, starts, False, u, v, w)
    np.cumsum(starts, out=starts)
    u, v, w = _edge_arrays(view, int(starts[-1]))
    team.run(_list_edges, *view, starts, True, u, v, w)
    ties = "hash" if plan.by_hash else "index"
    perm = order_edges(u, v, w, seed=plan.seed, ties=ties, engine="cpu", threads=threads)
    degree = np.zeros(rows, np.int64)
    crew(1, work=perm.size).run(
        _take, perm, u, v, w, n, degree, neighbours.reshape(-1), weights.reshape(-1)
    )
    return FactorArrays(neighbours, weights, 0, True)


def _edge_arrays(view: Any, m: int) -> tuple[Array, Array, Array]:
    kind = view.indices.dtype
    return np.empty(m, kind), np.empty(m, kind), np.empty(m, view.data.dtype)
