"""Suitor matching on a team.  The rule and the paper: matching/weighted.py.

`mate[v]` holds v's best suitor so far, `offer[v]` the weight of that proposal; both only improve.
A vertex scans its row for the first edge that the other end would accept (matching/cpu.py), and
proposes.  If that displaces another suitor, the same thread goes on with the displaced vertex.  At
the end suitors are mutual and `mate` is the matching.

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

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Team,
    advance,
    atomic_cas,
    back_off,
    barrier,
    crew,
    device,
    expanded,
    expect,
    kernel,
    load_acquire,
    load_relaxed,
    next_chunk,
    stopping,
    store_release,
)
from matchwood.matching.cpu import (
    Ties,
    WeightedRows,
    block_sums,
    first_edge,
    itself,
    matched_weight,
    rows_of,
    sum_blocks,
)
from matchwood.matching.methods import EngineMatching
from matchwood.primitives.edge_order.cpu import prefers_tied

Array = np.ndarray[Any, Any]
CHUNK = 512  # vertices that a thread takes at a time


class Proposals(NamedTuple):
    """The best proposal that each vertex has."""

    mate: Array
    offer: Array


@device
def _accept(best: Proposals, v: Any, w: Any) -> Any:
    """w where v would accept it, -1 where not; and whether the weights are equal."""
    held = load_relaxed(best.offer, v)
    return (w if w > held else -1), w == held


@device
def _takes(best: Proposals, v: Any, u: Any, w: Any, ties: Ties) -> bool:
    """Whether v would accept u with weight w, read without v's lock."""
    mate, offer = best
    free, locked = ~mate.dtype.type(0), ~mate.dtype.type(1)
    held = load_acquire(offer, v)
    if w != held:
        return w > held
    suitor = load_acquire(mate, v)
    if suitor == free or suitor == locked:  # noqa: SIM109  a tuple costs a comparison more
        return True  # v is changing now; `_propose` decides under the lock
    return prefers_tied(u, v, suitor, v, ties.seed, ties.by_hash)


@device
def _choose(rows: WeightedRows, u: Any, best: Proposals, ties: Ties) -> Any:
    """The neighbour that u proposes to and the weight; u itself where no neighbour accepts it."""
    return first_edge(rows, u, u, best, _accept, _takes, itself, ties)


@expanded
def _propose(u: Any, v: Any, w: Any, best: Proposals, ties: Ties) -> Any:
    """Make u the suitor of v.  Returns the suitor before, or u when v has a better suitor now.

    Expanded: a call made the method 18 % slower on a mesh of 48^3 with two threads.
    """
    mate, offer = best
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
    if w < held or (w == held and not prefers_tied(u, v, suitor, v, ties.seed, ties.by_hash)):
        store_release(mate, v, suitor)
        return u
    store_release(offer, v, w)
    store_release(mate, v, u)
    return suitor


@kernel
def _propose_all(
    team: Team, rows: WeightedRows, ties: Ties, best: Proposals, offered: Array, sums: Array
) -> None:
    """All vertices propose.  Caller: mate all ones (free), offer 0; `offered` is that as floats."""
    mate, offer = best
    n = mate.size
    free = ~mate.dtype.type(0)
    expect(team, n)
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for start in range(np.uint64(chunk), np.uint64(min(chunk + CHUNK, n))):
            u = mate.dtype.type(start)
            while u != free:
                v, w = _choose(rows, u, best, ties)
                if v == u or stopping(team):
                    break
                if team.size > 1:
                    u = _propose(u, v, w, best, ties)
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


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    rows = rows_of(view)
    mate, offer = np.full(view.n, -1, view.indices.dtype), np.zeros(view.n, view.data.dtype)
    sums = block_sums(view.n)
    best = Proposals(mate.view(rows.indices.dtype), offer.view(rows.weights.dtype))
    crew(threads, work=view.nnz + view.n).run(
        _propose_all, rows, Ties(np.uint64(seed), by_hash), best, offer, sums
    )
    return EngineMatching(mate, matched_weight(sums), 1, own=offer)
