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
from matchwood.primitives.contract import trusted_contract_measured, trusted_sums
from matchwood.primitives.joining import trusted_joins, trusted_trees

ALONE = 1 << 17  # entries and communities of a round that one member does alone: waking more costs
# more than they gain, as in communities/louvain_leiden/cpu.py


class Joined(NamedTuple):
    """All joins: parent and round of each vertex, and the vertices by (round, vertex)."""

    parent: Any
    round: Any
    sequence: Any  # of those that joined
    roots: Any  # vertices that never joined, ascending
    sizes: Any  # vertices of their trees
    rounds: int


def note(target: Any, names: Any, number: int, parent: Any, when: Any) -> Any:
    """Write down the joins of a round by name; returns who joined."""
    here = np.flatnonzero(target != np.arange(target.size, dtype=target.dtype))
    movers = names[here]
    parent[movers] = names[target[here]]
    when[movers] = number
    return movers


def join_all(view: Any, engine: str, threads: int | None, note: Any = note) -> Joined:
    """Join until none joins.  Sequence and sizes are not found where `note` returns nothing."""
    xp = engines.xp(view.indptr)
    n, kind = view.n, view.indices.dtype
    parent = xp.arange(n, dtype=kind)
    when = xp.zeros(n, np.int32)
    names, sizes = parent.copy(), xp.ones(n, np.int64)
    volume = xp.diff(view.indptr).astype(np.int64)
    graph, longest = (view.indptr, view.indices, None), int(volume.max()) if n else 0
    sequence: list[Any] = []
    total, number = view.nnz, 0
    where: dict[str, Any] = {"engine": engine, "threads": threads}
    while True:
        if graph[1].size + names.size < ALONE:
            where["threads"] = 1
        target = trusted_joins(graph, volume, names, total, **where)
        movers = note(target, names, number + 1, parent, when)
        if movers is not None:
            if movers.size == 0:
                break
            sequence.append(movers)
        label, roots = trusted_trees(target, **where)
        count = int(roots.size)
        if count == target.size:
            break
        number += 1
        # Who joins whom does not depend on the order within a row, so rows may stay unsorted.
        found, longest, _ = trusted_contract_measured(
            *graph, None, label, count, most=total, longest=longest, **where
        )
        graph = (found.indptr, found.indices, found.data)
        volume = trusted_sums(volume, label, count, where["threads"])
        if sequence:
            sizes = trusted_sums(sizes, label, count, where["threads"])
        names = names[roots]
    joined = xp.concatenate([xp.empty(0, kind), *sequence])
    return Joined(parent, when, joined, names, sizes, number)
