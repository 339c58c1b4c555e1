"""The tree of joins, round by round; on any engine, whose primitives do the work.

A round: who joins whom (primitives.joining), the trees that makes, the graph added up by trees
(primitives.quotient).  Communities are named by the vertex they began with.  A tree is named after
its root, and trees are numbered by their roots, so names ascend in every round.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.primitives.joining import trusted_joins, trusted_trees
from matchwood.primitives.quotient import trusted_quotient


class Joined(NamedTuple):
    """All joins: parent and round of each vertex, and the vertices by (round, vertex)."""

    parent: Any
    round: Any
    sequence: Any  # of those that joined
    roots: Any  # vertices that never joined, ascending
    sizes: Any  # vertices of their trees
    rounds: int


def join_all(view: Any, engine: str, threads: int | None) -> Joined:
    """Join until none joins."""
    xp = engines.xp(view.indptr)
    n, kind = view.n, view.indices.dtype
    parent = xp.arange(n, dtype=kind)
    when = xp.zeros(n, np.int32)
    names, sizes = parent.copy(), xp.ones(n, np.int64)
    volume = xp.diff(view.indptr).astype(np.int64)
    graph = (view.indptr, view.indices, None)
    sequence = []
    total, number = view.nnz, 0
    where: dict[str, Any] = {"engine": engine, "threads": threads}
    while True:
        target = trusted_joins(graph, volume, names, total, **where)
        here = xp.flatnonzero(target != xp.arange(target.size, dtype=kind))
        if here.size == 0:
            break
        number += 1
        movers = names[here]
        parent[movers] = names[target[here]]
        when[movers] = number
        sequence.append(movers)
        label, roots = trusted_trees(target, **where)
        count = int(roots.size)
        found = trusted_quotient(
            *graph, None, label, count, symmetric=True, ordered=False, **where
        )  # who joins whom does not depend on the order within a row
        graph = (found.indptr, found.indices, found.data)
        volume, sizes = (_added_up(xp, x, label, count) for x in (volume, sizes))
        names = names[roots]
    joined = xp.concatenate([xp.empty(0, kind), *sequence])
    return Joined(parent, when, joined, names, sizes, number)


def _added_up(xp: Any, values: Any, label: Any, count: int) -> Any:
    """Sums by label; exact, since they are far below 2^53."""
    return xp.bincount(label, weights=values, minlength=count).astype(np.int64)
