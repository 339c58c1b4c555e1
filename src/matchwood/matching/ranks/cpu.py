"""The loops of check.py: edges of the matching looked up, edges that nothing blocks found."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, interrupted, kernel, share_rows
from matchwood.matching.cpu import Ties
from matchwood.primitives.edge_order.cpu import prefers_tied

Array = np.ndarray[Any, Any]


@kernel
def _edge_weights(
    team: Any, indptr: Array, indices: Array, data: Array, names: Array, mate: Array, found: Array
) -> None:
    """Set found[u] to the weight of the entry (u, mate[u]), where there is one."""
    lo, hi = share_rows(team, indptr)
    for u in range(lo, min(hi, mate.size)):
        if interrupted(team, u):
            return
        if mate[u] < 0:
            continue
        for k in range(indptr[u], indptr[u + 1]):
            if names[indices[k]] == mate[u]:
                found[u] = data[k]


def edge_weights(view: Any, names: Array, mate: Array, threads: int | None) -> Array:
    """The weight of each row's edge to its mate, as far as the block has it; else -1."""
    found = np.full(mate.size, -1.0)
    team = crew(threads, work=view.nnz + mate.size)
    team.run(_edge_weights, view.indptr, view.indices, view.data, names, mate, found)
    return found


@kernel
def _first_undominated(
    team: Any, view: Any, names: Array, mate: Array, own: Array, ties: Ties, found: Array,
    weights: Array,
) -> None:  # fmt: skip
    """found[member] = the first entry (u, v), u < v, that comes before the edges of its ends.

    Entries are compared by names; a member's rows need not be sorted by them.
    """
    indptr, indices, data = view
    lo, hi = share_rows(team, indptr)
    first = found[team.me]
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        u = names[i]
        if first[0] >= 0 and u > first[0]:
            continue
        for k in range(indptr[i], indptr[i + 1]):
            j = np.int64(indices[k])
            v, w = names[j], np.float64(data[k])
            if v <= u or mate[i] == v or w < own[i] or w < own[j]:
                continue
            blocked = False
            for end in (i, j):
                if own[end] == w:
                    other = names[end]
                    blocked |= prefers_tied(other, mate[end], u, v, ties.seed, ties.by_hash)
            if not blocked and (first[0] < 0 or (u, v) < (first[0], first[1])):
                first[0], first[1] = u, v
                weights[team.me] = w


def first_undominated(
    view: Any, names: Array, mate: Array, own: Array, ties: Ties, threads: int | None
) -> tuple[int, int, float] | None:
    """(u, v, weight) of the first edge, by names, that precedes the edges of its ends, or None."""
    team = crew(threads, work=view.nnz + mate.size)
    found, weights = np.full((team.size, 2), -1, np.int64), np.zeros(team.size)
    arrays = (view.indptr, view.indices, view.data)
    team.run(_first_undominated, arrays, names, mate, own, ties, found, weights)
    edges = [(*found[k].tolist(), float(weights[k])) for k in range(team.size) if found[k, 0] >= 0]
    return min(edges) if edges else None
