"""Kernels of a search where vertices lie in stripes: the block.  Read stripes.py first.

What goes to the owners, and what these make of it: cpu_offers.py.

Messages are read as unsigned words.  Places come as a list of words, or as the bits of words where
that is shorter: the length tells which (dist/exchanges/packing.py).

Races, top down.  Several members may reach a column at once.  The one that claims its bit lists it,
and all lower its parent by an atomic minimum once all columns are claimed.  Bits of the frontier
are joined to a word by an atomic or.  Bottom up there are no races: a member takes whole words of
places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.dist.grid import GridShape
from matchwood.dist.grid.cpu import ONE, column_id, row_id
from matchwood.primitives.cpu_hints import prefetch, trailing_zeros
from matchwood.primitives.frontier.cpu import claim_bit, flush, push
from matchwood.teams import (
    atomic_add,
    atomic_min,
    atomic_or,
    barrier,
    device,
    expanded,
    inlined,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
)

Array = np.ndarray[Any, Any]

BITS = 32  # of a word of `open` and of messages about the frontier
CHUNK = 64  # rows of the frontier that a member takes at a time
GAP = 16  # words between what two members count: else every count takes a cache line from others
WORDS = 32  # words of each stripe that a member takes at a time bottom up


class Names(NamedTuple):
    """How to find the user's number of a local vertex."""

    shape: GridShape
    given: Array  # by local id; empty where ids are names


class Heard(NamedTuple):
    """What the ranks of a group told: those of rank s are words[starts[s] : starts[s + 1]].

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
    best: Array  # of these the smallest vertex that leads to it


class Queue(NamedTuple):
    """Vertices that members append to; see primitives/frontier."""

    vertices: Array
    tail: Array
    buffers: Array  # one row for each member


class Found(NamedTuple):
    """What a level bottom up found, by stripe of the row group."""

    bits: Array  # (C, words) places
    parents: Array  # (C, words * BITS) those of a chunk of places from its first place on
    counts: Array  # (chunks, C + GAP)


@device
def _column_name(names: Names, x: Any) -> Any:
    return np.uint64(names.given[x]) if names.given.size > 0 else column_id(names.shape, x)


@device
def _row_name(names: Names, x: Any) -> Any:
    return np.uint64(names.given[x]) if names.given.size > 0 else row_id(names.shape, x)


@device
def _is_bitmap(heard: Heard, s: int) -> bool:
    return bool(heard.starts[s + 1] - heard.starts[s] >= (heard.size[s] + BITS - 1) // BITS)


@expanded
def _told_place(word: Any, left: Any, first: int, bitmap: bool) -> Any:
    """A place that was told: of the lowest bit left in a word of bits, or the word itself."""
    return first + np.int64(trailing_zeros(left)) if bitmap else np.int64(word)


@kernel
def close(team: Any, heard: Heard, open: Array) -> None:
    """One member.  Rows of the frontier, which the ranks of the row told, are open no more."""
    if team.rank > 0:
        return
    for s in range(heard.size.size):
        start, end = heard.starts[s], heard.starts[s + 1]
        if _is_bitmap(heard, s):
            for i in range(end - start):
                open[s, i] &= ~heard.words[start + i]
        else:
            for i in range(start, end):
                if interrupted(team, i):
                    return
                k = heard.words[i]
                open[s, k // np.uint32(BITS)] &= ~(np.uint32(1) << (k % np.uint32(BITS)))


@inlined
def _each_told(
    team: Any, heard: Heard, s: int, full: Array, visit: Any, what: Any, got: Any
) -> Any:
    """got = visit(what, local id, got) for this member's share of what rank s told; the last.

    Of vertices that are told as bits only those in `full`, the bits of the stripe, unless it is
    empty.
    """
    base, step, start = heard.base[s], heard.step[s], heard.starts[s]
    bitmap, some = _is_bitmap(heard, s), full.size > 0
    lo, hi = share(team, heard.starts[s + 1] - start)
    for i in range(start + lo, start + hi):
        if interrupted(team, i):
            break
        left = heard.words[i] if bitmap else np.uint32(1)
        if bitmap and some:
            left &= full[i - start]
        while left != np.uint32(0):
            k = _told_place(heard.words[i], left, (i - start) * BITS, bitmap)
            left &= left - np.uint32(1)
            got = visit(what, np.uint64(base + k * step), got)
    return got


@expanded
def _list_row(what: Any, v: Any, got: Any) -> Any:
    """Row v is listed if it has entries; `got` counts rows and entries."""
    indptr, rows, buffer, alone = what
    at, arcs = got
    entries = np.int64(indptr[v + ONE]) - np.int64(indptr[v])
    if alone:  # no branch that may be mispredicted
        rows.vertices[at] = v
        at += np.int64(entries > 0)
    elif entries > 0:
        at = push(buffer, at, v, rows.vertices, rows.tail)
    return at, arcs + entries


@kernel
def list_rows(
    team: Any, heard: Heard, full: Array, indptr: Array, rows: Queue, arcs: Array
) -> None:
    """The rows of the frontier that have entries, and how many entries.

    full[s]: the bits of those of stripe s that have some.  Caller: rows.tail and arcs are 0, and
    there is room for one row more.
    """
    alone, buffer = team.size == 1, rows.buffers[team.rank]
    got = (np.int64(0), np.int64(0))
    for s in range(heard.size.size):
        what = (indptr, rows, buffer, alone)
        got = _each_told(team, heard, s, full[s], _list_row, what, got)
    if alone:
        rows.tail[0] = got[0]
    else:
        flush(buffer, got[0], rows.vertices, rows.tail)
    atomic_add(arcs, 0, got[1])


@expanded
def _join_bits(words: Array, at: Any, bits: Any, alone: bool) -> None:
    if alone:
        words[at] |= bits
    elif bits != np.uint64(0):
        atomic_or(words, at, bits)


@expanded
def _set_column(what: Any, v: Any, got: Any) -> Any:
    """The bit of column v; those of one word are collected in `got`, (its place, bits)."""
    columns, frontier, alone = what
    at, bits = got
    if v >> np.uint64(6) != at:
        _join_bits(frontier, at, bits, alone)
        _join_bits(columns.seen, at, bits, alone)
        at, bits = v >> np.uint64(6), np.uint64(0)
    return at, bits | (ONE << (v & np.uint64(63)))


@kernel
def set_columns(team: Any, heard: Heard, frontier: Array, columns: Columns) -> None:
    """The bits of the columns that the ranks of the column told; they are seen."""
    alone = team.size == 1
    got = (np.uint64(0), np.uint64(0))
    for s in range(heard.size.size):
        what = (columns, frontier, alone)
        got = _each_told(team, heard, s, heard.words[:0], _set_column, what, got)
    if frontier.size > 0:
        _join_bits(frontier, got[0], got[1], alone)
        _join_bits(columns.seen, got[0], got[1], alone)


@expanded
def _has(bits: Array, v: Any) -> bool:
    x = np.uint64(v)
    return bool((bits[x >> np.uint64(6)] >> (x & np.uint64(63))) & ONE)


@expanded
def _follow_alone(rows: Any, u: Any, name: Any, columns: Columns, found: Array, at: int) -> int:
    """Follow the entries of row u, where no other member is at work."""
    indptr, indices = rows
    fresh, best = columns.fresh, columns.best
    for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + ONE])):
        v = indices[k]
        if _has(columns.seen, v):
            continue
        if _has(fresh, v):
            best[v] = min(best[v], name)
            continue
        fresh[np.uint64(v) >> np.uint64(6)] |= ONE << (np.uint64(v) & np.uint64(63))
        best[v] = name
        found[at] = v
        at += 1
    return at


@expanded
def _claim(rows: Any, u: Any, columns: Columns, found: Queue, buffer: Array, count: int) -> int:
    """The columns of row u that are new; their parents are lowered afterwards."""
    indptr, indices = rows
    for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + ONE])):
        v = indices[k]
        if not _has(columns.seen, v) and claim_bit(columns.fresh, np.int64(v)):
            columns.best[v] = ~columns.best.dtype.type(0)
            count = push(buffer, count, v, found.vertices, found.tail)
    return count


@expanded
def _lower(rows: Any, u: Any, name: Any, columns: Columns) -> None:
    """Parents of the new columns of row u."""
    indptr, indices = rows
    for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + ONE])):
        v = indices[k]
        if _has(columns.fresh, v) and name < load_relaxed(columns.best, v):
            atomic_min(columns.best, v, name)


@kernel
def top_down(
    team: Any, rows: Any, frontier: Array, names: Names, columns: Columns, found: Queue
) -> None:
    """Follow the entries of these rows; columns that are new go to `found`, with their parents."""
    kind, alone, buffer = columns.best.dtype.type, team.size == 1, found.buffers[team.rank]
    at = 0
    chunk = next_chunk(team, frontier.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, frontier.size)):
            u = np.uint64(frontier[i])
            if alone:
                name = kind(_row_name(names, u))
                at = _follow_alone(rows, u, name, columns, found.vertices, at)
            else:
                at = _claim(rows, u, columns, found, buffer, at)
        chunk = next_chunk(team, frontier.size, CHUNK)
    if alone:
        found.tail[0] = at
        return
    flush(buffer, at, found.vertices, found.tail)
    if barrier(team):
        return
    chunk = next_chunk(team, frontier.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, frontier.size)):
            u = np.uint64(frontier[i])
            _lower(rows, u, kind(_row_name(names, u)), columns)
        chunk = next_chunk(team, frontier.size, CHUNK)


@device
def _search_row(rows: Any, v: Any, frontier: Array, names: Names) -> Any:
    """The first column of row v in the frontier: (whether there is one, its name)."""
    indptr, indices = rows
    six, low = indices.dtype.type(6), indices.dtype.type(63)
    for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + ONE])):
        u = indices[k]
        if (frontier[u >> six] >> np.uint64(u & low)) & ONE:
            return True, _column_name(names, u)
    return False, np.uint64(0)


@kernel
def bottom_up(
    team: Any, rows: Any, frontier: Array, names: Names, open: Array, found: Found
) -> None:
    """Open rows look for their first column in the frontier, which is the smallest.

    The rows of the next word are prefetched: most of them are left after few entries.
    """
    indptr, indices = rows
    stripes, words = open.shape
    kind = found.parents.dtype.type
    chunk = next_chunk(team, words, WORDS)
    while chunk >= 0:
        counts = found.counts[chunk // WORDS]
        counts[:] = 0
        end = min(chunk + WORDS, words)
        for w in range(chunk, end):
            for s in range(stripes):
                # only in this chunk: others change the next one
                ahead = open[s, w + 1] if w + 1 < end else np.uint32(0)
                while ahead != np.uint32(0):
                    place = (w + 1) * BITS + np.int64(trailing_zeros(ahead))
                    ahead &= ahead - np.uint32(1)
                    prefetch(indices, np.uint64(indptr[np.uint64(place * stripes + s)]))
                left, bits = open[s, w], np.uint32(0)
                while left != np.uint32(0):
                    b = trailing_zeros(left)
                    left &= left - np.uint32(1)
                    v = np.uint64((w * BITS + np.int64(b)) * stripes + s)
                    hit, name = _search_row(rows, v, frontier, names)
                    if hit:
                        bits |= np.uint32(1) << np.uint32(b)
                        found.parents[s, chunk * BITS + counts[s]] = kind(name)
                        counts[s] += 1
                found.bits[s, w] = bits
                open[s, w] &= ~bits
        chunk = next_chunk(team, words, WORDS)
