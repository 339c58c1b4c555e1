"""Kernels of a search: owners take the parents that are offered.  Read cpu_offers.py first.

Races: a member writes the words of its own places alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import atomic_add, barrier, device, expanded, interrupted, kernel, share
from matchwood.engines.cpu.hints import count_ones, leading_zeros, trailing_zeros
from matchwood.engines.ranks.grid import GridShape
from matchwood.engines.ranks.grid.cpu import ONE
from matchwood.traversal.breadth_first.ranks.cpu_offers import words_for
from matchwood.traversal.breadth_first.ranks.cpu_told import (
    NONE,
    WORD,
    Columns,
    Gaps,
    spread_bits,
    word_of,
)

Array = np.ndarray[Any, Any]

FEW = 4096  # vertices of a level whose entries are all counted; of more, one
SAMPLED = 2  # of so many words of places, but at most
SAMPLES = 512  # in all


class Own(NamedTuple):
    """Own vertices by place; level and parent are all ones, that is -1, where not reached."""

    level: Array
    parent: Array
    reached: Array  # bits, in words of 64
    told: Array  # bits of those reached in this level
    listed: Array  # the same as a list, where that is shorter than the bits
    indptr: Array  # of the block, which has some of their entries


@kernel
def begin(team: Any, level: Array, parent: Array) -> None:
    """No vertex is reached."""
    lo, hi = share(team, level.size)
    level[lo:hi] = ~level.dtype.type(0)
    parent[lo:hi] = ~parent.dtype.type(0)


@expanded
def _accept_list(own: Own, places: Array, parents: Array, lo: int, hi: int) -> None:
    """What a list offers to the places in words lo .. hi of bits."""
    for i in range(places.size):
        k = np.uint64(places[i])
        w, bit = np.int64(k >> np.uint64(6)), ONE << (k & np.uint64(63))
        if lo <= w and w < hi and own.reached[w] & bit == NONE:
            own.told[w] |= bit
            own.parent[k] = min(own.parent[k], parents[i])


@device
def _accept_bits(team: Any, own: Own, bits: Array, parents: Array, lo: int, hi: int) -> None:
    """What bits offer to the places in words lo .. hi of them."""
    at = NONE
    for w in range(lo):
        at += count_ones(word_of(bits, w))
    for w in range(lo, hi):
        if interrupted(team, w):
            return
        offered, known = word_of(bits, w), own.reached[w]
        own.told[w] |= offered & ~known
        base = np.uint64(w * WORD)
        if offered & known == NONE:  # mostly
            while offered != NONE:
                k = base + trailing_zeros(offered)
                own.parent[k] = min(own.parent[k], parents[at])
                offered &= offered - ONE
                at += ONE
            continue
        while offered != NONE:
            b = trailing_zeros(offered)
            if (known >> b) & ONE == NONE:
                own.parent[base + b] = min(own.parent[base + b], parents[at])
            offered &= offered - ONE
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
    bits in the words of `seen`, since these have 64 places of one member or of the other.
    """
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
        left, base = own.told[w], np.uint64(w * WORD)
        if left == NONE:
            continue
        own.reached[w] |= left
        if sampled:
            if w >= after:
                after, low = w + apart, not low
                b = trailing_zeros(left) if low else np.uint64(63) - leading_zeros(left)
                entries = _entries(own, base + b, shape)
            arcs += entries * np.int64(count_ones(left))
        while left != NONE:
            k = base + trailing_zeros(left)
            left &= left - ONE
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
    for w in range(own.told.size):
        left = own.told[w]
        while left != NONE:
            own.listed[at] = np.uint64(w * WORD) + trailing_zeros(left)
            left &= left - ONE
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
    lo, hi = share(team, own.told.size)
    size = words_for(own.level.size, words)
    for s in range(starts.size - 1):
        offered = words[starts[s] : starts[s + 1]]
        if offered.size < 2 * size:
            half = offered.size // 2
            _accept_list(own, offered[:half], offered[half:], lo, hi)
        else:
            _accept_bits(team, own, offered[:size], offered[size:], lo, hi)
    count, arcs = _settle(team, own, depth, columns, gaps, shape, lo, hi)
    atomic_add(totals, 0, count)
    atomic_add(totals, 1, arcs)
    if barrier(team):
        return
    if team.rank == 0 and totals[0] < own.listed.size:
        _list_told(own)
