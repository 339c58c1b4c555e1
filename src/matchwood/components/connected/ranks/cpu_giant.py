"""The rows that a sample left, in a block whose pattern need not be symmetric.  See giant.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.components.connected.cpu import CHUNK, join_ends
from matchwood.engines.cpu import (
    barrier,
    crew,
    device,
    interrupted,
    kernel,
    next_chunk,
    share,
)
from matchwood.engines.cpu.hints import prefetch, trailing_zeros
from matchwood.engines.ranks.grid import GridShape
from matchwood.engines.ranks.grid.cpu import column_place, row_id
from matchwood.primitives.number.cpu import number_roots
from matchwood.primitives.union_find.cpu import compress

Array = np.ndarray[Any, Any]

WORD = 64  # places whose bits are in one word


class Bits(NamedTuple):
    """Known vertices of the row group and of the column group: (ranks, words)."""

    rows: Array
    columns: Array


class Pairs(NamedTuple):
    """Edges that a member found, as the grid numbers vertices; a row for each member."""

    highs: Array
    lows: Array
    counts: Array


def _unsigned(view: Any) -> Any:
    return np.uint32 if view.indptr.dtype == np.int32 else np.uint64


@device
def _row(
    u: Any, indptr: Array, indices: Array, grid: GridShape, columns: Array, pairs: Pairs, rank: int
) -> bool:
    """Whether row u has a known column; its other edges, from their larger ends, become pairs."""
    touches, low = False, np.uint64(WORD - 1)
    one = row_id(grid, u)  # as the grid numbers it
    for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
        r, place = column_place(grid, indices[k])
        if (columns[r, place // np.uint64(WORD)] >> (place & low)) & np.uint64(1) != np.uint64(0):
            touches = True
            continue
        other = (place * grid.R + r) * grid.C + grid.c
        if other < one and pairs.counts[rank] < pairs.highs.shape[1]:
            pairs.highs[rank, pairs.counts[rank]] = one
            pairs.lows[rank, pairs.counts[rank]] = other
            pairs.counts[rank] += 1
    return touches


@kernel
def _leave(
    team: Any, indptr: Array, indices: Array, grid: GridShape, full: Array, known: Bits,
    touched: Array, pairs: Pairs,
) -> None:  # fmt: skip
    """All rows but those of known vertices.  A member stops when its pairs are too many.

    `full` are the bits of rows that have entries.  The rows of the next word are prefetched.
    """
    parts = known.rows.shape[0]
    lo, hi = share(team, known.rows.shape[1])
    for w in range(lo, hi):
        if interrupted(team, w):
            return
        for part in range(parts):
            ahead = np.uint64(0)
            if w + 1 < hi:
                ahead = full[part, w + 1] & ~known.rows[part, w + 1]
            while ahead != np.uint64(0):
                b = trailing_zeros(ahead)
                ahead &= ahead - np.uint64(1)
                u = np.uint64(((w + 1) * WORD + np.int64(b)) * parts + part)
                prefetch(indices, np.uint64(indptr[u]))
            left = full[part, w] & ~known.rows[part, w]
            bits = np.uint64(0)
            while left != np.uint64(0):
                b = trailing_zeros(left)
                left &= left - np.uint64(1)
                u = np.uint64((w * WORD + np.int64(b)) * parts + part)
                if _row(u, indptr, indices, grid, known.columns, pairs, team.rank):
                    bits |= np.uint64(1) << np.uint64(b)
            touched[part, w] = bits
        if pairs.counts[team.rank] >= pairs.highs.shape[1]:
            return


def leave(
    view: Any, full: Array, known: Any, grid: Any, most: int, threads: int | None
) -> tuple[Array, tuple[Array, Array] | None]:
    """(C, words) bits of rows that have a known column; and pairs of the other edges.

    `full` are the bits of rows that have entries.  Rows of known vertices are not read.  The pairs
    are None where they are more than `most`.
    """
    kind = _unsigned(view)
    team = crew(threads, work=2 * grid.n_rows)
    touched = np.zeros_like(known.rows)
    highs, lows = (np.empty((team.size, most + 1), np.int64) for _ in range(2))
    pairs = Pairs(highs, lows, np.zeros(team.size, np.int64))
    bits = Bits(known.rows, known.columns)
    indices = view.indices.view(kind)
    team.run(_leave, view.indptr, indices, grid.shape, full, bits, touched, pairs)
    if pairs.counts.max() > most:
        return touched, None
    found = [
        np.concatenate([row[:size] for row, size in zip(rows, pairs.counts, strict=True)])
        for rows in (highs, lows)
    ]
    return touched, (found[0], found[1])


@kernel
def _join_rest(
    team: Any, indptr: Array, indices: Array, known: Array, root: Any, parent: Array,
    labels: Array, sums: Array,
) -> None:  # fmt: skip
    """All entries but those of the rows of `known` vertices, which are one component."""
    n = parent.size
    lo, hi = share(team, n)
    for v in range(lo, hi):
        parent[v] = root if known[v] else v
    if barrier(team):
        return
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for v in range(chunk, min(chunk + CHUNK, n)):
            if interrupted(team, v):
                return
            if known[v]:
                continue
            for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
                join_ends(parent, parent.dtype.type(v), indices[k])
        chunk = next_chunk(team, n, CHUNK)
    if barrier(team):
        return
    compress(parent, lo, hi)
    if barrier(team):
        return
    number_roots(team, parent, labels, sums)


def join_rest(view: Any, known: Array, threads: int | None) -> Array:
    """Labels of the trees of a block.

    `known` vertices are one component.  Their rows are not read: where the pattern of the whole
    matrix is symmetric, every edge that leaves that component is stored at its other end too.
    """
    labels = np.empty(view.n, view.indptr.dtype)
    if view.n == 0:
        return labels
    parent = np.empty(view.n, _unsigned(view))
    team = crew(threads, work=view.nnz + view.n)
    sums = np.zeros(team.size + 1, np.int64)
    root = parent.dtype.type(known.argmax())  # the first
    team.run(_join_rest, view.indptr, view.indices.view(parent.dtype), known, root, parent, labels,
             sums)  # fmt: skip
    return labels
