"""What the methods share on the CPU: rows, the first edge of a row, the weight of a matching.

The first edge of a row, in the order of primitives/edge_order, is looked for among the neighbours
that accept it.  What a neighbour accepts is decided by the method, which passes its state with
three functions:

    accept(state, v, w)           w where v accepts an edge of that weight, a negative number where
                                  it does not; and whether the order of edges must decide
    takes(state, v, u, w, ties)   that decision, for the edge {u, v}
    name(state, v)                the number of v that breaks ties

In a long row most entries cost one comparison with the best weight so far, and only those that pass
it read anything of a neighbour.  A short row is scanned without branches: none of them could be
predicted.  These scans only notice that weights are equal; then the row is scanned again with the
full order of edges.  Weights are compared as integers: positive floats have the order of their
bits.  An integer comparison takes a fourth of the time of a float one, and in a scan each
comparison waits for the one before.

A processor prefetches a few ascending streams by itself.  The rows of a queue of vertices lie
anywhere in memory, and each begins with a cache miss.  Scanning the rows of a queue took half the
time when rows were fetched AHEAD places earlier (bench/matching/weighted.py, mesh 64^3 and
R-MAT 18).

The weight is the same to the last bit at any number of threads.  Each vertex has the weight of its
own edge, so every edge is counted twice.  Half of a sum is exact.  Blocks of a fixed size are
summed one by one, then their sums, so the order of additions depends neither on the number of
threads nor on the method.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, device, expanded, share
from matchwood.engines.cpu.hints import prefetch
from matchwood.primitives.edge_order.cpu import rank_in_row

Array = np.ndarray[Any, Any]
SHORT_ROW = 32  # entries; longer rows are faster with branches (bench/matching/weighted.py)
AHEAD = 8  # places in the queue; 4 and 16 measured the same
FETCHED_ENTRIES = 64  # entries of a row; after those the processor prefetches by itself
BLOCK = 4096  # vertices whose weights are summed one by one


class WeightedRows(NamedTuple):
    """The edges of a graph, for a kernel; vertices are unsigned there, weights as it needs them."""

    indptr: Array
    indices: Array
    weights: Array


class Ties(NamedTuple):
    """The tie-breaking rule for equal weights; see primitives/edge_order."""

    seed: Any  # np.uint64
    by_hash: bool


def rows_of(view: Any) -> WeightedRows:
    """The rows of a view as scans take them: weights are the bits of floats."""
    unsigned, bits = f"u{view.indices.dtype.itemsize}", f"i{view.data.dtype.itemsize}"
    return WeightedRows(
        view.indptr.view(unsigned), view.indices.view(unsigned), view.data.view(bits)
    )


@device
def begin(rows: Any, v: Any) -> Any:
    return np.uint64(rows.indptr[v])


@device
def end(rows: Any, v: Any) -> Any:
    return np.uint64(rows.indptr[v + rows.indptr.dtype.type(1)])


# The first edge of a row


@device
def itself(state: Any, v: Any) -> Any:
    """`name` for methods whose vertices have only one number."""
    return v


@device
def always(state: Any, v: Any, u: Any, w: Any, ties: Ties) -> bool:
    """`takes` for methods whose `accept` always decides."""
    return True


@expanded
def exact_first_edge(
    rows: WeightedRows, u: Any, none: Any, state: Any, accept: Any, takes: Any, name: Any,
    ties: Ties,
) -> Any:  # fmt: skip
    """`first_edge` in one scan, for rows with equal weights: by hash, then the smaller name."""
    indices, weights = rows.indices, rows.weights
    seed, by_hash = ties
    best, best_w, best_hash = none, weights.dtype.type(0), np.uint64(0)
    hashed = False
    for k in range(begin(rows, u), end(rows, u)):
        v, w, hash_ = indices[k], weights[k], np.uint64(0)
        if w < best_w:
            continue
        accepted, undecided = accept(state, v, w)
        if accepted < 0 and not undecided:
            continue
        tied = w == best_w
        if tied:
            mine, other = name(state, u), name(state, best)
            if not hashed:
                best_hash, hashed = rank_in_row(mine, other, seed, by_hash), True
            hash_ = rank_in_row(mine, name(state, v), seed, by_hash)
            if hash_ < best_hash or (hash_ == best_hash and name(state, v) > other):
                continue
        if undecided and not takes(state, v, u, w, ties):
            continue
        best, best_w, best_hash, hashed = v, w, hash_, tied
    return best, best_w


@device
def _first_among_ties(
    rows: WeightedRows, u: Any, none: Any, state: Any, accept: Any, takes: Any, name: Any,
    ties: Ties,
) -> Any:  # fmt: skip
    """`exact_first_edge`, not inlined: where ties are rare, inlined code would slow the rest."""
    return exact_first_edge(rows, u, none, state, accept, takes, name, ties)


@expanded
def first_edge(
    rows: WeightedRows, u: Any, none: Any, state: Any, accept: Any, takes: Any, name: Any,
    ties: Ties,
) -> Any:  # fmt: skip
    """The neighbour along the first edge of u that is accepted, and the weight; or `none` and 0."""
    indices, weights = rows.indices, rows.weights
    best, best_w = none, weights.dtype.type(0)
    tied = False
    start, stop = begin(rows, u), end(rows, u)
    if stop - start <= np.uint64(SHORT_ROW):
        for k in range(start, stop):
            v = indices[k]
            accepted, undecided = accept(state, v, weights[k])
            w = weights.dtype.type(accepted)
            tied |= undecided | (w == best_w)
            better = w > best_w
            best = v if better else best
            best_w = w if better else best_w
    else:
        for k in range(start, stop):
            if weights[k] >= best_w:
                v = indices[k]
                accepted, undecided = accept(state, v, weights[k])
                w = weights.dtype.type(accepted)
                tied |= undecided | (w == best_w)
                if w > best_w:
                    best, best_w = v, w
    if tied:
        best, best_w = _first_among_ties(rows, u, none, state, accept, takes, name, ties)
    return best, best_w


# Rows that are prefetched


@device
def prefetch_row(rows: WeightedRows, u: Any) -> None:
    """Prefetch the beginning of u's row, cache line by cache line of 64 bytes."""
    indices, weights = rows.indices, rows.weights
    start, stop = begin(rows, u), end(rows, u)
    stop = min(stop, start + np.uint64(FETCHED_ENTRIES))
    for k in range(start, stop, np.uint64(64 // weights.itemsize)):
        prefetch(weights, k)
    for k in range(start, stop, np.uint64(64 // indices.itemsize)):
        prefetch(indices, k)


@device
def prefetch_queued(rows: WeightedRows, queue: Array, i: int, size: int) -> None:
    """Prefetch the row of the vertex AHEAD places after i, and the indptr of that 2 AHEAD after."""
    if i + AHEAD < size:
        prefetch_row(rows, queue[i + AHEAD])
    if i + 2 * AHEAD < size:
        prefetch(rows.indptr, queue[i + 2 * AHEAD])


# The weight of a matching


def block_sums(n: int) -> Array:
    return np.zeros(-(-n // BLOCK), np.float64)


@device
def sum_blocks(team: Team, weights: Array, sums: Array) -> None:
    """sums[b] = the weights of block b; weights are final, and 0 for free vertices."""
    lo, hi = share(team, sums.size)
    for b in range(lo, hi):
        total = 0.0
        part = weights[b * BLOCK : min((b + 1) * BLOCK, weights.size)]
        for i in range(part.size):
            total += np.float64(part[i])
        sums[b] = total


def matched_weight(sums: Array) -> float:
    """The weight of the matching from the sums of blocks; infinite where twice it overflows."""
    with np.errstate(over="ignore"):
        return float(np.add.reduce(sums)) / 2
