"""A level of a search bottom up, where vertices lie in stripes.  Read stripes.py and cpu_told.py.

Open rows look for their first column in the frontier, which is the smallest.  In most rows that is
one of the first entries, and the first entries of all rows lie together, by place: on R-MAT 22 one
row in a hundred is read from its own place, and these are called for many at a time.

Columns are known by their bits in the frontier, from which their names follow.  Of the rows of a
chunk those that have entries are numbered, and open ones are known by their numbers meanwhile.

No races: a member takes whole words of places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, expanded, kernel, next_chunk, share
from matchwood.engines.cpu.hints import (
    count_ones,
    deposited,
    extracted,
    prefetch,
    trailing_zeros,
)
from matchwood.engines.ranks.grid.cpu import ONE
from matchwood.traversal.breadth_first.ranks.cpu_offers import (
    WORDS,
    Found,
    Offers,
    offer_rows,
    parents_begin,
)
from matchwood.traversal.breadth_first.ranks.cpu_told import (
    NONE,
    WORD,
    Heard,
    Names,
    close,
    column_bit,
    column_name,
    set_columns,
)

Array = np.ndarray[Any, Any]

HEADS = np.uint64(3)  # entries of a row that lie together with those of others
MANY = np.uint64(16)  # open rows of 64; with more, all are tried
SIX, LOW = np.uint64(6), np.uint64(63)


class Inward(NamedTuple):
    """The rows of a block of the transpose.

    The rows of a chunk that have entries are numbered by place.  Their first entries lie together,
    as bits of the frontier, from starts[s, chunk] on, a multiple of 64.
    """

    indptr: Array
    indices: Array
    full: Array  # (C, words) bits by place: rows that have entries
    starts: Array  # (C, chunks)
    heads: Array  # (HEADS, numbers); the last one again where there are fewer
    longer: Array  # bits by number: rows that have more than HEADS


class Near(NamedTuple):
    """What a member notes of the rows of a chunk."""

    bits: Array  # (2, WORDS + 1) by number: those that are open; those that are found
    entries: Array  # by number: the entry that was tried last, as a bit of the frontier
    late: Array  # (2, rows): numbers and places of those whose other entries must be tried


class Told(NamedTuple):
    """What the ranks of the row and of the column told."""

    rows: Heard
    columns: Heard


@kernel
def _take_heads(team: Any, rows: Inward, names: Names) -> None:
    """The first entries of rows, and which rows are longer.  A member has chunks of its own."""
    stripes, chunks = rows.starts.shape
    taken = next_chunk(team, stripes * chunks, 1)
    while taken >= 0:
        s, chunk = taken // chunks, taken % chunks
        at = np.uint64(rows.starts[s, chunk])
        for w in range(chunk * WORDS, min((chunk + 1) * WORDS, rows.full.shape[1])):
            left = rows.full[s, w]
            while left != NONE:
                v = np.uint64((w * WORD + np.int64(trailing_zeros(left))) * stripes + s)
                left &= left - ONE
                begin, last = np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + ONE]) - ONE
                for i in range(HEADS):
                    u = rows.indices[min(begin + np.uint64(i), last)]
                    rows.heads[i, at] = column_bit(names, u)
                rows.longer[at >> SIX] |= np.uint64(begin + HEADS <= last) << (at & LOW)
                at += ONE
        taken = next_chunk(team, stripes * chunks, 1)


def with_heads(
    indptr: Array, indices: Array, full: Array, names: Names, threads: int | None
) -> Inward:
    """The rows of a block; `full` has the bits of those that have entries."""
    stripes, words = full.shape
    ones = np.unpackbits(full.view(np.uint8)).reshape(stripes, words, WORD).sum(2)
    sizes = np.add.reduceat(ones, np.arange(0, words, WORDS), axis=1) if words else ones
    starts = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(-(-sizes.ravel() // WORD) * WORD, out=starts[1:])
    heads = np.zeros((int(HEADS), int(starts[-1])), indices.dtype)
    longer = np.zeros(int(starts[-1]) // WORD, np.uint64)
    rows = Inward(indptr, indices, full, starts[:-1].reshape(sizes.shape), heads, longer)
    crew(threads, work=8 * heads.size).run(_take_heads, rows, names)
    return rows


@expanded
def _is_in(frontier: Array, bit: Any) -> Any:
    """1 where a column is in the frontier, else 0."""
    k = np.uint64(bit)
    return (frontier[k >> SIX] >> (k & LOW)) & ONE


@expanded
def _try_all(frontier: Array, head: Array, entries: Array) -> Any:
    """Bits of 64 rows that have this entry in the frontier; without a branch, many at a time."""
    bits = NONE
    for b in range(WORD):
        entries[b] = head[b]
        bits |= _is_in(frontier, head[b]) << np.uint64(b)
    return bits


@expanded
def _try_some(frontier: Array, head: Array, open: Any, entries: Array) -> Any:
    """The same of the open rows alone.  No branch asks for the answer."""
    bits = NONE
    while open != NONE:
        b = trailing_zeros(open)
        open &= open - ONE
        entries[b] = head[b]
        bits |= _is_in(frontier, head[b]) << b
    return bits


@expanded
def _number_open(full: Array, open: Array, numbered: Array) -> Any:
    """The bits of open rows by number; returns how many words, 0 where none is open."""
    at = any_open = NONE
    for w in range(open.size):
        any_open |= open[w]
    if any_open == NONE:
        return NONE
    numbered[0] = NONE
    for w in range(open.size):
        bits, q, shift = extracted(open[w], full[w]), at >> SIX, at & LOW
        numbered[q] |= bits << shift
        numbered[q + ONE] = (bits >> ONE) >> (LOW - shift)
        at += count_ones(full[w])
    return (at + LOW) >> SIX


@expanded
def _by_place(numbered: Array, at: Any, full: Any) -> Any:
    """The bits by place of the rows `full` of a word, which are numbered from `at` on."""
    q, shift = at >> SIX, at & LOW
    bits = numbered[q] >> shift | (numbered[q + ONE] << ONE) << (LOW - shift)
    return deposited(bits, full)


@expanded
def _try_heads(rows: Inward, frontier: Array, start: int, words: Any, near: Near) -> Any:
    """Which open rows of a chunk have one of their first entries in the frontier.

    Longer rows that have none stay open; returns whether there are any.
    """
    open, found = near.bits[0], near.bits[1]
    longer, late = rows.longer[start // WORD :], NONE
    for q in range(words):
        first, left = start + np.int64(q) * WORD, open[q]
        entries = near.entries[q * np.uint64(WORD) : (q + ONE) * np.uint64(WORD)]
        if count_ones(left) > MANY:
            bits = _try_all(frontier, rows.heads[0, first : first + WORD], entries) & left
        else:
            bits = _try_some(frontier, rows.heads[0, first : first + WORD], left, entries)
        for i in range(1, HEADS):
            head = rows.heads[i, first : first + WORD]
            bits |= _try_some(frontier, head, left & ~bits, entries)
        found[q] = bits
        open[q] = left & ~bits & longer[q]
        late |= open[q]
    found[words] = open[words] = NONE
    return late != NONE


@expanded
def _list_late(full: Array, near: Near) -> Any:
    """Numbers and places of the rows that are still open; returns how many."""
    count, at = NONE, NONE
    for w in range(full.size):
        left = _by_place(near.bits[0], at, full[w])
        while left != NONE:
            b = trailing_zeros(left)
            left &= left - ONE
            near.late[0, count] = at + count_ones(full[w] & ((ONE << b) - ONE))
            near.late[1, count] = np.uint64(w * WORD) + b
            count += ONE
        at += count_ones(full[w])
    return count


@expanded
def _try_others(
    rows: Inward, frontier: Array, names: Names, base: Any, count: Any, near: Near
) -> None:
    """The other entries of the rows that are listed; first all rows are called for.

    The row of place k of the chunk is base + k C.
    """
    found = near.bits[1]
    numbers, places = near.late[0, :count], near.late[1, :count]
    for i in range(places.size):
        prefetch(rows.indices, np.uint64(rows.indptr[base + places[i] * names.shape.C]) + HEADS)
    for i in range(places.size):
        v = base + places[i] * names.shape.C
        for at in range(np.uint64(rows.indptr[v]) + HEADS, np.uint64(rows.indptr[v + ONE])):
            u = column_bit(names, rows.indices[at])
            if _is_in(frontier, u) != NONE:
                k = np.uint64(numbers[i])
                near.entries[k] = u
                found[k >> SIX] |= ONE << (k & LOW)
                break


@expanded
def _write_parents(names: Names, words: Any, near: Near, parents: Array) -> Any:
    """The parents of the rows of a chunk that were found; returns their number."""
    kind, at = parents.dtype.type, NONE
    for q in range(words):
        entries = near.entries[q * np.uint64(WORD) : (q + ONE) * np.uint64(WORD)]
        left = near.bits[1, q]
        while left != NONE:
            parents[at] = kind(column_name(names, entries[trailing_zeros(left)]))
            left &= left - ONE
            at += ONE
    return np.int64(at)


@expanded
def _mark_found(full: Array, open: Array, near: Near, words: Any, bits: Array) -> None:
    """The bits by place of the rows of a chunk that were found; these are open no more."""
    if words == NONE:
        bits[:] = NONE
        return
    at = NONE
    for w in range(full.size):
        bits[w] = _by_place(near.bits[1], at, full[w])
        open[w] &= ~bits[w]
        at += count_ones(full[w])


@device
def search_rows(
    team: Any, rows: Inward, frontier: Array, names: Names, open: Array, found: Found,
    offers: Offers,
) -> None:  # fmt: skip
    """Members take the words of a chunk.  One that is alone writes parents into the messages."""
    stripes, chunks = rows.starts.shape
    near = Near(found.near[team.rank], found.entries[team.rank], found.late[team.rank])
    at, alone = np.int64(0), team.size == 1
    taken = next_chunk(team, stripes * chunks, 1)
    while taken >= 0:
        s, chunk = taken // chunks, taken % chunks
        first, end = chunk * WORDS, min((chunk + 1) * WORDS, open.shape[1])
        full, mine, bits = rows.full[s, first:end], open[s, first:end], found.bits[s, first:end]
        words = _number_open(full, mine, near.bits[0])
        if words != NONE and _try_heads(rows, frontier, rows.starts[s, chunk], words, near):
            base, late = np.uint64(first * WORD * stripes + s), _list_late(full, near)
            _try_others(rows, frontier, names, base, late, near)
        _mark_found(full, mine, near, words, bits)
        if alone:
            if chunk == 0:
                at = parents_begin(found, s, offers)
            count = _write_parents(names, words, near, offers.words[at:])
            at += count
        else:
            parents = found.parents[s, first * WORD : end * WORD]
            count = _write_parents(names, words, near, parents)
        found.counts[s, chunk] = count
        taken = next_chunk(team, stripes * chunks, 1)


@kernel
def bottom_up(
    team: Any, told: Told, rows: Inward, open: Array, names: Names, frontier: Array, found: Found,
    offers: Offers,
) -> None:  # fmt: skip
    """Open rows look for what the ranks of the column told; a message for each owner."""
    lo, hi = share(team, frontier.size)
    frontier[lo:hi] = NONE
    close(team, told.rows, open)
    if barrier(team):
        return
    set_columns(team, told.columns, names.shift, frontier)
    if barrier(team):
        return
    search_rows(team, rows, frontier, names, open, found, offers)
    if barrier(team):
        return
    offer_rows(team, found, offers)
