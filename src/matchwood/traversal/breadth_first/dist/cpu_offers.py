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
from matchwood.primitives.cpu_hints import count_ones, trailing_zeros
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
from matchwood.traversal.breadth_first.dist.cpu_stripes import BITS, WORDS, Columns, Found, Heard

Array = np.ndarray[Any, Any]

PLACES = WORDS * BITS  # of a chunk of bottom_up


class Own(NamedTuple):
    """Own vertices by place; level and parent are all ones, that is -1, where not reached."""

    level: Array
    parent: Array
    reached: Array  # bits, in words of the type of the messages
    told: Array  # bits of those reached in this level
    listed: Array  # the same as a list, where that is shorter than the bits


@device
def _words_for(places: int, words: Array) -> int:
    """Words of one bit for each place."""
    width = 8 * words.itemsize
    return (places + width - 1) // width


@expanded
def _pack_stripe(
    found: Found, s: int, listed: bool, lo: int, hi: int, words: Array, ends: Any
) -> None:
    """The part of the message for stripe s that chunks lo .. hi have."""
    start, end = ends
    kind, each = words.dtype.type, 8 * words.itemsize // BITS
    before, total = np.int64(0), np.int64(0)
    for chunk in range(found.counts.shape[0]):
        before += found.counts[chunk, s] if chunk < lo else np.int64(0)
        total += found.counts[chunk, s]
    first, last = lo * WORDS, min(hi * WORDS, found.bits.shape[1])
    if listed:
        at = start + before
        for w in range(first, last):
            left = found.bits[s, w]
            while left != np.uint32(0):
                words[at] = kind(w * BITS + np.int64(trailing_zeros(left)))
                left &= left - np.uint32(1)
                at += 1
    else:
        size = end - start - total
        for i in range(first // each, min((last + each - 1) // each, size)):
            word = np.uint64(found.bits[s, each * i])
            if each == 2:
                word |= np.uint64(found.bits[s, 2 * i + 1]) << np.uint64(BITS)
            words[start + i] = kind(word)
    at = end - total + before
    for chunk in range(lo, hi):
        parents = found.parents[s, chunk * PLACES : chunk * PLACES + found.counts[chunk, s]]
        for i in range(parents.size):
            words[at + i] = parents[i]
        at += parents.size


@kernel
def pack_rows(team: Any, found: Found, listed: Array, words: Array, starts: Array) -> None:
    """A message for each stripe: places, as a list where `listed`, then parents."""
    lo, hi = share(team, found.counts.shape[0])
    for s in range(listed.size):
        if interrupted(team, 0):
            return
        _pack_stripe(found, s, listed[s], lo, hi, words, (starts[s], starts[s + 1]))


@kernel
def begin(team: Any, level: Array, parent: Array) -> None:
    """No vertex is reached."""
    lo, hi = share(team, level.size)
    level[lo:hi] = ~level.dtype.type(0)
    parent[lo:hi] = ~parent.dtype.type(0)


@kernel
def count_columns(team: Any, found: Array, shape: GridShape, counts: Array) -> None:
    """counts[member, s]: of this member's share of the columns, those that rank s owns."""
    mine = counts[team.rank]
    lo, hi = share(team, found.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        mine[column_place(shape, found[i])[0]] += 1


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
def _parents_behind(team: Any, best: Array, heard: Heard, s: int, words: Array) -> None:
    """Parents behind the bits of the message for rank s: those of this member's words."""
    kind, start = words.dtype.type, heard.starts[s]
    size = _words_for(heard.size[s], words)
    lo, hi = share(team, size)
    at = start + size
    for w in range(start, start + lo):
        at += np.int64(count_ones(words[w]))
    for w in range(lo, hi):
        if interrupted(team, w):
            return
        left = words[start + w]
        while left != kind(0):
            k = w * (8 * words.itemsize) + np.int64(trailing_zeros(left))
            left &= left - kind(1)
            words[at] = best[np.uint64(heard.base[s] + k * heard.step[s])]
            at += 1


@kernel
def pack_columns(
    team: Any, found: Array, shape: GridShape, columns: Columns, heard: Heard, ends: Array,
    words: Array,
) -> None:  # fmt: skip
    """A message for each rank of the column, and these columns are seen.

    heard.starts says where they begin in `words`, which are 0.  ends[member, s]: of the list for
    rank s, where the part of the member ends; it is used up.
    """
    kind, width = words.dtype.type, words.dtype.type(8 * words.itemsize)
    best, mine = columns.best, ends[team.rank]
    _see_columns(team, found, columns)
    lo, hi = share(team, found.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        s, place = column_place(shape, found[i])
        start, size = heard.starts[s], heard.starts[s + ONE] - heard.starts[s]
        k = kind(place)
        if size < 2 * _words_for(heard.size[s], words):
            mine[s] -= 1
            words[start + mine[s]] = k
            words[start + size // 2 + mine[s]] = best[found[i]]
        elif team.size == 1:
            words[start + np.int64(k // width)] |= kind(1) << (k % width)
        else:
            atomic_or(words, start + np.int64(k // width), kind(1) << (k % width))
    if barrier(team):
        return
    for s in range(heard.size.size):
        if heard.starts[s + 1] - heard.starts[s] >= 2 * _words_for(heard.size[s], words):
            _parents_behind(team, best, heard, s, words)


@expanded
def _accept_list(own: Own, words: Array, start: int, end: int, lo: int, hi: int) -> None:
    """What a list offers to the places in words lo .. hi of bits."""
    kind, width = words.dtype.type, words.dtype.type(8 * words.itemsize)
    half = (end - start) // 2
    for i in range(start, start + half):
        k = words[i]
        w, bit = np.int64(k // width), kind(1) << (k % width)
        if lo <= w and w < hi and own.reached[w] & bit == kind(0):
            own.told[w] |= bit
            own.parent[k] = min(own.parent[k], words[i + half])


@expanded
def _accept_bits(team: Any, own: Own, words: Array, start: int, lo: int, hi: int) -> None:
    """What bits offer to the places in words lo .. hi of them."""
    kind, width = words.dtype.type, np.uint64(8 * words.itemsize)
    at = np.uint64(start + own.told.size)
    for w in range(start, start + lo):
        at += np.uint64(count_ones(words[w]))
    for w in range(lo, hi):
        if interrupted(team, w):
            return
        offered = words[start + w]
        new = offered & ~own.reached[w]
        own.told[w] |= new
        if new == kind(0):
            at += np.uint64(count_ones(offered))
            continue
        while offered != kind(0):
            b = trailing_zeros(offered)
            if (new >> b) & kind(1):
                k = np.uint64(w) * width + np.uint64(b)
                own.parent[k] = min(own.parent[k], words[at])
            offered &= offered - kind(1)
            at += ONE


@expanded
def _settle(
    team: Any, own: Own, depth: int, columns: Columns, shape: GridShape, lo: int, hi: int
) -> Any:
    """Levels of those reached in words lo .. hi; they are seen.  How many."""
    kind, width = own.told.dtype.type, np.uint64(8 * own.told.itemsize)
    below, count = own.level.dtype.type(depth), np.uint64(0)
    for w in range(lo, hi):
        if interrupted(team, w):
            break
        left = own.told[w]
        own.reached[w] |= left
        count += np.uint64(count_ones(left))
        while left != kind(0):
            k = np.uint64(w) * width + np.uint64(trailing_zeros(left))
            left &= left - kind(1)
            own.level[k] = below
            v = k * shape.C + shape.c
            columns.seen[v >> np.uint64(6)] |= ONE << (v & np.uint64(63))
    return np.int64(count)


@expanded
def _list_told(own: Own) -> None:
    at = 0
    kind, width = own.told.dtype.type, 8 * own.told.itemsize
    for w in range(own.told.size):
        left = own.told[w]
        while left != kind(0):
            own.listed[at] = w * width + np.int64(trailing_zeros(left))
            left &= left - kind(1)
            at += 1


@kernel
def accept(
    team: Any, words: Array, starts: Array, depth: int, own: Own, columns: Columns,
    shape: GridShape, total: Array,
) -> None:  # fmt: skip
    """The smallest of the parents that are offered.  total[0]: vertices reached in this level.

    Caller: own.told and total are 0.
    """
    each = 64 // (8 * words.itemsize)  # words that have 64 places
    size = own.told.size
    lo, hi = share(team, (size + each - 1) // each)
    lo, hi = lo * each, min(hi * each, size)
    for s in range(starts.size - 1):
        start, end = starts[s], starts[s + 1]
        if end - start < 2 * size:
            _accept_list(own, words, start, end, lo, hi)
        else:
            _accept_bits(team, own, words, start, lo, hi)
    atomic_add(total, 0, _settle(team, own, depth, columns, shape, lo, hi))
    if barrier(team):
        return
    if team.rank == 0 and total[0] < own.listed.size:
        _list_told(own)
