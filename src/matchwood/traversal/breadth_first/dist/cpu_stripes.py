"""Kernels of a search where vertices lie in stripes.  Read stripes.py first.

Messages are read as unsigned words.  Places come as a list of words, or as the bits of words where
that is shorter: the length tells which (dist/exchanges/packing.py).  Places that come with parents
have these behind them, in the order of the list or of the bits.

`best[v]` of a column, by its local id: FREE (all ones) before this rank has seen it, DONE (0) once
it has told the owner, and in between the smallest vertex that leads to it, plus one.

Races, top down.  Several members may reach v at once: `best[v]` only goes down, by an atomic
minimum, and the member that finds FREE lists v.  Bottom up there are none: a member takes whole
words of places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.dist.grid import GridShape
from matchwood.dist.grid.cpu import ONE, column_id, column_place, row_id
from matchwood.primitives.cpu_hints import prefetch, trailing_zeros
from matchwood.teams import (
    atomic_add,
    atomic_min,
    device,
    expanded,
    inlined,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    stopping,
)

Array = np.ndarray[Any, Any]

BITS = 32  # of a word of `open` and of messages about the frontier
CHUNK = 64  # rows of the frontier that a member takes at a time
WORDS = 32  # words of each stripe that a member takes at a time bottom up
PLACES = WORDS * BITS
DONE = 0


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


class Own(NamedTuple):
    """Own vertices by place; all ones, that is -1, where they are not reached."""

    level: Array
    parent: Array
    fresh: Array  # those that were reached in this level
    best: Array  # of columns


class Found(NamedTuple):
    """What a level bottom up found, by stripe of the row group."""

    bits: Array  # (C, words) places
    parents: Array  # (C, words * BITS) those of a chunk of places from its first place on
    counts: Array  # (chunks, C)


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
def _each_told(team: Any, heard: Heard, s: int, visit: Any, what: Any, got: Any) -> Any:
    """got = visit(what, s, place, local id, got) for each vertex that rank s told; the last one."""
    base, step, start = heard.base[s], heard.step[s], heard.starts[s]
    bitmap = _is_bitmap(heard, s)
    for i in range(start, heard.starts[s + 1]):
        if interrupted(team, i):
            break
        left = heard.words[i] if bitmap else np.uint32(1)
        while left != np.uint32(0):
            k = _told_place(heard.words[i], left, (i - start) * BITS, bitmap)
            left &= left - np.uint32(1)
            got = visit(what, s, np.uint64(k), np.uint64(base + k * step), got)
    return got


@expanded
def _list_row(what: Any, s: int, k: Any, v: Any, got: Any) -> Any:
    """Row v is open no more, and is listed if it has entries; `got` counts rows and entries."""
    open, indptr, rows = what
    at, arcs = got
    bit = np.uint32(1) << np.uint32(k & np.uint64(BITS - 1))
    open[s, k // np.uint64(BITS)] &= ~bit
    entries = np.int64(indptr[v + ONE]) - np.int64(indptr[v])
    rows[at] = v
    return at + np.int64(entries > 0), arcs + entries


@kernel
def list_rows(
    team: Any, heard: Heard, open: Array, indptr: Array, rows: Array, totals: Array
) -> None:
    """One member.  `close`, and list the rows that have entries.  totals: rows, entries."""
    if team.rank > 0:
        return
    got = (np.int64(0), np.int64(0))
    for s in range(heard.size.size):
        got = _each_told(team, heard, s, _list_row, (open, indptr, rows), got)
    totals[0], totals[1] = got


@expanded
def _set_column(frontier: Array, s: int, k: Any, v: Any, got: Any) -> Any:
    frontier[v >> np.uint64(6)] |= ONE << (v & np.uint64(63))
    return got


@kernel
def set_columns(team: Any, heard: Heard, frontier: Array) -> None:
    """One member.  The bits of the columns that the ranks of the column told, by local ids."""
    if team.rank > 0:
        return
    for s in range(heard.size.size):
        _each_told(team, heard, s, _set_column, frontier, 0)


@kernel
def top_down(
    team: Any, rows: Any, frontier: Array, names: Names, best: Array, found: Array, tail: Array
) -> None:
    """Follow the entries of these rows; columns that were FREE go to `found`."""
    indptr, indices = rows
    free, plain = ~best.dtype.type(0), team.size == 1
    at = 0
    chunk = next_chunk(team, frontier.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, frontier.size)):
            u = np.uint64(frontier[i])
            name = best.dtype.type(_row_name(names, u) + ONE)
            for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + ONE])):
                v = indices[k]
                if plain:
                    seen = best[v]
                    if name < seen:
                        best[v] = name
                        if seen == free:
                            found[at] = v
                            at += 1
                elif name < load_relaxed(best, v) and atomic_min(best, v, name) == free:
                    found[atomic_add(tail, 0, 1)] = v
        chunk = next_chunk(team, frontier.size, CHUNK)
    if plain:
        tail[0] = at


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


@kernel
def pack_rows(team: Any, found: Found, listed: Array, words: Array, starts: Array) -> None:
    """One member.  A message for each stripe: places, as a list where `listed`, then parents."""
    if team.rank > 0:
        return
    kind, width = words.dtype.type, 8 * words.itemsize
    for s in range(listed.size):
        at = starts[s]
        if listed[s]:
            for w in range(found.bits.shape[1]):
                if interrupted(team, w):
                    return
                left = found.bits[s, w]
                while left != np.uint32(0):
                    words[at] = kind(w * BITS + np.int64(trailing_zeros(left)))
                    left &= left - np.uint32(1)
                    at += 1
        else:
            each = width // BITS
            size = starts[s + 1] - starts[s]
            for chunk in range(found.counts.shape[0]):
                size -= found.counts[chunk, s]
            for i in range(size):
                word = np.uint64(found.bits[s, each * i])
                if each == 2:
                    word |= np.uint64(found.bits[s, 2 * i + 1]) << np.uint64(BITS)
                words[at + i] = kind(word)
            at += size
        for chunk in range(found.counts.shape[0]):
            if stopping(team):
                return
            first = chunk * PLACES
            for i in range(first, first + found.counts[chunk, s]):
                words[at] = found.parents[s, i]
                at += 1


@kernel
def count_columns(team: Any, found: Array, shape: GridShape, counts: Array) -> None:
    """One member.  How many of these columns each rank of the column owns."""
    if team.rank > 0:
        return
    for i in range(found.size):
        if interrupted(team, i):
            return
        counts[column_place(shape, found[i])[0]] += 1


@kernel
def pack_columns(
    team: Any,
    found: Array,
    shape: GridShape,
    best: Array,
    heard: Heard,
    counts: Array,
    words: Array,
) -> None:
    """One member.  A message for each rank of the column, and these columns are DONE.

    heard.starts says where they begin in `words`, which are 0; `counts` are as `count_columns`
    found them, and are used up.
    """
    if team.rank > 0:
        return
    kind, width = words.dtype.type, words.dtype.type(8 * words.itemsize)
    one = kind(1)
    for i in range(found.size):
        if interrupted(team, i):
            return
        v = np.uint64(found[i])
        s, place = column_place(shape, v)
        start, size = heard.starts[s], heard.starts[s + ONE] - heard.starts[s]
        k = kind(place)
        if size < 2 * ((heard.size[s] + 8 * words.itemsize - 1) // (8 * words.itemsize)):
            counts[s] -= 1
            words[start + counts[s]] = k
            words[start + size // 2 + counts[s]] = best[v] - one
            best[v] = kind(DONE)
        else:
            words[start + np.int64(k // width)] |= one << (k % width)
    for s in range(counts.size):
        start, end = heard.starts[s], heard.starts[s + 1]
        size = (heard.size[s] + 8 * words.itemsize - 1) // (8 * words.itemsize)
        if end - start < 2 * size:
            continue
        at = start + size
        for w in range(size):
            if interrupted(team, w):
                return
            left = words[start + w]
            while left != kind(0):
                k = w * (8 * words.itemsize) + np.int64(trailing_zeros(left))
                left &= left - one
                v = np.uint64(heard.base[s] + k * heard.step[s])
                words[at] = best[v] - one
                best[v] = kind(DONE)
                at += 1


@device
def _offer(own: Own, k: Any, offer: Any, depth: Any, shape: GridShape, at: int) -> int:
    """Own vertex k is offered a parent; returns how many vertices are reached in this level."""
    level, parent = own.level, own.parent
    if level[k] == ~level.dtype.type(0):
        level[k] = depth
        parent[k] = offer
        own.best[np.uint64(k) * shape.C + shape.c] = level.dtype.type(DONE)
        own.fresh[at] = k
        return at + 1
    if level[k] == depth:
        parent[k] = min(parent[k], offer)
    return at


@kernel
def accept(
    team: Any, words: Array, starts: Array, depth: int, own: Own, shape: GridShape, tail: Array
) -> None:
    """One member.  The smallest of the parents that are offered; tail[0]: vertices now reached."""
    if team.rank > 0:
        return
    width = 8 * words.itemsize
    size = (own.level.size + width - 1) // width
    below, one = words.dtype.type(depth), words.dtype.type(1)
    at = 0
    for s in range(starts.size - 1):
        start, end = starts[s], starts[s + 1]
        if end - start < 2 * size:
            half = (end - start) // 2
            for i in range(start, start + half):
                if interrupted(team, i):
                    return
                at = _offer(own, words[i], words[i + half], below, shape, at)
            continue
        value = start + size
        for w in range(size):
            if interrupted(team, w):
                return
            left = words[start + w]
            while left != words.dtype.type(0):
                k = np.uint64(w * width) + np.uint64(trailing_zeros(left))
                left &= left - one
                at = _offer(own, k, words[value], below, shape, at)
                value += 1
    tail[0] = at
