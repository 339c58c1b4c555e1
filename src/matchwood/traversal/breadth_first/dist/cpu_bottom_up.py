"""A level of a search bottom up, where vertices lie in stripes.  Read stripes.py and cpu_told.py.

Open rows look for their first column in the frontier, which is the smallest.  For about half of
them that is the first entry of the row, and the first entries of all rows lie together, by place.
So only the rows of the others are read, which are prefetched one word of places ahead.

No races: a member takes whole words of places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.dist.grid.cpu import ONE
from matchwood.primitives.cpu_hints import count_ones, prefetch, trailing_zeros
from matchwood.teams import barrier, crew, device, expanded, interrupted, kernel, next_chunk, share
from matchwood.traversal.breadth_first.dist.cpu_offers import WORDS, Found, Offers, offer_rows
from matchwood.traversal.breadth_first.dist.cpu_told import (
    NONE,
    WORD,
    Columns,
    Gaps,
    Heard,
    Names,
    close,
    column_name,
    set_columns,
)

Array = np.ndarray[Any, Any]

HEADS = np.uint64(2)  # entries of a row that lie together with those of others


class Inward(NamedTuple):
    """The rows of a block of the transpose.

    The first two entries of the rows that have some lie together, by stripe and place; those of
    the rows of word w of stripe s begin at starts[s, w].
    """

    indptr: Array
    indices: Array
    full: Array  # (C, words) bits by place: rows that have entries
    longer: Array  # (C, words) those that have more than two
    starts: Array  # (C, words)
    first: Array
    second: Array  # the first again where there is no other


class Near(NamedTuple):
    """What a member notes of the rows of a chunk, by place from its first one."""

    entries: Array  # the entry that was tried last
    late: Array  # rows whose other entries must be tried


class Told(NamedTuple):
    """What the ranks of the row and of the column told."""

    rows: Heard
    columns: Heard


@kernel
def _take_heads(team: Any, rows: Inward) -> None:
    """The first entries of rows, and which rows are longer.  A member has words of its own."""
    stripes, words = rows.full.shape
    lo, hi = share(team, words)
    for s in range(stripes):
        if interrupted(team, 0):
            return
        for w in range(lo, hi):
            left, longer, at = rows.full[s, w], NONE, np.uint64(rows.starts[s, w])
            while left != NONE:
                b = trailing_zeros(left)
                left &= left - ONE
                v = _row(w, b, s, stripes)
                begin = np.uint64(rows.indptr[v])
                size = np.uint64(rows.indptr[v + ONE]) - begin
                rows.first[at] = rows.indices[begin]
                rows.second[at] = rows.indices[begin + min(size - ONE, ONE)]
                longer |= np.uint64(size > HEADS) << b
                at += ONE
            rows.longer[s, w] = longer


def with_heads(indptr: Array, indices: Array, full: Array, threads: int | None) -> Inward:
    """The rows of a block; `full` has the bits of those that have entries."""
    sizes = np.bitwise_count(full).astype(indices.dtype)
    starts = np.zeros(full.size + 1, indices.dtype)
    np.cumsum(sizes.ravel(), out=starts[1:])
    first, second = (np.empty(int(starts[-1]), indices.dtype) for _ in range(2))
    starts = starts[:-1].reshape(full.shape)
    rows = Inward(indptr, indices, full, np.empty_like(full), starts, first, second)
    crew(threads, work=8 * first.size).run(_take_heads, rows)
    return rows


@expanded
def _is_in(frontier: Array, u: Any) -> Any:
    """1 where column u is in the frontier, else 0."""
    v = np.uint64(u)
    return (frontier[v >> np.uint64(6)] >> (v & np.uint64(63))) & ONE


@expanded
def _row(w: int, b: Any, s: int, stripes: int) -> Any:
    """The row of bit b of word w of stripe s."""
    return np.uint64((w * WORD + np.int64(b)) * stripes + s)


@expanded
def _try_head(
    frontier: Array, head: Array, start: Any, full: Any, open: Any, entries: Array
) -> Any:
    """Bits of the open rows of a word that have this entry in the frontier.

    entries[b] is the entry of the row of bit b.  No branch asks for the answer.
    """
    bits = NONE
    while open != NONE:
        b = trailing_zeros(open)
        open &= open - ONE
        u = head[start + count_ones(full & ((ONE << b) - ONE))]
        entries[b] = u
        bits |= _is_in(frontier, u) << b
    return bits


@expanded
def _try_heads(
    rows: Inward, frontier: Array, open: Array, s: int, chunk: Any, bits: Array, near: Near
) -> Any:
    """Which rows of a chunk have one of their first entries in the frontier; `bits` tells.

    Longer rows that have none are listed; returns how many.
    """
    first, end = chunk
    full, longer = rows.full[s, first:end], rows.longer[s, first:end]
    starts, open = rows.starts[s, first:end], open[s, first:end]
    late = NONE
    for w in range(open.size):
        left = open[w]
        if left == NONE:
            bits[w] = NONE
            continue
        base = w * WORD
        start, entries = np.uint64(starts[w]), near.entries[base : base + WORD]
        hit = _try_head(frontier, rows.first, start, full[w], left, entries)
        hit |= _try_head(frontier, rows.second, start, full[w], left & ~hit, entries)
        bits[w] = hit
        left &= ~hit & longer[w]
        while left != NONE:
            near.late[late] = np.uint64(base) + trailing_zeros(left)
            left &= left - ONE
            late += ONE
    return late


@expanded
def _try_others(
    rows: Inward, frontier: Array, base: Any, stripes: Any, late: Array, bits: Array, near: Near
) -> None:
    """The other entries of the rows that are listed; first all rows are called for.

    The row of place k of the chunk is base + k * stripes.
    """
    for i in range(late.size):
        prefetch(rows.indices, np.uint64(rows.indptr[base + late[i] * stripes]) + HEADS)
    for i in range(late.size):
        k = np.uint64(late[i])
        v = base + k * stripes
        for at in range(np.uint64(rows.indptr[v]) + HEADS, np.uint64(rows.indptr[v + ONE])):
            u = rows.indices[at]
            if _is_in(frontier, u) != NONE:
                near.entries[k] = u
                bits[k >> np.uint64(6)] |= ONE << (k & np.uint64(63))
                break


@expanded
def _write_parents(names: Names, bits: Array, entries: Array, parents: Array) -> int:
    """The parents of the rows of a chunk that were found; returns their number."""
    kind, at = parents.dtype.type, NONE
    for w in range(bits.size):
        left, near = bits[w], entries[w * WORD : (w + 1) * WORD]
        while left != NONE:
            parents[at] = kind(column_name(names, near[trailing_zeros(left)]))
            left &= left - ONE
            at += ONE
    return np.int64(at)


@device
def search_rows(
    team: Any, rows: Inward, frontier: Array, names: Names, open: Array, found: Found
) -> None:
    """Members take words of one stripe at a time."""
    stripes, words = open.shape
    chunks = found.counts.shape[1]
    near = Near(found.entries[team.rank], found.late[team.rank])
    taken = next_chunk(team, stripes * chunks, 1)
    while taken >= 0:
        s, chunk = taken // chunks, taken % chunks
        first, end = chunk * WORDS, min((chunk + 1) * WORDS, words)
        bits = found.bits[s, first:end]
        late = near.late[: _try_heads(rows, frontier, open, s, (first, end), bits, near)]
        base = np.uint64(first * WORD * stripes + s)
        _try_others(rows, frontier, base, np.uint64(stripes), late, bits, near)
        parents = found.parents[s, first * WORD : end * WORD]
        found.counts[s, chunk] = _write_parents(names, bits, near.entries, parents)
        for w in range(first, end):
            open[s, w] &= ~found.bits[s, w]
        taken = next_chunk(team, stripes * chunks, 1)


@kernel
def bottom_up(
    team: Any, told: Told, rows: Inward, open: Array, names: Names, columns: Columns, gaps: Gaps,
    frontier: Array, found: Found, offers: Offers,
) -> None:  # fmt: skip
    """Open rows look for what the ranks of the column told; a message for each owner."""
    lo, hi = share(team, frontier.size)
    frontier[lo:hi] = NONE
    close(team, told.rows, open)
    if barrier(team):
        return
    set_columns(team, told.columns, gaps, names.shape.r, frontier)
    if barrier(team):
        return
    for w in range(lo, hi):
        columns.seen[w] |= frontier[w]
    search_rows(team, rows, frontier, names, open, found)
    if barrier(team):
        return
    offer_rows(team, found, offers)
