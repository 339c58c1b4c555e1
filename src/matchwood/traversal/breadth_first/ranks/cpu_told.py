"""What the ranks of a group tell of the frontier, where vertices lie in stripes.

Read stripes.py first.  Messages are read as unsigned words.  Places come as a list of words, or as
the bits of words where that is shorter: the length says which (engines/ranks/exchanges).

Bottom up, what the ranks of the column told is put together as it comes: the frontier has the bits
of one rank after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import device, expanded, inlined, interrupted, share
from matchwood.engines.cpu.hints import trailing_zeros
from matchwood.engines.ranks.grid import GridShape
from matchwood.engines.ranks.grid.cpu import ONE, row_id
from matchwood.primitives.frontier.cpu import flush, push

Array = np.ndarray[Any, Any]

BITS = 32  # of a word of a message about the frontier
WORD = 64  # bits of a word that a rank keeps
GAP = 16  # words between what two members count: else every count takes a cache line from others
NONE = np.uint64(0)


class Names(NamedTuple):
    """How to find the user's number of a vertex."""

    shape: GridShape
    shift: Any  # the bit of a column in the frontier is (rank of its owner) << shift | place
    given: Array  # by local id; empty where ids are names, and so are
    columns: Array  # those of the column group, by position


class Heard(NamedTuple):
    """What the ranks of a group told: those of rank s are words[starts[s] : starts[s + 1]].

    Its vertices are, by local id, base[s] + place * step[s], size[s] of them.
    """

    words: Array
    starts: Array
    base: Array
    step: Array
    size: Array


class Gaps(NamedTuple):
    """Bits with gaps between them, for each byte of such bits, or for less."""

    table: Array  # (256,)
    width: int  # bits that are looked up at a time


class Columns(NamedTuple):
    """What a rank knows of columns, by their local ids."""

    seen: Array  # bits: those it has offered to their owners, or knows to be reached
    fresh: Array  # bits: those found in this level, before they are offered
    best: Array  # of these the smallest vertex that leads to it


class Queue(NamedTuple):
    """Vertices that members append to; see primitives/frontier."""

    vertices: Array
    tail: Array
    buffers: Array  # one row for each member


def gaps(step: int) -> Gaps:
    """For bits that get `step` places apart."""
    width = next(width for width in (8, 4, 2, 1) if (width - 1) * step < WORD)
    table, every = np.zeros(256, np.uint64), np.arange(256)
    for k in range(width):
        table[every >> k & 1 == 1] |= np.uint64(1 << (k * step))
    return Gaps(table, width)


def spare_words(step: int) -> int:
    """Words that `spread_bits` may touch behind those that have bits."""
    return step + 1  # a last word of up to 64 places may have one alone


@expanded
def word_bits(words: Array) -> Any:
    """Bits of a word.  LLVM does not know `itemsize`, and would divide by it."""
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
def _is_bitmap(heard: Heard, s: int) -> bool:
    return bool(heard.starts[s + 1] - heard.starts[s] >= (heard.size[s] + BITS - 1) // BITS)


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
def close(team: Any, heard: Heard, open: Array) -> None:
    """Rows of the frontier, which the ranks of the row told, are open no more.

    Lists are short: one member reads them.
    """
    for s in range(heard.size.size):
        words = heard.words[heard.starts[s] : heard.starts[s + 1]]
        if _is_bitmap(heard, s):
            lo, hi = share(team, (words.size + 1) // 2)
            for i in range(lo, hi):
                open[s, i] &= ~word_of(words, i)
        elif team.rank == 0:
            for i in range(words.size):
                k = np.uint64(words[i])
                open[s, k >> np.uint64(6)] &= ~(ONE << (k & np.uint64(63)))


@inlined
def _each_told(team: Any, heard: Heard, s: int, visit: Any, what: Any, got: Any) -> Any:
    """got = visit(what, local id, got) for this member's share of what rank s told; the last."""
    base, step, start = heard.base[s], heard.step[s], heard.starts[s]
    bitmap, full = _is_bitmap(heard, s), what[0]
    lo, hi = share(team, heard.starts[s + 1] - start)
    for i in range(start + lo, start + hi):
        if interrupted(team, i):
            break
        if not bitmap:
            got = visit(what, np.uint64(base + np.int64(heard.words[i]) * step), got)
            continue
        left, first = np.uint64(heard.words[i]), (i - start) * BITS
        if full.size > 0:
            left &= full[s, first // WORD] >> np.uint64(first % WORD)
        while left != NONE:
            k = first + np.int64(trailing_zeros(left))
            left &= left - ONE
            got = visit(what, np.uint64(base + k * step), got)
    return got


@expanded
def _list_row(what: Any, v: Any, at: Any) -> Any:
    """Row v is listed if it has entries; `at` counts rows."""
    _, indptr, rows, buffer, alone = what
    entries = indptr[v + ONE] > indptr[v]
    if alone:  # no branch that may be mispredicted
        rows.vertices[at] = v
        at += np.int64(entries)
    elif entries:
        at = push(buffer, at, v, rows.vertices, rows.tail)
    return at


@expanded
def list_rows(team: Any, heard: Heard, full: Array, indptr: Array, rows: Queue) -> None:
    """The rows of the frontier that have entries.

    full[s]: the bits of those of stripe s that have some.  Caller: rows.tail is 0, and there is
    room for one row more.
    """
    alone, buffer = team.size == 1, rows.buffers[team.rank]
    at = np.int64(0)
    for s in range(heard.size.size):
        at = _each_told(team, heard, s, _list_row, (full, indptr, rows, buffer, alone), at)
    if alone:
        rows.tail[0] = at
    else:
        flush(buffer, at, rows.vertices, rows.tail)


@expanded
def spread_bits(
    gaps: Gaps, words: Array, lo: int, hi: int, base: Any, step: Any, into: Array
) -> None:
    """The places whose bits are in words lo .. hi are joined to `into`, with gaps between them.

    Place k is bit base + k step there.  Bits are collected until a word of `into` is complete.
    Caller: there are `spare_words` words behind those that have bits.
    """
    width, table = np.uint64(gaps.width), gaps.table
    mask, bits = (ONE << width) - ONE, np.uint64(word_bits(words))
    v = np.uint64(base) + np.uint64(lo) * bits * np.uint64(step)
    at, joined = v >> np.uint64(6), NONE
    for i in range(lo, hi):
        left = np.uint64(words[i])
        for _ in range(bits // width):
            piece, shift = table[left & mask], v & np.uint64(63)
            joined |= piece << shift
            left >>= width
            v += width * np.uint64(step)
            if v >> np.uint64(6) != at:
                into[at] |= joined
                joined = (piece >> ONE) >> (np.uint64(63) - shift)
                if v >> np.uint64(6) != at + ONE:
                    into[at + ONE] |= joined
                    joined = NONE
                at = v >> np.uint64(6)
    if joined != NONE:  # else the word may be another member's
        into[at] |= joined


@expanded
def set_columns(team: Any, heard: Heard, shift: Any, frontier: Array) -> None:
    """The bits of the columns that the ranks of the column told.

    Caller: the frontier is 0.
    """
    for s in range(heard.size.size):
        if interrupted(team, 0):
            return
        words, first = heard.words[heard.starts[s] : heard.starts[s + 1]], np.uint64(s) << shift
        if _is_bitmap(heard, s):
            into = frontier[first >> np.uint64(6) :]
            lo, hi = share(team, (words.size + 1) // 2)
            for i in range(lo, hi):
                into[i] = word_of(words, i)
        elif team.rank == 0:
            for i in range(words.size):
                k = first + np.uint64(words[i])
                frontier[k >> np.uint64(6)] |= ONE << (k & np.uint64(63))
