"""Messages of a search, read and written by kernels.  Read __init__.py first.

The frontier goes to the ranks of a group as places of its owner: a list of words, or the bits of
words where that is shorter; the length says which (engines/ranks/exchanges).  Words are unsigned.
What a level found goes back to the owners as places in the same form, and behind them a parent for
each, in the same order.

Races.  A member writes the words of its own places alone; a word of a bitmap has 64 places of one
member.  Where the parents of a member's places begin follows from the number of bits before them.
Columns are found in any order, so top down members join bits to the words by an atomic or.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import atomic_or, barrier, device, expanded, inlined, interrupted, share
from matchwood.engines.cpu.hints import count_ones, trailing_zeros
from matchwood.engines.ranks.grid import GridShape
from matchwood.engines.ranks.grid.cpu import ONE, column_place, row_id
from matchwood.primitives.frontier.cpu import flush, push

Array = np.ndarray[Any, Any]


# The frontier


BITS = 32  # bits of a word of a message about the frontier
WORD = 64  # bits of a word that a rank keeps
GAP = 16  # words between what two members count: else every count takes a cache line from others
NONE = np.uint64(0)


class Names(NamedTuple):
    """How to find the user's number of a vertex."""

    shape: GridShape
    shift: Any  # the bit of a column in the frontier is (rank of its owner) << shift | place
    given: Array  # names by local id; empty where ids are names
    columns: Array  # names of the column group by position; empty where ids are names


class FrontierMessages(NamedTuple):
    """What the ranks of a group sent: those of rank s are words[starts[s] : starts[s + 1]].

    Its vertices are, by local id, base[s] + place * step[s], size[s] of them.
    """

    words: Array
    starts: Array
    base: Array
    step: Array
    size: Array


class Columns(NamedTuple):
    """What a rank knows of columns, by their local ids."""

    seen: Array  # bits: those it has offered to their owners, or knows to be reached
    fresh: Array  # bits: those found in this level, before they are offered
    best: Array  # the smallest vertex that leads to each of these


class Queue(NamedTuple):
    """Vertices that members append to; see primitives/frontier."""

    vertices: Array
    tail: Array
    buffers: Array  # one row for each member


@expanded
def word_bits(words: Array) -> Any:
    """Bits of a word; not by `itemsize`, which LLVM does not know and would divide by."""
    return np.iinfo(words.dtype).bits


@expanded
def column_bit(names: Names, x: Any) -> Any:
    """The bit of a column in the frontier, by its local id.

    A quotient of floats is exact here, since x + 1/2 is no nearer to a multiple than 1/2, and
    takes less time than one of integers.
    """
    shape, local = names.shape, np.uint64(x)
    own = local < shape.rows
    other = local - shape.rows
    inverse = 1.0 / np.float64(shape.C) if own else 1.0 / np.float64(shape.others)
    place = np.uint64(np.int64((np.float64(np.int64(local if own else other)) + 0.5) * inverse))
    rank = other - place * shape.others
    rank += ONE if rank >= shape.r else NONE
    return (shape.r if own else rank) << names.shift | place


@expanded
def column_name(names: Names, bit: Any) -> Any:
    """The user's number of a column, by its bit."""
    rank, place = np.uint64(bit) >> names.shift, np.uint64(bit) & ((ONE << names.shift) - ONE)
    position = place * names.shape.R + rank
    if names.columns.size > 0:
        return np.uint64(names.columns[position])
    return position * names.shape.C + names.shape.c


@device
def row_name(names: Names, x: Any) -> Any:
    return np.uint64(names.given[x]) if names.given.size > 0 else row_id(names.shape, x)


@device
def _is_bitmap(sent: FrontierMessages, s: int) -> bool:
    return bool(sent.starts[s + 1] - sent.starts[s] >= (sent.size[s] + BITS - 1) // BITS)


@expanded
def has(bits: Array, v: Any) -> bool:
    x = np.uint64(v)
    return bool((bits[x >> np.uint64(6)] >> (x & np.uint64(63))) & ONE)


@expanded
def word_of(words: Array, i: int) -> Any:
    """The i-th 64 bits of words of 32 or 64."""
    if word_bits(words) == WORD:
        return np.uint64(words[i])
    bits = np.uint64(words[2 * i])
    if 2 * i + 1 < words.size:
        bits |= np.uint64(words[2 * i + 1]) << np.uint64(BITS)
    return bits


@expanded
def close(team: Any, sent: FrontierMessages, open: Array) -> None:
    """Clear the open bits of the rows sent.  Lists are short: one member reads them."""
    for s in range(sent.size.size):
        words = sent.words[sent.starts[s] : sent.starts[s + 1]]
        if _is_bitmap(sent, s):
            lo, hi = share(team, (words.size + 1) // 2)
            for i in range(lo, hi):
                open[s, i] &= ~word_of(words, i)
        elif team.me == 0:
            for i in range(words.size):
                k = np.uint64(words[i])
                open[s, k >> np.uint64(6)] &= ~(ONE << (k & np.uint64(63)))


@inlined
def _each_place(team: Any, sent: FrontierMessages, s: int, visit: Any, what: Any, got: Any) -> Any:
    """got = visit(what, local id, got) for this member's share of what rank s sent; last `got`."""
    base, step, start = sent.base[s], sent.step[s], sent.starts[s]
    bitmap, full = _is_bitmap(sent, s), what[0]
    lo, hi = share(team, sent.starts[s + 1] - start)
    for i in range(start + lo, start + hi):
        if interrupted(team, i):
            break
        if not bitmap:
            got = visit(what, np.uint64(base + np.int64(sent.words[i]) * step), got)
            continue
        left, first = np.uint64(sent.words[i]), (i - start) * BITS
        if full.size > 0:
            left &= full[s, first // WORD] >> np.uint64(first % WORD)
        while left != NONE:
            k = first + np.int64(trailing_zeros(left))
            left &= left - ONE
            got = visit(what, np.uint64(base + k * step), got)
    return got


@expanded
def _list_row(what: Any, v: Any, at: Any) -> Any:
    """List row v if it has entries; returns `at`, the number of rows listed."""
    _, indptr, rows, buffer, alone = what
    entries = indptr[v + ONE] > indptr[v]
    if alone:  # no branch that may be mispredicted
        rows.vertices[at] = v
        at += np.int64(entries)
    elif entries:
        at = push(buffer, at, v, rows.vertices, rows.tail)
    return at


@expanded
def list_rows(team: Any, sent: FrontierMessages, full: Array, indptr: Array, rows: Queue) -> None:
    """List the rows of the frontier that have entries.

    full[s]: the bits of those of stripe s that have some.  Caller: rows.tail is 0, and there is
    room for one row more.
    """
    alone, buffer = team.size == 1, rows.buffers[team.me]
    at = np.int64(0)
    for s in range(sent.size.size):
        at = _each_place(team, sent, s, _list_row, (full, indptr, rows, buffer, alone), at)
    if alone:
        rows.tail[0] = at
    else:
        flush(buffer, at, rows.vertices, rows.tail)


@expanded
def set_columns(team: Any, sent: FrontierMessages, shift: Any, frontier: Array) -> None:
    """Set the frontier's bits of the columns sent.  Caller: the frontier is 0."""
    for s in range(sent.size.size):
        if interrupted(team, 0):
            return
        words, first = sent.words[sent.starts[s] : sent.starts[s + 1]], np.uint64(s) << shift
        if _is_bitmap(sent, s):
            into = frontier[first >> np.uint64(6) :]
            lo, hi = share(team, (words.size + 1) // 2)
            for i in range(lo, hi):
                into[i] = word_of(words, i)
        elif team.me == 0:
            for i in range(words.size):
                k = first + np.uint64(words[i])
                frontier[k >> np.uint64(6)] |= ONE << (k & np.uint64(63))


# Parents that are offered to owners


WORDS = 32  # words of a stripe that a member takes at a time bottom up
PLACES = WORDS * WORD  # places of such a chunk


class FoundRows(NamedTuple):
    """What a level bottom up found, by stripe of the row group."""

    bits: Array  # (C, words) bits of the places found
    parents: Array  # (C, words * WORD) those of a chunk begin at the chunk's first place
    counts: Array  # (C, chunks) places found
    near: Array  # (members, 2, WORDS + 1) for these three see ChunkNotes in levels.py
    entries: Array  # (members, PLACES)
    late: Array  # (members, 2, PLACES)


def room_for_notes(members: int, index: Any) -> tuple[Array, Array, Array]:
    """The last three fields of FoundRows."""
    return (
        np.empty((members, 2, WORDS + 1), np.uint64),
        np.empty((members, PLACES), index),
        np.empty((members, 2, PLACES), index),
    )


class Offers(NamedTuple):
    """Messages that go to the ranks of a group, one after the other.

    The vertices of rank s are, by local id, base[s] + place * step[s], size[s] of them.
    """

    words: Array
    counts: Array  # (members + 1, ranks + GAP) places in the part of each member; then all places
    starts: Array  # (members, 2, ranks + GAP) what a member notes about them
    base: Array
    step: Array
    size: Array


@device
def words_for(places: int, words: Array) -> int:
    """Words of a bitmap that has one bit for each place."""
    width = word_bits(words)
    return (places + width - 1) // width


@device
def message_size(places: int, owned: int, words: Array) -> int:
    """Words of a message about `places` of the `owned` places of its receiver."""
    bits = words_for(owned, words)
    return 2 * places if places < bits else bits + places


@expanded
def _pack_places(
    found: FoundRows, s: int, lo: int, hi: int, before: int, total: int, offers: Offers, start: int
) -> int:
    """Write the places in words lo .. hi of stripe s to its message; returns words of all places.

    There are `total` places, and `before` of them are in words below lo.
    """
    words, bits = offers.words, found.bits[s]
    kind, each = words.dtype.type, WORD // word_bits(words)
    size = words_for(offers.size[s], words)
    if total >= size:
        for i in range(lo * each, min(hi * each, size)):
            words[start + i] = kind(bits[i // each] >> np.uint64(i % each * word_bits(words)))
        return size
    at = np.uint64(start + before)
    for w in range(lo, hi):
        left = bits[w]
        while left != NONE:
            words[at] = kind(np.uint64(w * WORD) + trailing_zeros(left))
            left &= left - ONE
            at += ONE
    return total


@expanded
def _copy(source: Array, into: Array) -> None:
    for i in range(source.size):
        into[i] = source[i]


@expanded
def _places_before(found: FoundRows, s: int, chunk: int) -> Any:
    """Places of stripe s that were found in the chunks before this one."""
    count = np.int64(0)
    for i in range(chunk):
        count += found.counts[s, i]
    return count


@expanded
def offer_rows(team: Any, found: FoundRows, offers: Offers) -> None:
    """Write a message for each stripe of the row group: places, then parents."""
    words, chunks = offers.words, found.counts.shape[1]
    lo, hi = share(team, chunks)
    first, last = lo * WORDS, min(hi * WORDS, found.bits.shape[1])
    start = np.int64(0)
    for s in range(offers.size.size):
        if interrupted(team, 0):
            return
        before, total = _places_before(found, s, lo), _places_before(found, s, chunks)
        size = _pack_places(found, s, first, last, before, total, offers, start)
        at = start + size + before
        for chunk in range(lo, hi):
            count, from_place = found.counts[s, chunk], chunk * PLACES
            _copy(found.parents[s, from_place : from_place + count], words[at:])
            at += count
        start += size + total
        if team.me == 0:
            offers.counts[team.size, s] = total


@expanded
def _see_columns(team: Any, found: Array, columns: Columns) -> None:
    """Mark the columns found as seen: one by one where they are few, else all fresh bits."""
    if team.size == 1 and found.size < columns.seen.size:
        for i in range(found.size):
            v = np.uint64(found[i])
            bit = ONE << (v & np.uint64(63))
            columns.seen[v >> np.uint64(6)] |= bit
            columns.fresh[v >> np.uint64(6)] &= ~bit
        return
    lo, hi = share(team, columns.seen.size)
    seen, fresh = columns.seen[lo:hi], columns.fresh[lo:hi]
    for w in range(seen.size):
        seen[w] |= fresh[w]
        fresh[w] = np.uint64(0)


@expanded
def _count_columns(team: Any, found: Array, shape: GridShape, offers: Offers) -> None:
    """Count how many of this member's share of the columns each rank owns."""
    mine = offers.counts[team.me]
    mine[:] = 0
    lo, hi = share(team, found.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        mine[column_place(shape, found[i])[0]] += 1


@expanded
def _begin_messages(team: Any, offers: Offers, starts: Array, ends: Array) -> None:
    """starts[s]: where the message for rank s begins.  ends[s]: where this member's part of its
    list ends.  This member's share of the words of bits is 0."""
    counts, words = offers.counts, offers.words
    start = np.int64(0)
    for s in range(offers.size.size):
        total = np.int64(0)
        for member in range(team.size):
            total += counts[member, s]
            if member == team.me:
                ends[s] = total
        starts[s] = start
        size = words_for(offers.size[s], words)
        if total >= size:
            lo, hi = share(team, size)
            words[start + lo : start + hi] = words.dtype.type(0)
        if team.me == 0:
            counts[team.size, s] = total
        start += message_size(total, offers.size[s], words)


@expanded
def _parents_behind(team: Any, best: Array, offers: Offers, s: int, start: int) -> None:
    """Write the parents of this member's words behind the bits of the message for rank s."""
    words = offers.words
    kind, size = words.dtype.type, words_for(offers.size[s], words)
    lo, hi = share(team, size)
    at = np.uint64(start + size)
    for w in range(start, start + lo):
        at += np.uint64(count_ones(words[w]))
    for w in range(lo, hi):
        if interrupted(team, w):
            return
        left = words[start + w]
        while left != kind(0):
            k = w * word_bits(words) + np.int64(trailing_zeros(left))
            left &= left - kind(1)
            words[at] = best[np.uint64(offers.base[s] + k * offers.step[s])]
            at += ONE


@device
def offer_columns(
    team: Any, found: Array, shape: GridShape, columns: Columns, offers: Offers
) -> None:
    """Write a message for each rank of the column, and mark these columns as seen."""
    words = offers.words
    kind, width = words.dtype.type, np.uint64(word_bits(words))
    starts, ends = offers.starts[team.me, 0], offers.starts[team.me, 1]
    _count_columns(team, found, shape, offers)
    if barrier(team):
        return
    _begin_messages(team, offers, starts, ends)
    _see_columns(team, found, columns)
    if barrier(team):
        return
    totals = offers.counts[team.size]
    lo, hi = share(team, found.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        s, k = column_place(shape, found[i])
        start, total = starts[s], totals[s]
        if total < words_for(offers.size[s], words):
            ends[s] -= 1
            words[start + ends[s]] = kind(k)
            words[start + total + ends[s]] = columns.best[found[i]]
        elif team.size == 1:
            words[start + np.int64(k // width)] |= kind(ONE << (k % width))
        else:
            atomic_or(words, start + np.int64(k // width), kind(ONE << (k % width)))
    if barrier(team):
        return
    for s in range(offers.size.size):
        if totals[s] >= words_for(offers.size[s], words):
            _parents_behind(team, columns.best, offers, s, starts[s])
