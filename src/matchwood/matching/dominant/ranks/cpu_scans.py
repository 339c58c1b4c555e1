"""Scans of the rows of a block for its candidates.  Read cpu_blocks.py first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import device, expanded
from matchwood.engines.ranks.grid import GridShape
from matchwood.matching.cpu_rows import Ties
from matchwood.matching.dominant.ranks.cpu_records import nobody
from matchwood.primitives.edge_order.cpu import rank_in_row

Array = np.ndarray[Any, Any]

SHORT_ROW = 32  # entries; longer rows are faster with branches, see suitor/cpu.py
STRETCH = 64  # entries of a long row that are compared with its largest weight together


class Block(NamedTuple):
    """A rank's entries, by local ids."""

    indptr: Array
    indices: Array
    weights: Array
    names: Array  # of local vertices
    shape: GridShape  # the grid's ids of columns follow from it
    renamed: bool  # they differ: records have both


class Rows(NamedTuple):
    """What a rank knows about the vertices of its block."""

    taken: Array  # uint64, a bit for each local vertex: so few bytes stay in the cache
    waiting: Array  # (local vertices) the first row that waits for this column, or nobody; empty
    # before there are lists
    following: Array  # (rows) the next row of the list that a row is in; before: its candidate
    free: Array  # (rows) before there are lists: of each PASS rows those that may need a candidate
    counts: Array  # how many these are


@expanded
def taken_bit(taken: Array, v: Any) -> Any:
    """1 where local vertex v is taken, else 0."""
    x = np.uint64(v)
    return (taken[x >> np.uint64(6)] >> (x & np.uint64(63))) & np.uint64(1)


@expanded
def is_taken(taken: Array, v: Any) -> bool:
    return bool(taken_bit(taken, v) != np.uint64(0))


@device
def _first_among_ties(
    block: Block, start: Any, end: Any, u: Any, taken: Array, ties: Ties
) -> Any:  # fmt: skip
    """As `first_free`, for rows with equal weights: by rank, then the smaller name."""
    indices, weights, names = block.indices, block.weights, block.names
    seed, by_hash = ties
    mine = names[u]
    best, best_w, best_rank = nobody(indices), weights.dtype.type(0), np.uint64(0)
    ranked = False
    for k in range(start, end):
        v, w, rank = indices[k], weights[k], np.uint64(0)
        if w < best_w or is_taken(taken, v):
            continue
        tied = w == best_w
        if tied:
            if not ranked:
                best_rank, ranked = rank_in_row(mine, names[best], seed, by_hash), True
            rank = rank_in_row(mine, names[v], seed, by_hash)
            if rank < best_rank or (rank == best_rank and names[v] > names[best]):
                continue
        best, best_w, best_rank, ranked = v, w, rank, tied
    return best, best_w


@expanded
def first_free(block: Block, u: Any, taken: Array, ties: Ties) -> Any:
    """The free column along u's first edge of the block, and the weight; or nobody and 0."""
    indptr, indices, weights = block.indptr, block.indices, block.weights
    at: Any = np.uint64(0)
    best_w, tied = weights.dtype.type(0), False
    start, end = np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)])
    if end - start <= np.uint64(SHORT_ROW):
        for k in range(start, end):  # no branches: none of them could be predicted
            # of a column that is taken the weight is negative
            w = weights.dtype.type(
                weights[k] | weights.dtype.type(-np.int64(taken_bit(taken, indices[k])))
            )
            tied |= w == best_w
            at, best_w = (k if w > best_w else at), max(w, best_w)
    else:
        for k in range(start, end):
            w = weights[k]
            if w >= best_w and not is_taken(taken, indices[k]):
                tied |= w == best_w
                at, best_w = k, w
    if tied:
        return _first_among_ties(block, start, end, u, taken, ties)
    best = indices[at]  # of any row, where this one has none
    return (best if best_w > weights.dtype.type(0) else nobody(indices)), best_w


@device
def _heaviest(part: Array) -> Any:
    """The largest weight; LLVM compares several at a time."""
    best = part.dtype.type(0)
    for k in range(part.size):
        best = max(best, part[k])
    return best


@device
def _how_many(part: Array, w: Any) -> Any:
    """How many weights are w; likewise."""
    count = part.dtype.type(0)
    for k in range(part.size):
        count += part.dtype.type(part[k] == w)
    return count


@expanded
def _first_of_long(weights: Array, start: Any, end: Any) -> Any:
    """Where the largest weight of a row is, that weight, and whether there are several."""
    best_w = _heaviest(weights[start:end])
    at, found = start, np.int64(0)
    for k in range(start, end, np.uint64(STRETCH)):
        here = _how_many(weights[k : min(k + np.uint64(STRETCH), end)], best_w)
        at = k if here else at
        found += here
    while weights[at] != best_w:
        at += np.uint64(1)
    return at, best_w, found > 1


@expanded
def first_of_all(block: Block, u: Any, taken: Array, ties: Ties) -> Any:
    """`first_free` for the first round, when all vertices are free: only weights are read."""
    indptr, indices, weights = block.indptr, block.indices, block.weights
    at: Any = np.uint64(0)
    best_w, tied = weights.dtype.type(0), False
    start, end = np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)])
    if end - start <= np.uint64(SHORT_ROW):
        for k in range(start, end):
            w = weights[k]
            tied |= w == best_w
            at, best_w = (k if w > best_w else at), max(w, best_w)
    else:
        at, best_w, tied = _first_of_long(weights, start, end)
    if tied:
        return _first_among_ties(block, start, end, u, taken, ties)
    return (indices[at] if start < end else nobody(indices)), best_w
