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

from matchwood.dist.grid import GridShape
from matchwood.dist.grid.cpu import ONE, column_place
from matchwood.primitives.cpu_hints import count_ones, leading_zeros, trailing_zeros
from matchwood.teams import (
    atomic_add,
    atomic_or,
    barrier,
    device,
    expanded,
    interrupted,
    kernel,
    share,
)
from matchwood.traversal.breadth_first.dist.cpu_told import (
    NONE,
    WORD,
    Columns,
    Gaps,
    spread_bits,
    word_bits,
)

Array = np.ndarray[Any, Any]

WORDS = 32  # words of a stripe that a member takes at a time bottom up
PLACES = WORDS * WORD  # of such a chunk
FEW = 4096  # vertices of a level whose entries are all counted; of more, one
SAMPLED = 4  # of so many words of places, but at most
SAMPLES = 512  # in all


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


class Own(NamedTuple):
    """Own vertices by place; level and parent are all ones, that is -1, where not reached."""

    level: Array
    parent: Array
    reached: Array  # bits, in words of the type of the messages
    told: Array  # bits of those reached in this level
    listed: Array  # the same as a list, where that is shorter than the bits
    indptr: Array  # of the block, which has some of their entries


@device
def _words_for(places: int, words: Array) -> int:
    """Words of one bit for each place."""
    width = word_bits(words)
    return (places + width - 1) // width


@device
def message_size(places: int, owned: int, words: Array) -> int:
    """Words of a message about so many of an owner's places."""
    bits = _words_for(owned, words)
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
    size = _words_for(offers.size[s], words)
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
    return at + _words_for(offers.size[s], offers.words)


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
        bits = _words_for(offers.size[s], words)
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


@kernel
def begin(team: Any, level: Array, parent: Array) -> None:
    """No vertex is reached."""
    lo, hi = share(team, level.size)
    level[lo:hi] = ~level.dtype.type(0)
    parent[lo:hi] = ~parent.dtype.type(0)


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
        size = _words_for(offers.size[s], words)
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
    kind, size = words.dtype.type, _words_for(offers.size[s], words)
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
        if total < _words_for(offers.size[s], words):
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
        if totals[s] >= _words_for(offers.size[s], words):
            _parents_behind(team, parents, offers, s, starts[s])


@expanded
def _accept_list(own: Own, words: Array, start: int, end: int, lo: int, hi: int) -> None:
    """What a list offers to the places in words lo .. hi of bits."""
    kind, width = words.dtype.type, words.dtype.type(word_bits(words))
    half = (end - start) // 2
    for i in range(start, start + half):
        k = words[i]
        w, bit = np.int64(k // width), kind(1) << (k % width)
        if lo <= w and w < hi and own.reached[w] & bit == kind(0):
            own.told[w] |= bit
            own.parent[k] = min(own.parent[k], words[i + half])


@device
def _accept_bits(team: Any, own: Own, words: Array, start: int, lo: int, hi: int) -> None:
    """What bits offer to the places in words lo .. hi of them."""
    kind, width = words.dtype.type, np.uint64(word_bits(words))
    at = np.uint64(start + own.told.size)
    for w in range(start, start + lo):
        at += np.uint64(count_ones(words[w]))
    for w in range(lo, hi):
        if interrupted(team, w):
            return
        offered, known = words[start + w], own.reached[w]
        own.told[w] |= offered & ~known
        base = np.uint64(w) * width
        if offered & known == kind(0):  # mostly
            while offered != kind(0):
                k = base + np.uint64(trailing_zeros(offered))
                own.parent[k] = min(own.parent[k], words[at])
                offered &= offered - kind(1)
                at += ONE
            continue
        while offered != kind(0):
            b = trailing_zeros(offered)
            if (known >> b) & kind(1) == kind(0):
                k = base + np.uint64(b)
                own.parent[k] = min(own.parent[k], words[at])
            offered &= offered - kind(1)
            at += ONE


@expanded
def _entries(own: Own, k: Any, shape: GridShape) -> Any:
    """Of own vertex k, in this block."""
    v = k * shape.C + shape.c
    return np.int64(own.indptr[v + ONE]) - np.int64(own.indptr[v])


@device
def _settle(
    team: Any, own: Own, depth: int, columns: Columns, gaps: Gaps, shape: GridShape, lo: int,
    hi: int,
) -> Any:  # fmt: skip
    """Levels of those reached in words lo .. hi; they are seen.  How many, and their entries.

    Where they are many, one of some words stands for the others; in turn the first and the last of
    a word, since of some graphs even vertices have more entries than odd ones.  No other member has
    bits in the words of `seen`: lo and hi are multiples of 64 places.
    """
    kind, width = own.told.dtype.type, np.uint64(word_bits(own.told))
    below, count, arcs = own.level.dtype.type(depth), np.int64(0), np.int64(0)
    for w in range(lo, hi):
        count += np.int64(count_ones(own.told[w]))
    many = count > hi - lo
    if many:
        spread_bits(gaps, own.told, lo, hi, shape.c, shape.C, columns.seen)
    sampled, entries, after, low = count > FEW, np.int64(0), lo, True
    apart = max(SAMPLED, (hi - lo) // SAMPLES)
    for w in range(lo, hi):
        if interrupted(team, w):
            break
        left, base = own.told[w], np.uint64(w) * width
        if left == kind(0):
            continue
        own.reached[w] |= left
        if sampled:
            if w >= after:
                after, low = w + apart, not low
                b = np.uint64(trailing_zeros(left))
                if not low:
                    b = width - ONE - np.uint64(leading_zeros(left))
                entries = _entries(own, base + b, shape)
            arcs += entries * np.int64(count_ones(left))
        while left != kind(0):
            k = base + np.uint64(trailing_zeros(left))
            left &= left - kind(1)
            own.level[k] = below
            if not sampled:
                arcs += _entries(own, k, shape)
            if not many:
                v = k * shape.C + shape.c
                columns.seen[v >> np.uint64(6)] |= ONE << (v & np.uint64(63))
    return count, arcs


@expanded
def _list_told(own: Own) -> None:
    at = 0
    kind, width = own.told.dtype.type, word_bits(own.told)
    for w in range(own.told.size):
        left = own.told[w]
        while left != kind(0):
            own.listed[at] = w * width + np.int64(trailing_zeros(left))
            left &= left - kind(1)
            at += 1


@kernel
def accept(
    team: Any, words: Array, starts: Array, depth: int, own: Own, columns: Columns, gaps: Gaps,
    shape: GridShape, totals: Array,
) -> None:  # fmt: skip
    """The smallest of the parents that are offered.

    totals: how many vertices are reached in this level; their entries in this block.  Caller:
    own.told and totals are 0.
    """
    each = 64 // word_bits(words)  # words that have 64 places
    size = own.told.size
    lo, hi = share(team, (size + each - 1) // each)
    lo, hi = lo * each, min(hi * each, size)
    for s in range(starts.size - 1):
        start, end = starts[s], starts[s + 1]
        if end - start < 2 * size:
            _accept_list(own, words, start, end, lo, hi)
        else:
            _accept_bits(team, own, words, start, lo, hi)
    count, arcs = _settle(team, own, depth, columns, gaps, shape, lo, hi)
    atomic_add(totals, 0, count)
    atomic_add(totals, 1, arcs)
    if barrier(team):
        return
    if team.rank == 0 and totals[0] < own.listed.size:
        _list_told(own)
