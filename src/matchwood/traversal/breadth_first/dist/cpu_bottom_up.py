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
    rows: Inward, frontier: Array, open: Array, s: int, words: Any, found: Found, near: Near
) -> Any:
    """The rows of these words that have one of their first entries in the frontier.

    Longer rows that have none are listed; returns how many.
    """
    first, end = words
    late = NONE
    for w in range(first, end):
        base = (w - first) * WORD
        entries = near.entries[base : base + WORD]
        start, full, left = np.uint64(rows.starts[s, w]), rows.full[s, w], open[s, w]
        bits = _try_head(frontier, rows.first, start, full, left, entries)
        bits |= _try_head(frontier, rows.second, start, full, left & ~bits, entries)
        found.bits[s, w] = bits
        left &= ~bits & rows.longer[s, w]
        while left != NONE:
            near.late[late] = np.uint64(base) + trailing_zeros(left)
            left &= left - ONE
            late += ONE
    return late


@expanded
def _try_others(
    rows: Inward, frontier: Array, s: int, first: int, late: Array, found: Found, near: Near
) -> None:
    """The other entries of the rows that are listed; first all rows are called for."""
    stripes, bits = np.uint64(found.bits.shape[0]), found.bits[s]
    base = np.uint64(first * WORD * found.bits.shape[0] + s)
    for i in range(late.size):
        prefetch(rows.indices, np.uint64(rows.indptr[base + late[i] * stripes]) + HEADS)
    for i in range(late.size):
        k = np.uint64(late[i])
        v = base + k * stripes
        for at in range(np.uint64(rows.indptr[v]) + HEADS, np.uint64(rows.indptr[v + ONE])):
            u = rows.indices[at]
            if _is_in(frontier, u) != NONE:
                near.entries[k] = u
                bits[np.uint64(first) + (k >> np.uint64(6))] |= ONE << (k & np.uint64(63))
                break


@expanded
def _write_parents(names: Names, s: int, words: Any, found: Found, near: Near) -> int:
    """The parents of the rows of these words that were found; returns their number."""
    first, end = words
    parents, kind = found.parents[s, first * WORD : end * WORD], found.parents.dtype.type
    at = NONE
    for w in range(first, end):
        entries, bits = near.entries[(w - first) * WORD : (w - first + 1) * WORD], found.bits[s, w]
        while bits != NONE:
            parents[at] = kind(column_name(names, entries[trailing_zeros(bits)]))
            bits &= bits - ONE
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
        late = _try_heads(rows, frontier, open, s, (first, end), found, near)
        _try_others(rows, frontier, s, first, near.late[:late], found, near)
        for w in range(first, end):
            open[s, w] &= ~found.bits[s, w]
        found.counts[s, chunk] = _write_parents(names, s, (first, end), found, near)
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
