"""Kernels of a search: parents that are offered to the owners of vertices.  Read stripes.py first.

A message has places, as a list of words or as the bits of words where that is shorter, and behind
them a parent for each, in the same order.

Races.  A member writes the words of its own places alone; a word of a bitmap has 64 places of one
member.  Where the parents of a member's places begin follows from the number of bits before them.
Columns are found in any order, so top down members join bits to the words by an atomic or.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    atomic_or,
    barrier,
    device,
    expanded,
    interrupted,
    share,
)
from matchwood.engines.cpu.hints import count_ones, trailing_zeros
from matchwood.engines.ranks.grid import GridShape
from matchwood.engines.ranks.grid.cpu import ONE, column_place
from matchwood.traversal.breadth_first.ranks.cpu_told import (
    NONE,
    WORD,
    Columns,
    word_bits,
)

Array = np.ndarray[Any, Any]

WORDS = 32  # words of a stripe that a member takes at a time bottom up
PLACES = WORDS * WORD  # of such a chunk


class Found(NamedTuple):
    """What a level bottom up found, by stripe of the row group."""

    bits: Array  # (C, words) places
    parents: Array  # (C, words * WORD) those of a chunk of places from its first place on
    counts: Array  # (C, chunks) of places
    near: Array  # (members, 2, WORDS + 1) for these three see Near in cpu_bottom_up.py
    entries: Array  # (members, PLACES)
    late: Array  # (members, 2, PLACES)


def room_near(members: int, index: Any) -> tuple[Array, Array, Array]:
    """The last three fields of Found."""
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


class Parents(NamedTuple):
    """The parents of columns."""

    same: bool  # of all of them `only`, else
    only: Any
    best: Array  # by local id


@device
def words_for(places: int, words: Array) -> int:
    """Words of one bit for each place."""
    width = word_bits(words)
    return (places + width - 1) // width


@device
def message_size(places: int, owned: int, words: Array) -> int:
    """Words of a message about so many of an owner's places."""
    bits = words_for(owned, words)
    return 2 * places if places < bits else bits + places


@expanded
def _pack_places(
    found: Found, s: int, lo: int, hi: int, before: int, total: int, offers: Offers, start: int
) -> int:
    """The places that words lo .. hi of stripe s have, into its message; words of all places.

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
def _places_before(found: Found, s: int, chunk: int) -> Any:
    """Places of stripe s that were found in the chunks before this one."""
    count = np.int64(0)
    for i in range(chunk):
        count += found.counts[s, i]
    return count


@device
def parents_begin(found: Found, s: int, offers: Offers) -> Any:
    """Where the parents of stripe s begin if it has many; those before it are complete."""
    at = np.int64(0)
    for before in range(s):
        total = _places_before(found, before, found.counts.shape[1])
        at += message_size(total, offers.size[before], offers.words)
    return at + words_for(offers.size[s], offers.words)


@expanded
def offer_rows(team: Any, found: Found, offers: Offers) -> None:
    """A message for each stripe of the row group: places, then parents.

    A member that is alone has written parents to where they begin behind bits.  Where they come
    behind a list they are moved, before the next message is written there.
    """
    words, chunks = offers.words, found.counts.shape[1]
    lo, hi = share(team, chunks)
    first, last = lo * WORDS, min(hi * WORDS, found.bits.shape[1])
    start = np.int64(0)
    for s in range(offers.size.size):
        if interrupted(team, 0):
            return
        before, total = _places_before(found, s, lo), _places_before(found, s, chunks)
        bits = words_for(offers.size[s], words)
        if team.size == 1 and total < bits:
            _copy(words[start + bits : start + bits + total], words[start + total :])
        size = _pack_places(found, s, first, last, before, total, offers, start)
        if team.size > 1:
            at = start + size + before
            for chunk in range(lo, hi):
                count, from_place = found.counts[s, chunk], chunk * PLACES
                _copy(found.parents[s, from_place : from_place + count], words[at:])
                at += count
        start += size + total
        if team.rank == 0:
            offers.counts[team.size, s] = total


@expanded
def _see_columns(team: Any, found: Array, columns: Columns) -> None:
    """The fresh columns, which are those found, are seen: one by one where they are few."""
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
    """How many of this member's share of the columns each rank owns."""
    mine = offers.counts[team.rank]
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
            if member == team.rank:
                ends[s] = total
        starts[s] = start
        size = words_for(offers.size[s], words)
        if total >= size:
            lo, hi = share(team, size)
            words[start + lo : start + hi] = words.dtype.type(0)
        if team.rank == 0:
            counts[team.size, s] = total
        start += message_size(total, offers.size[s], words)


@expanded
def _parents_behind(team: Any, parents: Parents, offers: Offers, s: int, start: int) -> None:
    """Parents behind the bits of the message for rank s: those of this member's words."""
    words = offers.words
    kind, size = words.dtype.type, words_for(offers.size[s], words)
    if parents.same:
        lo, hi = share(team, offers.counts[team.size, s])
        words[start + size + lo : start + size + hi] = parents.only
        return
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
            words[at] = parents.best[np.uint64(offers.base[s] + k * offers.step[s])]
            at += ONE


@device
def offer_columns(
    team: Any, found: Array, shape: GridShape, columns: Columns, parents: Parents, offers: Offers
) -> None:
    """A message for each rank of the column, and these columns are seen."""
    words = offers.words
    kind, width = words.dtype.type, np.uint64(word_bits(words))
    starts, ends = offers.starts[team.rank, 0], offers.starts[team.rank, 1]
    _count_columns(team, found, shape, offers)
    if barrier(team):
        return
    _begin_messages(team, offers, starts, ends)
    if not parents.same:
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
            best = parents.only if parents.same else parents.best[found[i]]
            words[start + total + ends[s]] = best
        elif team.size == 1:
            words[start + np.int64(k // width)] |= kind(ONE << (k % width))
        else:
            atomic_or(words, start + np.int64(k // width), kind(ONE << (k % width)))
    if barrier(team):
        return
    for s in range(offers.size.size):
        if totals[s] >= words_for(offers.size[s], words):
            _parents_behind(team, parents, offers, s, starts[s])
