"""The vertices of a round, sorted into its sub-rounds by a team (__init__.py has the rule).

And how the active ones of a sub-round choose: Louvain and label propagation differ only in `best`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.communities.subrounds import subrounds_of
from matchwood.engines.cpu import (
    barrier,
    device,
    expanded,
    inlined,
    interrupted,
    load_relaxed,
    next_chunk,
    share,
    store_relaxed,
)
from matchwood.engines.cpu.hints import prefetch
from matchwood.primitives.hashing import GOLDEN
from matchwood.primitives.hashing.cpu import mix64
from matchwood.primitives.hashing.reference import mix64_number
from matchwood.primitives.tally.cpu import Rows, Sums, labels_around

Array = np.ndarray[Any, Any]

CHUNK = 256  # vertices of a sub-round that a member takes at a time, at most ...
CHUNK_ENTRIES = 1 << 11  # ... and as many entries on average, where that are fewer
SMALLEST_CHUNK = 64  # else members take chunks faster than one counter can deal them out
LINE = 16  # words between the counts of two members, which share no cache line
AHEAD = 6  # vertices between the one whose row is prefetched and the one that is read
ACTIVE, SEEN = 1, 2  # bits: the vertex is active; it was active at some time
AWAKE = ACTIVE | SEEN
MOST_TIED = 0.9  # part of the vertices; where fewer have neighbours, only those are sorted


class Split(NamedTuple):
    """Sub-rounds of a graph; all of it is written by `split_round`, but for `start`."""

    order: Array  # the vertices by sub-round, then by number
    only: Array  # the vertices that are sorted, ascending; empty: all
    number: Array  # the sub-round of each vertex
    begins: Array  # where each sub-round begins in `order`, and the end
    counts: Array  # (members, sub-rounds), and a gap: see LINE
    places: Array  # the same
    start: Any  # what hash2 makes of the seed


def split_of(
    n: int, members: int, kind: Any, seed: int, indptr: Array | None = None, tied: int = 0
) -> Split:
    """Room for the sub-rounds of n vertices; with `indptr`, of those `tied` that have neighbours.

    These are few in contracted graphs of a skewed one, where many vertices have no neighbours.
    """
    parts = subrounds_of(n)
    only = np.empty(0, kind)
    if indptr is not None and 0 < tied < MOST_TIED * n:
        only = np.flatnonzero(indptr[1:] != indptr[:-1]).astype(kind)
    counts, places = (np.empty((members, parts + LINE), np.int64) for _ in range(2))
    return Split(
        np.empty(only.size or n, kind), only, np.empty(n, np.uint8), np.zeros(parts + 1, np.int64),
        counts, places, np.uint64(mix64_number(seed + GOLDEN)),
    )  # fmt: skip


def chunk_of(entries: int, vertices: int) -> int:
    """How many vertices a member takes at a time.

    Where rows are long, one large chunk of a skewed graph may have more entries than all others
    that a member takes in a sub-round.
    """
    return min(CHUNK, max(SMALLEST_CHUNK, CHUNK_ENTRIES * vertices // max(entries, 1)))


@expanded
def wake(active: Array, v: Any) -> None:
    """Vertex v becomes active.

    Most are already: to write that again would take a cache line from other members, who read it.
    """
    if load_relaxed(active, v) != AWAKE:
        store_relaxed(active, v, AWAKE)


@device
def split_round(team: Any, split: Split, round_number: Any) -> bool:
    """Sort the vertices by sub-round.  True: the team stops."""
    n, parts = split.order.size, split.begins.size - 1
    mine, places = split.counts[team.me], split.places[team.me]
    for p in range(parts):
        mine[p] = 0
    lo, hi = share(team, n)
    mask = np.uint64(parts - 1)
    power = (parts & (parts - 1)) == 0
    turn = np.uint64(round_number)
    some = split.only.size > 0
    for i in range(lo, hi):
        if interrupted(team, i):
            return True
        v = split.only[i] if some else split.order.dtype.type(i)
        h = mix64(mix64(split.start ^ np.uint64(v)) ^ turn)
        turn_of_v = h & mask if power else h % np.uint64(parts)
        split.number[v] = turn_of_v
        mine[turn_of_v] += 1
    if barrier(team):
        return True
    place = np.int64(0)
    for p in range(parts):
        if team.me == 0:
            split.begins[p] = place
        for member in range(team.size):
            if member == team.me:
                places[p] = place
            place += split.counts[member, p]
    if team.me == 0:
        split.begins[parts] = place
    for i in range(lo, hi):
        v = split.only[i] if some else split.order.dtype.type(i)
        turn_of_v = np.uint64(split.number[v])
        split.order[places[turn_of_v]] = v
        places[turn_of_v] += 1
    return barrier(team)


@expanded
def is_inside(rows: Rows, labels: Array, v: Any) -> bool:
    """Whether all neighbours of v have its label, so that it has no other to take."""
    one = np.uint64(1)
    own = labels[v]
    for k in range(
        np.uint64(rows.indptr[np.uint64(v)]), np.uint64(rows.indptr[np.uint64(v) + one])
    ):
        if labels[rows.indices[k]] != own:
            return False
    return True


@inlined
def choose(
    team: Any, best: Any, rows: Rows, state: Any, sums: Sums, numbers: Any, order: Array,
    begin: int, end: int, listed: bool,
) -> int:  # fmt: skip
    """Find the targets of order[begin:end], or of begin..end themselves if they are not listed.

    best(rows, state, sums, member, numbers, v) is the label that v takes.  Vertices that want
    another than their own are moved to the front of their chunk.  Returns their number.
    """
    moved = 0
    chunk = next_chunk(team, end - begin, state.chunk)
    while chunk >= 0:
        first = begin + chunk
        last = min(first + state.chunk, end)
        place = first
        for i in range(first, last):
            if listed and i + AHEAD < last:
                prefetch(rows.indices, np.uint64(rows.indptr[np.uint64(order[i + AHEAD])]))
            v = order[i] if listed else order.dtype.type(i)
            if state.active[v] & ACTIVE == 0:
                continue
            state.active[v] = SEEN
            if not labels_around(sums, team.me, rows, state.labels, v):
                continue
            target = best(rows, state, sums, team.me, numbers, v)
            if target != state.labels[v]:
                state.target[v] = target
                order[place] = v
                place += 1
        state.movers[chunk // state.chunk] = place - first
        moved += place - first
        chunk = next_chunk(team, end - begin, state.chunk)
    return moved
