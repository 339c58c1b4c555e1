"""A level of a search bottom up, where vertices lie in stripes.  Read stripes.py and cpu_told.py.

Open rows look for their first column in the frontier, which is the smallest.  In most rows that is
one of the first entries, and the first entries of all rows lie together, by place: on R-MAT 22 one
row in a hundred is read from its own place, and these are called for many at a time.

Columns are known by their positions in the column group, from which their names follow, and the
frontier is a bitmap by position.  No races: a member takes whole words of places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.dist.grid import GridShape
from matchwood.dist.grid.cpu import ONE
from matchwood.primitives.cpu_hints import count_ones, prefetch, trailing_zeros
from matchwood.teams import barrier, crew, device, expanded, interrupted, kernel, next_chunk, share
from matchwood.traversal.breadth_first.dist.cpu_offers import WORDS, Found, Offers, offer_rows
from matchwood.traversal.breadth_first.dist.cpu_told import (
    NONE,
    WORD,
    Gaps,
    Heard,
    Names,
    close,
    column_name,
    column_position,
    set_columns,
)

Array = np.ndarray[Any, Any]

HEADS = np.uint64(3)  # entries of a row that lie together with those of others


class Inward(NamedTuple):
    """The rows of a block of the transpose.

    The first entries of the rows that have some lie together, by stripe and place, as positions
    of columns; those of the rows of word w of stripe s begin at starts[s, w].
    """

    indptr: Array
    indices: Array
    full: Array  # (C, words) bits by place: rows that have entries
    longer: Array  # (C, words) those that have more than HEADS
    starts: Array  # (C, words)
    heads: Array  # (HEADS, rows that have entries); the last one again where there are fewer


class Near(NamedTuple):
    """What a member notes of the rows of a chunk, by place from its first one."""

    entries: Array  # the entry that was tried last, as the position of a column
    late: Array  # rows whose other entries must be tried


class Told(NamedTuple):
    """What the ranks of the row and of the column told."""

    rows: Heard
    columns: Heard


@kernel
def _take_heads(team: Any, rows: Inward, shape: GridShape) -> None:
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
                last = np.uint64(rows.indptr[v + ONE]) - ONE
                for i in range(HEADS):
                    u = rows.indices[min(begin + np.uint64(i), last)]
                    rows.heads[i, at] = column_position(shape, u)
                longer |= np.uint64(begin + HEADS <= last) << b
                at += ONE
            rows.longer[s, w] = longer


def with_heads(
    indptr: Array, indices: Array, full: Array, shape: GridShape, threads: int | None
) -> Inward:
    """The rows of a block; `full` has the bits of those that have entries."""
    starts = np.zeros(full.size + 1, indices.dtype)
    np.cumsum(np.unpackbits(full.view(np.uint8)).reshape(-1, WORD).sum(1), out=starts[1:])
    heads = np.empty((int(HEADS), int(starts[-1])), indices.dtype)
    starts = starts[:-1].reshape(full.shape)
    rows = Inward(indptr, indices, full, np.empty_like(full), starts, heads)
    crew(threads, work=8 * heads.size).run(_take_heads, rows, shape)
    return rows


@expanded
def _is_in(frontier: Array, position: Any) -> Any:
    """1 where a column is in the frontier, else 0."""
    k = np.uint64(position)
    return (frontier[k >> np.uint64(6)] >> (k & np.uint64(63))) & ONE


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
        hit = _try_head(frontier, rows.heads[0], start, full[w], left, entries)
        for i in range(ONE, HEADS):
            hit |= _try_head(frontier, rows.heads[i], start, full[w], left & ~hit, entries)
        bits[w] = hit
        left &= ~hit & longer[w]
        while left != NONE:
            near.late[late] = np.uint64(base) + trailing_zeros(left)
            left &= left - ONE
            late += ONE
    return late


@expanded
def _try_others(
    rows: Inward, frontier: Array, shape: GridShape, base: Any, late: Array, bits: Array, near: Near
) -> None:
    """The other entries of the rows that are listed; first all rows are called for.

    The row of place k of the chunk is base + k C.
    """
    for i in range(late.size):
        prefetch(rows.indices, np.uint64(rows.indptr[base + late[i] * shape.C]) + HEADS)
    for i in range(late.size):
        k = np.uint64(late[i])
        v = base + k * shape.C
        for at in range(np.uint64(rows.indptr[v]) + HEADS, np.uint64(rows.indptr[v + ONE])):
            u = column_position(shape, rows.indices[at])
            if _is_in(frontier, u) != NONE:
                near.entries[k] = u
                bits[k >> np.uint64(6)] |= ONE << (k & np.uint64(63))
                break


@expanded
def _write_parents(names: Names, bits: Array, entries: Array, parents: Array) -> Any:
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
        _try_others(rows, frontier, names.shape, base, late, bits, near)
        parents = found.parents[s, first * WORD : end * WORD]
        found.counts[s, chunk] = _write_parents(names, bits, near.entries, parents)
        for w in range(first, end):
            open[s, w] &= ~found.bits[s, w]
        taken = next_chunk(team, stripes * chunks, 1)


@kernel
def bottom_up(
    team: Any, told: Told, rows: Inward, open: Array, names: Names, gaps: Gaps, frontier: Array,
    found: Found, offers: Offers,
) -> None:  # fmt: skip
    """Open rows look for what the ranks of the column told; a message for each owner."""
    lo, hi = share(team, frontier.size)
    frontier[lo:hi] = NONE
    close(team, told.rows, open)
    if barrier(team):
        return
    set_columns(team, told.columns, gaps, frontier)
    if barrier(team):
        return
    search_rows(team, rows, frontier, names, open, found)
    if barrier(team):
        return
    offer_rows(team, found, offers)
