"""Random order, heaviest free neighbour.  The rule: __init__.py.

A team sorts the vertices; then one thread visits them one after the other.  Rows lie anywhere in
memory, so they are prefetched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, advance, barrier, crew, device, expect, interrupted, kernel
from matchwood.matching.cpu import (
    Ties,
    WeightedRows,
    always,
    block_sums,
    exact_first_edge,
    itself,
    matched_weight,
    prefetch_queued,
    rows_of,
    sum_blocks,
)
from matchwood.matching.methods import EngineMatching
from matchwood.primitives.hashing.cpu import hash2_array
from matchwood.primitives.sort.cpu import sort_pairs

Array = np.ndarray[Any, Any]


@device
def _accept_if_free(mate: Array, v: Any, w: Any) -> Any:
    """w, or -1 when v is matched."""
    return (w if mate[v] == ~mate.dtype.type(0) else -1), False


@kernel
def _visit(
    team: Team, rows: WeightedRows, ties: Ties, order: Array, mate: Array, matched: Array,
    weight: Array, sums: Array,
) -> None:  # fmt: skip
    """Visit all vertices.  `weight` is `matched` as floats.  Caller: mate all ones, matched 0."""
    free = ~mate.dtype.type(0)
    expect(team, order.size)
    for i in range(order.size if team.me == 0 else 0):
        if interrupted(team, i):
            return
        if i & 4095 == 0:
            advance(team, min(4096, order.size - i))
        prefetch_queued(rows, order, i, order.size)
        u = order[i]
        if mate[u] != free:
            continue
        v, w = exact_first_edge(rows, u, free, mate, _accept_if_free, always, itself, ties)
        if v != free:
            mate[u], mate[v] = v, u
            matched[u] = matched[v] = w
    if barrier(team):
        return
    sum_blocks(team, weight, sums)


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    n, kind = view.n, view.indices.dtype
    rows, v = rows_of(view), np.arange(n, dtype=kind)
    unsigned, bits = rows.indices.dtype, rows.weights.dtype
    _, order = sort_pairs(hash2_array(v, np.zeros_like(v), seed, threads=threads), v)
    mate, weight = np.full(n, -1, kind), np.zeros(n, view.data.dtype)
    sums = block_sums(n)
    crew(threads, work=view.nnz + n).run(
        _visit, rows, Ties(np.uint64(seed), by_hash), order.view(unsigned), mate.view(unsigned),
        weight.view(bits), weight, sums,
    )  # fmt: skip
    return EngineMatching(mate, matched_weight(sums), 1)
