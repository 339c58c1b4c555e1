"""Greedy matching on a team.  The rule: __init__.py.

Sorting all edges is a waste: after the heavy ones most vertices are matched, and most light edges
have an end that is not free.  So edges are taken in batches, from heavy to light.  A batch is

    collected    all edges in a range of weights whose ends are still free: one pass over the rows
                 of free vertices, by all threads
    sorted       radix sort by the leading bits of the distance to the batch's largest weight; the
                 few edges that agree in these bits are then sorted by a full comparison
    taken        one edge after the other, by thread 0

The ranges are chosen from a sample of the weights.  They change the time but not the result.  Equal
weights fall into one batch; where many are equal, `order_edges` sorts.

Weights are compared as integers.  Races: threads append edges to a batch in arbitrary order.  The
sort removes that, since no two edges are equal in its order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Team,
    atomic_add,
    barrier,
    crew,
    device,
    interrupted,
    kernel,
    next_chunk,
    share,
    stopping,
)
from matchwood.matching.cpu import WeightedRows, block_sums, matched_weight, rows_of, sum_blocks
from matchwood.matching.methods import EngineMatching
from matchwood.primitives.edge_order.cpu import order_edges, prefers
from matchwood.primitives.patterns import not_symmetric
from matchwood.primitives.sort.cpu import sort_pairs

Array = np.ndarray[Any, Any]
CHUNK = 512  # vertices that a thread takes at a time
BUFFER = 256  # edges that a thread collects before it appends them to the shared batch
SAMPLED_WEIGHTS = 16384  # weights; the ranges are chosen from them
FIRST_EDGES_PER_VERTEX = 0.5  # edges of the first batch per vertex (bench/matching/weighted.py)
GROWTH = 2.5  # factor by which the fraction of edges covered grows from batch to batch
LEADING_BITS = 24  # bits; they take three passes of the radix sort
LONGEST_RUN = 16  # edges; where more agree in the leading bits, all bits are sorted


class Batch(NamedTuple):
    ends: Array  # (2, room)
    weights: Array  # (room,)
    tail: Array  # (1,): their number


class Buffers(NamedTuple):
    """Edges that threads have found and not yet moved to the batch."""

    ends: Array  # (threads, 2, BUFFER)
    weights: Array  # (threads, BUFFER)


@device
def _append(
    edges: Array, weights: Array, count: int, batch: Array, heavy: Array, tail: Array
) -> int:
    """Move a thread's `count` edges to the batch; returns 0, the new count.

    Edges without room are counted, not moved; a symmetric pattern has room for all.
    """
    start = np.uint64(atomic_add(tail, 0, count))
    if start + np.uint64(count) > np.uint64(heavy.size):
        return 0
    for i in range(np.uint64(count)):
        batch[0, start + i] = edges[0, i]
        batch[1, start + i] = edges[1, i]
        heavy[start + i] = weights[i]
    return 0


@kernel
def _collect(
    team: Team, rows: WeightedRows, mate: Array, low: Any, high: Any, batch: Batch,
    buffers: Buffers, most: Array,
) -> None:  # fmt: skip
    """Append every edge of weight low <= w < high between free vertices to the batch.

    most[member] becomes the largest weight that this thread found.  Rows are sorted, so neighbours
    with a larger number than u are at the end of its row.
    """
    n = mate.size
    free = ~mate.dtype.type(0)
    indptr, indices, weights = rows
    ends, heavy, tail = batch
    mine, mine_weights = buffers.ends[team.me], buffers.weights[team.me]
    count, largest = 0, low
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for i in range(np.uint64(chunk), np.uint64(min(chunk + CHUNK, n))):
            if mate[i] != free:
                continue
            start, k = np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])
            while k > start:
                k -= np.uint64(1)
                v = indices[k]
                if v < i:
                    break
                w = weights[k]
                if low <= w < high and mate[v] == free:
                    mine[0, np.uint64(count)] = i
                    mine[1, np.uint64(count)] = v
                    mine_weights[np.uint64(count)] = w
                    largest = max(largest, w)
                    count += 1
                    if count == BUFFER:
                        count = _append(mine, mine_weights, count, ends, heavy, tail)
        chunk = next_chunk(team, n, CHUNK)
    _append(mine, mine_weights, count, ends, heavy, tail)
    most[team.me, 0] = largest


@kernel
def _leading_bits(team: Team, heavy: Array, top: Any, shift: Any, keys: Array) -> None:
    """Set keys = top minus weight, in units of 2^shift."""
    lo, hi = share(team, heavy.size)
    source, target = heavy[lo:hi], keys[lo:hi]
    for i in range(source.size):
        target[i] = np.uint32((top - source[i]) >> shift)


@kernel
def _count_long_runs(team: Team, keys: Array, sums: Array) -> None:
    """sums[member] = keys of this thread that are equal to the key LONGEST_RUN places before."""
    lo, hi = share(team, keys.size)
    lo = max(lo, LONGEST_RUN)
    long = 0
    if lo < hi:
        late, early = keys[lo:hi], keys[lo - LONGEST_RUN : hi - LONGEST_RUN]
        for i in range(late.size):
            long += late[i] == early[i]
    sums[team.me] = long


@kernel
def _sort_ties(
    team: Team, keys: Array, perm: Array, batch: Array, heavy: Array, seed: Any, by_hash: bool
) -> None:
    """Sort short runs of equal keys by insertion; the thread in whose part a run begins does it."""
    lo, hi = share(team, keys.size)
    while 0 < lo < hi and keys[lo] == keys[lo - 1]:
        lo += 1
    if lo >= hi:
        return
    i = lo + 1
    while i < keys.size and (i < hi or keys[i] == keys[i - 1]):
        if keys[i] == keys[i - 1]:
            e = perm[i]
            j = i
            while (
                j > 0
                and keys[j - 1] == keys[i]
                and prefers(
                    heavy[e], batch[0, e], batch[1, e],
                    heavy[perm[j - 1]], batch[0, perm[j - 1]], batch[1, perm[j - 1]],
                    seed, by_hash,
                )
            ):  # fmt: skip
                perm[j] = perm[j - 1]
                j -= 1
            perm[j] = e
        i += 1
        if interrupted(team, i):
            return


@kernel
def _take(team: Team, perm: Array, batch: Array, heavy: Array, mate: Array, matched: Array) -> None:
    """Go through the edges of the batch in order, and take each whose ends are both free."""
    free = ~mate.dtype.type(0)
    if team.me > 0:
        return
    for i in range(perm.size):
        if interrupted(team, i):
            return
        e = np.uint64(perm[i])
        u, v = batch[0, e], batch[1, e]
        if (mate[u] == free) & (mate[v] == free):
            mate[u], mate[v] = v, u
            matched[u] = matched[v] = heavy[e]


@kernel
def _total(team: Team, weight: Array, sums: Array) -> None:
    if stopping(team) or barrier(team):
        return
    sum_blocks(team, weight, sums)


def _ranges(weights: Array, n: int) -> list[int]:
    """Least weights (as integers) of the batches, descending; the last is 0."""
    m = weights.size
    if m == 0:
        return []
    sample = np.sort(weights[:: max(1, m // SAMPLED_WEIGHTS)])
    part, bounds = FIRST_EDGES_PER_VERTEX * n / (m / 2), []
    while part < 1:
        bounds.append(int(sample[int((1 - part) * sample.size)]))
        part *= GROWTH
    return [*dict.fromkeys(bounds), 0]


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    n, kind, bits = view.n, view.indices.dtype, np.dtype(f"i{view.data.dtype.itemsize}")
    rows = rows_of(view)
    unsigned = rows.indices.dtype
    team = crew(threads, work=view.nnz + n)
    mate, weight = np.full(n, -1, kind), np.zeros(n, view.data.dtype)
    batch = np.empty((2, view.nnz // 2), unsigned)  # pages that are never written cost nothing
    heavy = np.empty(view.nnz // 2, bits)
    buffers = Buffers(
        np.empty((team.size, 2, BUFFER), unsigned), np.empty((team.size, BUFFER), bits)
    )
    most, tail = np.zeros((team.size, 16), bits), np.zeros(1, np.int64)
    ranges, high = _ranges(rows.weights, n), bits.type(np.iinfo(bits).max)
    for low in map(bits.type, ranges):
        tail[0] = 0
        team.run(
            _collect, rows, mate.view(unsigned), low, high, Batch(batch, heavy, tail), buffers, most
        )
        high = low
        size = int(tail[0])
        if size > heavy.size:
            raise not_symmetric("weighted_matching")
        if size:
            found = heavy[:size]
            perm = _order(batch, found, most[:, 0].max(), low, seed, by_hash, team, threads)
            team.run(_take, perm, batch, found, mate.view(unsigned), weight.view(bits))
    sums = block_sums(n)
    team.run(_total, weight, sums)
    return EngineMatching(mate, matched_weight(sums), len(ranges))


def _order(
    batch: Array, heavy: Array, top: Any, low: Any, seed: int, by_hash: bool, team: Any,
    threads: int | None,
) -> Array:  # fmt: skip
    shift = max(0, int(top - low).bit_length() - LEADING_BITS)
    keys = np.empty(heavy.size, np.uint32)
    team.run(_leading_bits, heavy, top, heavy.dtype.type(shift), keys)
    keys, perm = sort_pairs(keys, threads=threads)
    sums = np.zeros(team.size, np.int64)
    team.run(_count_long_runs, keys, sums)
    if sums.any():
        u, v = batch.view(f"i{batch.dtype.itemsize}")[:, : heavy.size]
        weights = heavy.view(f"f{heavy.dtype.itemsize}")
        return order_edges(u, v, weights, seed=seed, by_hash=by_hash, threads=threads)
    team.run(_sort_ties, keys, perm, batch, heavy, np.uint64(seed), by_hash)
    return perm
