"""The tree of joins, round by round; on any engine, whose primitives do the work.

A round has three steps: which community joins which (primitives.joining), the trees that these
joins make, and the graph contracted by trees (primitives.contract).  Communities are named by the
vertex they began with.  A tree is named after its root, and trees are numbered by their roots, so
names ascend in every round.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.primitives.contract import trusted_contract, trusted_sums
from matchwood.primitives.joining import trusted_joins, trusted_trees


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
        # Who joins whom does not depend on the order within a row, so rows may stay unsorted.
        found = trusted_contract(*graph, None, label, count, ordered=False, most=total, **where)
        graph = (found.indptr, found.indices, found.data)
        volume, sizes = (trusted_sums(x, label, count) for x in (volume, sizes))
        names = names[roots]
    joined = xp.concatenate([xp.empty(0, kind), *sequence])
    return Joined(parent, when, joined, names, sizes, number)
