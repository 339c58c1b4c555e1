"""Suitor matching on a team.  The rule and the paper: matching/weighted.py.

`mate[v]` holds v's best suitor so far, `offer[v]` the weight of that proposal; both only improve.
A vertex scans its row for the first edge that the other end would accept, and proposes.  If that
displaces another suitor, the same thread goes on with the displaced vertex.  At the end suitors are
mutual and `mate` is the matching.

In a long row most entries cost one comparison with the best weight so far, and only those that pass
it read another vertex's offer.  A short row is scanned without branches.  These scans only notice
that weights are equal; then the row is scanned again with the full order of edges.  Weights are
compared as integers: positive floats have the order of their bits.  An integer comparison takes a
fourth of the time of a float one, and in a scan each comparison waits for the one before.

Races.  A proposal to v is made under v's lock, which is the value LOCKED in `mate[v]` itself, taken
by compare-and-swap.  Scans read `offer` without the lock, so they may see an old value.  But offers
only improve: a neighbour that refuses by an old offer refuses by the new one too, and a wrong
choice is noticed under the lock, and the scan repeated.  For a tie a scan also reads `mate[v]`.  A
proposal changes mate to LOCKED, then offer, then mate, in this order, so the suitor read after an
offer belongs to that offer or to a better one.

No livelock, no deadlock: a thread holds one lock at a time, for a few instructions, and waits for
nothing while it holds it.  Each time a lock is taken, one of two things happens.  Either an offer
improves, at most degree(v) times for v; or the thread sees an improvement that another thread made
since its scan.  So the number of steps is finite in any order.  The result does not depend on the
order, since there is only one stable state.

Rows of vertices that are displaced many times are scanned each time: O(m) work on random weights,
the sum of squared degrees at worst.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    Team,
    advance,
    atomic_cas,
    back_off,
    barrier,
    crew,
    device,
    expect,
    kernel,
    load_acquire,
    load_relaxed,
    next_chunk,
    stopping,
    store_release,
)
from matchwood.matching.cpu_weight import block_sums, matched_weight, sum_blocks
from matchwood.matching.methods import Found
from matchwood.primitives.edge_order.cpu import prefers_tied, rank_in_row

Array = np.ndarray[Any, Any]
CHUNK = 512  # vertices that a thread takes at a time
SHORT_ROW = 32  # entries; longer rows are faster with branches (bench/matching/weighted.py)


@device
def _takes(v: Any, u: Any, w: Any, mate: Array, offer: Array, seed: Any, by_hash: bool) -> bool:
    """Whether v would accept u with weight w, as far as can be seen without v's lock."""
    free, locked = ~mate.dtype.type(0), ~mate.dtype.type(1)
    held = load_acquire(offer, v)
    if w != held:
        return w > held
    suitor = load_acquire(mate, v)
    if suitor == free or suitor == locked:  # noqa: SIM109  a tuple costs a comparison more
        return True  # v is changing now; `_propose` decides under the lock
    return prefers_tied(u, v, suitor, v, seed, by_hash)


@device
def _choose_among_ties(
    indptr: Array,
    indices: Array,
    weights: Array,
    u: Any,
    mate: Array,
    offer: Array,
    seed: Any,
    by_hash: bool,
) -> Any:
    """As `_choose`, for rows with equal weights or offers."""
    best, best_w, best_rank = u, weights.dtype.type(0), np.uint64(0)
    ranked = False
    for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)])):
        v, w, rank = indices[k], weights[k], np.uint64(0)
        if w < best_w:
            continue
        tied = w == best_w
        if tied:
            if not ranked:
                best_rank, ranked = rank_in_row(u, best, seed, by_hash), True
            rank = rank_in_row(u, v, seed, by_hash)
            if rank <= best_rank:
                continue
        if _takes(v, u, w, mate, offer, seed, by_hash):
            best, best_w, best_rank, ranked = v, w, rank, tied
    return best, best_w


@device
def _choose(
    indptr: Array,
    indices: Array,
    weights: Array,
    u: Any,
    mate: Array,
    offer: Array,
    seed: Any,
    by_hash: bool,
) -> Any:
    """The neighbour that u proposes to and the weight; u itself when no neighbour accepts it."""
    nothing, refused = weights.dtype.type(0), weights.dtype.type(-1)
    best, best_w = u, nothing
    tied = False
    start, end = np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)])
    if end - start <= np.uint64(SHORT_ROW):
        for k in range(start, end):  # no branches: none of them could be predicted
            v, w = indices[k], weights[k]
            held = load_relaxed(offer, v)
            tied |= w == held
            w = w if w > held else refused
            tied |= w == best_w
            better = w > best_w
            best = v if better else best
            best_w = w if better else best_w
    else:
        for k in range(start, end):
            w = weights[k]
            if w >= best_w:
                v = indices[k]
                held = load_relaxed(offer, v)
                tied |= (w == best_w) | (w == held)
                if w > held:
                    best, best_w = v, w
    if tied:
        best, best_w = _choose_among_ties(indptr, indices, weights, u, mate, offer, seed, by_hash)
    return best, best_w


@device
def _propose(u: Any, v: Any, w: Any, mate: Array, offer: Array, seed: Any, by_hash: bool) -> Any:
    """Make u the suitor of v.  Returns the suitor before, or u when v has a better suitor now."""
    locked = ~mate.dtype.type(1)
    looks = 0
    suitor = load_acquire(mate, v)
    while True:
        if suitor != locked:
            seen = atomic_cas(mate, v, suitor, locked)
            if seen == suitor:
                break
            suitor = seen
        else:
            looks = back_off(looks)
            suitor = load_acquire(mate, v)
    held = load_relaxed(offer, v)
    if w < held or (w == held and not prefers_tied(u, v, suitor, v, seed, by_hash)):
        store_release(mate, v, suitor)
        return u
    store_release(offer, v, w)
    store_release(mate, v, u)
    return suitor


@kernel
def _propose_all(
    team: Team,
    indptr: Array,
    indices: Array,
    weights: Array,
    seed: Any,
    by_hash: bool,
    mate: Array,
    offer: Array,
    offered: Array,
    sums: Array,
) -> None:
    """Caller: mate all ones (free), offer all zero; `offered` is `offer` as floats."""
    n = mate.size
    free = ~mate.dtype.type(0)
    expect(team, n)
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for start in range(np.uint64(chunk), np.uint64(min(chunk + CHUNK, n))):
            u = mate.dtype.type(start)
            while u != free:
                v, w = _choose(indptr, indices, weights, u, mate, offer, seed, by_hash)
                if v == u or stopping(team):
                    break
                if team.size > 1:
                    u = _propose(u, v, w, mate, offer, seed, by_hash)
                else:
                    displaced = mate[v]
                    mate[v] = u
                    offer[v] = w
                    u = displaced
        advance(team, CHUNK)
        chunk = next_chunk(team, n, CHUNK)
    if barrier(team):
        return
    sum_blocks(team, offered, sums)


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> Found:
    unsigned, bits = f"u{view.indices.dtype.itemsize}", f"i{view.data.dtype.itemsize}"
    mate = np.full(view.n, -1, view.indices.dtype)
    offer = np.zeros(view.n, view.data.dtype)
    sums = block_sums(view.n)
    crew(threads, work=view.nnz + view.n).run(
        _propose_all,
        view.indptr.view(unsigned),
        view.indices.view(unsigned),
        view.data.view(bits),
        np.uint64(seed),
        by_hash,
        mate.view(unsigned),
        offer.view(bits),
        offer,
        sums,
    )
    return Found(mate, matched_weight(sums), 1, own=offer)
