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
from matchwood.primitives.cpu_hints import prefetch, trailing_zeros
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


class Inward(NamedTuple):
    """The rows of a block of the transpose."""

    indptr: Array
    indices: Array
    first: Array  # (C, places) the first entry of each row that has one


class Told(NamedTuple):
    """What the ranks of the row and of the column told."""

    rows: Heard
    columns: Heard


@kernel
def _first_entries(team: Any, indptr: Array, indices: Array, rows: int, first: Array) -> None:
    stripes = first.shape[0]
    lo, hi = share(team, first.shape[1])
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        for s in range(min(stripes, rows - k * stripes)):
            v = np.uint64(k * stripes + s)
            if indptr[v] < indptr[v + ONE]:
                first[s, k] = indices[np.uint64(indptr[v])]


def first_entries(indptr: Array, indices: Array, grid: Any, threads: int | None) -> Array:
    """(C, places) the first entry of each row of a block, by its place; 0 where there is none."""
    places = -(-grid.most_owned // WORD) * WORD
    first = np.zeros((grid.C, places), indices.dtype)
    crew(threads, work=grid.n_rows).run(_first_entries, indptr, indices, grid.n_rows, first)
    return first


@expanded
def _is_in(frontier: Array, u: Any) -> Any:
    """1 where column u is in the frontier, else 0."""
    v = np.uint64(u)
    return (frontier[v >> np.uint64(6)] >> (v & np.uint64(63))) & ONE


@expanded
def _try_first(
    rows: Inward, frontier: Array, open: Array, w: int, found: Found, near: Array
) -> None:
    """The rows of word w whose first entry is in the frontier; the others are on their way.

    near[s]: an entry for each place of the word.
    """
    stripes = open.shape[0]
    for s in range(stripes):
        left, bits = open[s, w], NONE
        first, into = rows.first[s, w * WORD : (w + 1) * WORD], near[s]
        while left != NONE:
            b = trailing_zeros(left)
            left &= left - ONE
            u = first[b]
            into[b] = u
            bits |= _is_in(frontier, u) << b
        found.bits[s, w] = bits
        left = open[s, w] & ~bits
        while left != NONE:
            v = np.uint64((w * WORD + np.int64(trailing_zeros(left))) * stripes + s)
            left &= left - ONE
            prefetch(rows.indices, np.uint64(rows.indptr[v]))


@expanded
def _try_others(
    rows: Inward, frontier: Array, names: Names, open: Array, w: int, chunk: int, found: Found,
    near: Array,
) -> None:  # fmt: skip
    """The rows of word w that were not found by their first entry; then parents of all found."""
    stripes, counts = open.shape[0], found.counts[chunk // WORDS]
    kind = found.parents.dtype.type
    for s in range(stripes):
        bits, entries = found.bits[s, w], near[s]
        left = open[s, w] & ~bits
        while left != NONE:
            b = trailing_zeros(left)
            v = np.uint64((w * WORD + np.int64(b)) * stripes + s)
            for k in range(np.uint64(rows.indptr[v]) + ONE, np.uint64(rows.indptr[v + ONE])):
                u = rows.indices[k]
                if _is_in(frontier, u) != NONE:
                    entries[b] = u
                    bits |= left & (~left + ONE)  # the lowest bit, which is v's
                    break
            left &= left - ONE
        found.bits[s, w] = bits
        open[s, w] &= ~bits
        at = np.uint64(chunk * WORD + counts[s])
        parents = found.parents[s]
        while bits != NONE:
            parents[at] = kind(column_name(names, entries[trailing_zeros(bits)]))
            bits &= bits - ONE
            at += ONE
        counts[s] = np.int64(at) - chunk * WORD


@device
def search_rows(
    team: Any, rows: Inward, frontier: Array, names: Names, open: Array, found: Found
) -> None:
    words = open.shape[1]
    near = found.near[team.rank]
    chunk = next_chunk(team, words, WORDS)
    while chunk >= 0:
        found.counts[chunk // WORDS, :] = 0
        end = min(chunk + WORDS, words)
        _try_first(rows, frontier, open, chunk, found, near[chunk % 2])
        for w in range(chunk, end):
            if w + 1 < end:
                _try_first(rows, frontier, open, w + 1, found, near[(w + 1) % 2])
            _try_others(rows, frontier, names, open, w, chunk, found, near[w % 2])
        chunk = next_chunk(team, words, WORDS)


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
