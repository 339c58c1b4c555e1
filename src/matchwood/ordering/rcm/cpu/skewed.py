"""Graphs in which a few vertices have most of the arcs, as in R-MAT: levels, then the order.

Levels alone are found without an order.  An order reads all arcs of the hubs, while here free
vertices look for a placed neighbour and stop at the first.  The queue then holds the levels one
after the other, each in any order; that is enough for their widths and for the last one.  On R-MAT
graphs it takes a third of the time of an order.

When the levels are known, a team orders one after the other from the side of the children: each
vertex of a level reads the places of all its neighbours, and the least is that of its parent, since
no other level is placed but earlier ones.  Then the level is sorted by (place of the parent,
degree, vertex).  No member waits for the one that has the hub, or that sorts its children.

Narrow levels are left to member 0, until one is wide.

Races.  A vertex gets its mark by an atomic minimum from its parents' side, and from its own side by
the one member that looks around for it.  A mark of the level that is being found counts as free
there, so it does not matter whether it is seen.  Places are read in one phase and written in
another; every vertex is written once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    advance,
    atomic_min,
    barrier,
    device,
    fail,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    stopping,
    store_relaxed,
)
from matchwood.engines.cpu.hints import prefetch_write, trailing_zeros
from matchwood.ordering.rcm.cpu.children import (
    BINS,
    BROKEN,
    CUT,
    EVERYTHING,
    FREE,
    ONE,
    PLACED,
    WHOLE,
    ZERO,
    Csr,
    Sorter,
    delay,
    fetch_rows,
    note,
    scattered,
    sort_long,
)
from matchwood.primitives.sort import radix_sort
from matchwood.primitives.sort.cpu import AHEAD, DIGITS, Scratch, scratch, write_places

Array = np.ndarray[Any, Any]

PARENTS = 64  # vertices of a level that a member takes at a time
FEW_PARENTS = 256  # for each member; of fewer, all members read a part of each row
CHILDREN = 1 << 11  # free vertices that a member takes at a time
TEAM = 4  # members from which on that is faster: 2 took 1.15 of the time, 4 took .95, 16 took .6
WIDE_ARCS = 1 << 14  # arcs; a level with fewer is left to one member

_LINE = 16  # words of two cache lines; what different members write is so far apart
_NOWHERE = -1  # as an unsigned number: the place of a vertex that has none


class Search(NamedTuple):
    """What a search needs beside the queue."""

    lists: Array  # (members, n): vertices that a member has placed in this step
    free: Array  # the free vertices of each chunk of CHILDREN
    left: Array  # how many, for each chunk; -1: all that are marked so
    sums: Array  # (members, _LINE): vertices placed in this step, their arcs, free vertices
    solo: Array  # what member 0 did alone
    bounds: Array  # the levels found: where each begins in the queue, and the end
    arcs: Array  # of each level
    wide: Any  # a level with fewer arcs is left to member 0


@device
def _row(indptr: Array, v: Any) -> Any:
    return np.uint64(indptr[v + indptr.dtype.type(1)]) - np.uint64(indptr[v])


@device
def _from_parents(
    csr: Csr, mark: Array, queue: Array, lo: Any, hi: Any, part: Any, parts: Any, value: Any,
    found: Array, at: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """List children of places lo to hi; returns the end of the list, and their arcs.

    Only those are looked for that are in this part of their parent's row.
    """
    indptr, indices = csr.indptr, csr.indices
    arcs = ZERO
    for i in range(lo, hi):
        fetch_rows(indptr, indices, queue, i, hi)
        u = queue[i]
        row, size = np.uint64(indptr[u]), _row(indptr, u)
        for k in range(row + size * part // parts, row + size * (part + ONE) // parts):
            v = indices[k]
            if load_relaxed(mark, v) == FREE and atomic_min(mark, v, value) == FREE:
                found[at] = v
                at += ONE
                arcs += _row(indptr, v)
    return at, arcs


@device
def _from_children(
    csr: Csr, mark: Array, search: Search, chunk: Any, value: Any, found: Array, at: Any
) -> tuple[Any, Any, Any]:
    """List the free vertices of a chunk that have a placed neighbour.

    Returns the end of the list, their arcs, and how many vertices stay free.
    """
    indptr, indices = csr.indptr, csr.indices
    one = indices.dtype.type(1)
    first = np.uint64(chunk) * np.uint64(CHILDREN)
    count = search.left[chunk]
    listed = count >= 0
    end = (
        first + np.uint64(count)
        if listed
        else min(first + np.uint64(CHILDREN), np.uint64(mark.size))
    )
    kept, arcs = first, ZERO
    for x in range(first, end):
        v = search.free[x] if listed else indices.dtype.type(x)
        if load_relaxed(mark, v) != FREE:
            continue
        seen = False
        row, row_end = np.uint64(indptr[v]), np.uint64(indptr[v + one])
        for k in range(row, row_end):
            there = load_relaxed(mark, indices[k])
            if there != FREE and there != value:
                seen = True
                break
        if seen:
            store_relaxed(mark, v, value)
            found[at] = v
            at += ONE
            arcs += row_end - row
        elif row_end > row:
            search.free[kept] = v
            kept += ONE
    search.left[chunk] = np.int64(kept - first)
    return at, arcs, kept - first


@device
def _value(levels: Any) -> Any:
    """The mark of the level that comes after these: 1 and 2 in turn."""
    return np.uint8(2) - np.uint8(levels & ONE)


@device
def _by_children(arcs: Any, unseen: Any, m: int) -> Any:
    """As in `bfs`: a free vertex reads some m / arcs neighbours."""
    return np.float64(arcs) * np.float64(arcs) > np.float64(unseen) * np.float64(m)


@device
def _alone(
    team: Any, csr: Csr, mark: Array, queue: Array, begin: Any, end: Any, levels: Any, width: Any,
    arcs: Any, most: Any, search: Search,
) -> None:  # fmt: skip
    """Find levels until one is wide; `search.solo` gets what `find_levels` goes on from."""
    over = False
    while arcs < search.wide and not over:
        tail, arcs = _from_parents(
            csr, mark, queue, begin, end, ZERO, ONE, _value(levels), queue, end
        )
        width = max(width, tail - begin)
        over = tail == end or width >= most or stopping(team)
        if not over:
            search.arcs[levels] = arcs
            levels += ONE
            begin = end
            search.bounds[levels] = tail
        end = tail
    solo = search.solo
    solo[0], solo[1], solo[2], solo[3], solo[4] = begin, end, levels, width, arcs
    solo[5] = np.uint64(over)


@kernel
def find_levels(
    team: Any, csr: Csr, mark: Array, queue: Array, start: Any, at: Any, most: Any, search: Search,
    facts: Array, delays: Array,
) -> None:  # fmt: skip
    """Levels of the component of `start`; `facts` as from `go_on`.

    The placed neighbours of a free vertex are in the current level, or were placed in this step;
    `mark` distinguishes them by two values that alternate.

    Gives up when two neighbouring levels have `most` vertices.
    """
    me, sums, solo = team.me, search.sums, search.solo
    m, chunks = csr.indices.size, search.left.size
    begin, end, levels, width = at, at + ONE, ONE, ONE
    arcs, unseen = _row(csr.indptr, start), np.uint64(mark.size)
    if me == 0:
        queue[at] = start
        mark[start] = np.uint8(2)
        search.bounds[0], search.bounds[1], search.arcs[0] = at, end, arcs
    lo, hi = share(team, chunks)
    for chunk in range(lo, hi):
        search.left[chunk] = -1
    if barrier(team):
        return
    over = False
    while not over:
        by_children = _by_children(arcs, unseen, m)
        if team.size > 1 and arcs < search.wide and not by_children:
            if me == 0:
                _alone(team, csr, mark, queue, begin, end, levels, width, arcs, most, search)
            if barrier(team):
                return
            begin, end, levels, width, arcs = solo[0], solo[1], solo[2], solo[3], solo[4]
            over = solo[5] != ZERO
            if barrier(team):
                return
            continue
        value = _value(levels)
        found = queue if team.size == 1 else search.lists[me]
        first = end if team.size == 1 else ZERO
        last, mine, free = first, ZERO, ZERO
        if by_children:
            chunk = next_chunk(team, chunks, 1)
            while chunk >= 0:
                last, more, left = _from_children(csr, mark, search, chunk, value, found, last)
                mine += more
                free += left
                delay(team, delays)
                chunk = next_chunk(team, chunks, 1)
        elif end - begin < np.uint64(FEW_PARENTS * team.size):  # one may have most of the arcs
            last, mine = _from_parents(
                csr, mark, queue, begin, end, np.uint64(me), np.uint64(team.size), value, found,
                last,
            )  # fmt: skip
            delay(team, delays)
        else:
            size = np.int64(end - begin)
            chunk = next_chunk(team, size, PARENTS)
            while chunk >= 0:
                lo_, hi_ = begin + np.uint64(chunk), begin + np.uint64(min(chunk + PARENTS, size))
                last, more = _from_parents(
                    csr, mark, queue, lo_, hi_, ZERO, ONE, value, found, last
                )
                mine += more
                delay(team, delays)
                chunk = next_chunk(team, size, PARENTS)
        count = last - first
        sums[me, 0], sums[me, 1], sums[me, 2] = count, mine, free
        if barrier(team):
            return
        tail, arcs, free = end, ZERO, ZERO
        for member in range(team.size):
            if member == me and team.size > 1:
                for x in range(count):
                    queue[tail + x] = found[x]
            tail += sums[member, 0]
            arcs += sums[member, 1]
            free += sums[member, 2]
        unseen = free if by_children else unseen - min(unseen, tail - end)
        width = max(width, tail - begin)
        over = tail == end or width >= most
        if not over:
            if me == 0:
                search.arcs[levels] = arcs
                search.bounds[levels + ONE] = tail
            levels += ONE
            begin = end
        if me == 0:
            advance(team, np.int64(tail - end))
        end = tail
        if barrier(team):
            return
    lo, hi = share(team, np.int64(end - at))
    for x in range(at + np.uint64(lo), at + np.uint64(hi)):
        mark[queue[x]] = PLACED
    if me == 0:
        note(facts, end, levels, width, begin, CUT if width >= most else WHOLE)


def order_levels(
    run: Any, start: int, queue: Array, at: int, limit: int, most: Any = EVERYTHING
) -> None:
    """As `serial.order`, but the vertices of a level are in any order."""
    team = run.searching
    if run.search is None:
        rooms = (team.size, run.n) if team.size > 1 else (1, 1)
        chunks = -(-run.n // CHILDREN)
        bounds, arcs = (np.empty((2, run.n + 2), np.uint64) for _ in range(2))
        run.search = Search(
            scattered(rooms, run.unsigned), np.empty(run.n, run.unsigned),
            np.empty(chunks, np.int64), np.empty((team.size, _LINE), np.uint64),
            np.empty(_LINE, np.uint64), bounds, arcs, np.uint64(WIDE_ARCS),
        )  # fmt: skip
    which = int(queue is run.queue)  # the other one is kept
    search = run.search._replace(bounds=run.search.bounds[which], arcs=run.search.arcs[which])
    team.run(
        find_levels, run.csr, run.mark, queue, run.unsigned(start), np.uint64(at),
        np.uint64(most), search, run.facts, run.delays,
    )  # fmt: skip


# The order, level by level.


class Ranks(NamedTuple):
    """The vertices by (degree, vertex), and where each one is among them."""

    vertex: Array
    of: Array
    bits: Any  # of such a number


class Room(NamedTuple):
    """What members share while a level is ordered."""

    place: Array  # of each vertex
    keys: Array  # one for each vertex of the widest level
    other: Array
    words: Scratch
    bins: Array


@device
def _key(csr: Csr, v: Any, place: Array, before: Any, ranks: Ranks) -> Any:
    """(place of the parent behind `before`, rank); EVERYTHING if no neighbour has a place."""
    none = place.dtype.type(_NOWHERE)
    least = none
    row = csr.indices[
        np.uint64(csr.indptr[v]) : np.uint64(csr.indptr[v + csr.indices.dtype.type(1)])
    ]
    for k in range(row.size):
        least = min(least, place[row[k]])
    if least == none:
        return EVERYTHING
    return (np.uint64(least) - before) << ranks.bits | np.uint64(ranks.of[v])


@device
def _sort_together(team: Any, keys: Array, other: Array, words: Scratch) -> tuple[bool, bool]:
    """Sort keys; returns whether the result is in `other`, and whether the team stops.

    words.differing has, of each member, the bits that are set in any of its keys and in all.
    """
    some, every = ZERO, EVERYTHING
    for member in range(team.size):
        some |= words.differing[member, 0]
        every &= words.differing[member, 1]
    left = some ^ every
    there = False
    while left != ZERO:
        shift = trailing_zeros(left)
        left &= ~(np.uint64(DIGITS - 1) << shift)
        source, target = (other, keys) if there else (keys, other)
        if write_places(team, source, shift, np.uint64(DIGITS - 1), words):
            return there, True
        place = words.places[team.me]
        lo, hi = share(team, source.size)
        for i in range(lo, hi):
            key = source[i]
            digit = (key >> shift) & np.uint64(DIGITS - 1)
            to = np.uint64(place[digit])
            place[digit] = to + ONE
            target[to] = key
            prefetch_write(target, to + np.uint64(AHEAD))
        there = not there
        if barrier(team):
            return there, True
    return there, False


@device
def _put(
    queue: Array, room: Room, ranks: Ranks, sorted_: Array, begin: Any, lo: Any, hi: Any
) -> None:
    """Place the vertices of keys lo to hi of a level that begins at `begin`."""
    mask = (ONE << ranks.bits) - ONE
    for i in range(lo, hi):
        v = ranks.vertex[sorted_[i] & mask]
        queue[begin + i] = v
        room.place[v] = begin + i


@device
def _order_alone(
    csr: Csr, queue: Array, room: Room, ranks: Ranks, before: Any, begin: Any, end: Any
) -> bool:
    """Order a level; False: a vertex has no parent."""
    keys = room.keys
    for i in range(begin, end):
        key = _key(csr, queue[i], room.place, before, ranks)
        if key == EVERYTHING:
            return False
        keys[i - begin] = key
    sort_long(keys, end - begin, Sorter(ZERO, keys, room.other, room.bins))
    _put(queue, room, ranks, keys, begin, ZERO, end - begin)
    return True


@kernel
def order_found(
    team: Any, csr: Csr, queue: Array, bounds: Array, arcs: Array, wide: Any, ranks: Ranks,
    room: Room, delays: Array,
) -> None:  # fmt: skip
    """Order the levels that lie in the queue, each in any order; bounds.size - 1 of them."""
    me, words = team.me, room.words
    lo, hi = share(team, ranks.vertex.size)
    for i in range(lo, hi):
        room.place[i] = _NOWHERE
        ranks.of[ranks.vertex[i]] = i
    if barrier(team):
        return
    if me == 0:
        room.place[queue[bounds[0]]] = bounds[0]
    if barrier(team):
        return
    narrow = False  # whether member 0 has ordered the last level alone
    for level in range(1, bounds.size - 1):
        before, begin, end = bounds[level - 1], bounds[level], bounds[level + 1]
        if me == 0:
            advance(team, np.int64(end - begin))
        if arcs[level] < wide:
            narrow = True
            if me == 0 and not _order_alone(csr, queue, room, ranks, before, begin, end):
                fail(team, BROKEN, np.int64(queue[begin]))
            if stopping(team):
                return
            continue
        if narrow and barrier(team):
            return
        narrow = False
        size = np.int64(end - begin)
        some, every = ZERO, EVERYTHING
        chunk = next_chunk(team, size, PARENTS)
        while chunk >= 0:
            for i in range(np.uint64(chunk), np.uint64(min(chunk + PARENTS, size))):
                key = _key(csr, queue[begin + i], room.place, before, ranks)
                if key == EVERYTHING:
                    fail(team, BROKEN, np.int64(queue[begin + i]))
                room.keys[i] = key
                some |= key
                every &= key
            delay(team, delays)
            chunk = next_chunk(team, size, PARENTS)
        words.differing[me, 0], words.differing[me, 1] = some, every
        if barrier(team):
            return
        keys, other = room.keys[:size], room.other[:size]
        there, stops = _sort_together(team, keys, other, words)
        if stops:
            return
        lo, hi = share(team, size)
        if there:
            keys = other
        _put(queue, room, ranks, keys, begin, np.uint64(lo), np.uint64(hi))
        delay(team, delays)
        if barrier(team):
            return


def suits(run: Any) -> bool:
    """Whether levels are put in order as they were found, instead of searching again."""
    several = run.team is run.searching and run.team.size >= TEAM
    return bool(run.method == "auto" and several and run.shift <= 32)


def order_by_levels(run: Any, levels: int, which: int) -> None:
    """Put the levels in order that search `which` has left in the queue."""
    n, kind = run.n, run.unsigned
    bounds, arcs = run.search.bounds[which, : levels + 1], run.search.arcs[which, :levels]
    widest = int(np.diff(bounds).max())
    degrees = np.diff(run.csr.indptr).view(kind)
    bits = run.longest.bit_length()
    _, vertex = radix_sort(degrees, bits=bits, threads=run.team.size)
    ranks = Ranks(vertex.view(kind), np.empty(n, kind), np.uint64(run.shift))
    room = Room(
        np.empty(n, kind), np.empty(widest, np.uint64), np.empty(widest, np.uint64),
        scratch(run.team.size), np.empty(BINS, np.uint64),
    )  # fmt: skip
    run.team.run(
        order_found, run.csr, run.queue, bounds, arcs, run.search.wide, ranks, room, run.delays,
        errors=run.errors,
    )  # fmt: skip
