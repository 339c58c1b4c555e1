"""Random order, heaviest free neighbour.  The rule: __init__.py.

A team sorts the vertices; then one thread visits them one after the other.  Rows lie anywhere in
memory, so they are fetched before they are needed.  Weights are compared as integers, see
suitor/cpu.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, advance, barrier, crew, expect, interrupted, kernel
from matchwood.matching.cpu_rows import prefetch_queued
from matchwood.matching.cpu_weight import block_sums, matched_weight, sum_blocks
from matchwood.matching.methods import Found
from matchwood.primitives.edge_order.cpu import rank_in_row
from matchwood.primitives.hashing.cpu import hash2_array
from matchwood.primitives.sort.cpu import sort_pairs

Array = np.ndarray[Any, Any]


@kernel
def _visit(
    team: Team,
    indptr: Array,
    indices: Array,
    weights: Array,
    seed: Any,
    by_hash: bool,
    order: Array,
    mate: Array,
    matched: Array,
    weight: Array,
    sums: Array,
) -> None:
    """Caller: mate all ones, matched all zero; `weight` is `matched` as floats."""
    free = ~mate.dtype.type(0)
    one = indptr.dtype.type(1)
    expect(team, order.size)
    for i in range(order.size if team.rank == 0 else 0):
        if interrupted(team, i):
            return
        if i & 4095 == 0:
            advance(team, min(4096, order.size - i))
        prefetch_queued(indptr, indices, weights, order, i, order.size)
        u = order[i]
        if mate[u] != free:
            continue
        best, best_w, best_rank = free, weights.dtype.type(0), np.uint64(0)
        ranked = False
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + one])):
            v, w, rank = indices[k], weights[k], np.uint64(0)
            if w < best_w or mate[v] != free:
                continue
            tied = w == best_w
            if tied:
                if not ranked:
                    best_rank, ranked = rank_in_row(u, best, seed, by_hash), True
                rank = rank_in_row(u, v, seed, by_hash)
                if rank <= best_rank:
                    continue
            best, best_w, best_rank, ranked = v, w, rank, tied
        if best != free:
            mate[u], mate[best] = best, u
            matched[u] = matched[best] = best_w
    if barrier(team):
        return
    sum_blocks(team, weight, sums)


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> Found:
    n, kind = view.n, view.indices.dtype
    unsigned, bits = f"u{kind.itemsize}", f"i{view.data.dtype.itemsize}"
    v = np.arange(n, dtype=kind)
    _, order = sort_pairs(hash2_array(v, np.zeros_like(v), seed, threads=threads), v)
    mate, weight = np.full(n, -1, kind), np.zeros(n, view.data.dtype)
    sums = block_sums(n)
    crew(threads, work=view.nnz + n).run(
        _visit,
        view.indptr.view(unsigned),
        view.indices.view(unsigned),
        view.data.view(bits),
        np.uint64(seed),
        by_hash,
        order.view(unsigned),
        mate.view(unsigned),
        weight.view(bits),
        weight,
        sums,
    )
    return Found(mate, matched_weight(sums), 1)
