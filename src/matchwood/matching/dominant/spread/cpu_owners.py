"""What the owners of vertices do in a round of dist.py; the blocks' part is cpu_blocks.py.

The owner of a vertex keeps the candidates of all C blocks of its row group, and points along the
first of them.  Of the vertices that point at it, it keeps the first in the order of edges.

Two vertices that point at each other are matched in the round in which the second of them points.
Both owners see it then, without a reply:

    `choose`   k points at v, and v has pointed at k before.  As long as k is free, those that
               point at it are free too, for they wait for k.  v is the first of all free
               neighbours of k, so it is the first of those that wait: the one that is kept.
    `settle`   v points at k now, and k points at v, since this round or an earlier one.

Races.  A member of the team works on its own range of places and reads all messages for it, so no
two members write one word.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.matching.cpu_rows import Ties
from matchwood.matching.dominant.spread.cpu_records import (
    Out,
    begin_records,
    get_bits,
    nobody,
    put_bits,
)
from matchwood.primitives.cpu_hints import prefetch
from matchwood.primitives.edge_order.cpu import prefers
from matchwood.teams import Team, barrier, device, interrupted, kernel, share

Array = np.ndarray[Any, Any]


AHEAD = 16  # vertices between the one whose words are prefetched and the one that is looked at


class Candidates(NamedTuple):
    """By place * C + rank of the row."""

    ids: Array  # the grid's ids; empty where they are the names
    names: Array
    bits: Array  # weights; 0 for none


class Owned(NamedTuple):
    """A rank's own vertices, by place."""

    names: Array
    pointer: Array  # the name of the vertex that this one points at, or nobody
    weight: Array  # the bits of that edge, or 0
    waiter: Array  # of those that point at this one the first, or nobody
    waiter_weight: Array
    stamp: Array  # the last round in which a candidate changed
    queue: Array  # scratch: the vertices whose pointer changes, in each member's range
    matched: Array  # those matched in this round, in each member's range; `settle` joins them


@device
def _best(k: Any, C: int, own: Any, candidates: Candidates, ties: Ties) -> Any:
    """Which of the candidates of place k comes first; -1 for none."""
    seed, by_hash = ties
    best = np.int64(-1)
    for at in range(np.int64(k) * C, (np.int64(k) + 1) * C):
        w = candidates.bits[at]
        if w <= 0:
            continue
        if best < 0 or prefers(
            w, own, candidates.names[at], candidates.bits[best], own, candidates.names[best],
            seed, by_hash,
        ):  # fmt: skip
            best = np.int64(at)
    return best


@kernel
def choose(
    team: Team, records: Array, starts: Array, width: int, round_: int, ties: Ties,
    candidates: Candidates, owned: Owned, count: Array, out: Out,
) -> None:  # fmt: skip
    """Store the candidates that came, and point again where the first has changed.

    `starts` says where the records of each rank of the row begin.  count[member] = matched
    vertices.  A packet is (place, name, weight): of the vertex pointed at, of the one that points,
    and of the edge.  Caller: out.counts is 0.
    """
    C, p = starts.size - 1, out.counts.shape[1]
    renamed = candidates.ids.size > 0
    lo, hi = share(team, owned.pointer.size)
    end = lo
    for c in range(C):
        for at in range(starts[c], starts[c + 1], width):
            if interrupted(team, at - starts[c]):
                return
            soon = np.uint64(records[min(at + AHEAD * width, starts[c + 1] - width)])
            prefetch(owned.stamp, soon)
            prefetch(candidates.names, soon * np.uint64(C))
            prefetch(candidates.bits, soon * np.uint64(C))
            k = np.int64(records[at])
            if k < lo or k >= hi:
                continue
            slot = k * C + c
            candidates.names[slot] = records[at + 1 + renamed]
            if renamed:
                candidates.ids[slot] = records[at + 1]
            candidates.bits[slot] = get_bits(records, at + 2 + renamed, candidates.bits)
            if owned.stamp[k] != round_:
                owned.stamp[k] = round_
                owned.queue[end] = k
                end += 1
    counts = out.counts[team.rank]
    left, matched = lo, lo
    for i in range(lo, end):
        if interrupted(team, i):
            return
        soon = np.uint64(owned.queue[min(i + AHEAD, end - 1)])
        prefetch(owned.pointer, soon)
        prefetch(owned.waiter, soon)
        prefetch(candidates.bits, soon * np.uint64(C))
        k = owned.queue[i]
        best = _best(k, C, owned.names[k], candidates, ties)
        if best < 0:
            owned.pointer[k] = nobody(owned.pointer)
            owned.weight[k] = 0
            continue
        name = candidates.names[best]
        if name == owned.pointer[k]:
            continue
        owned.pointer[k] = name
        owned.weight[k] = candidates.bits[best]
        if owned.waiter[k] == name:
            owned.matched[matched] = k
            matched += 1
        target = candidates.ids[best] if renamed else name
        counts[np.int64(target) % p] += 1
        owned.queue[left] = k
        left += 1
    count[team.rank] = matched - lo
    if barrier(team):
        return
    places = out.places[team.rank]
    begin_records(team, out, places)
    for i in range(lo, left):
        k = owned.queue[i]
        target = np.int64(owned.pointer[k])
        if renamed:
            target = np.int64(candidates.ids[_best(k, C, owned.names[k], candidates, ties)])
        at = places[target % p] * out.width
        places[target % p] += 1
        out.words[at] = target // p
        out.words[at + 1] = owned.names[k]
        put_bits(out.words, at + 2, owned.weight, k)


@kernel
def settle(
    team: Team, packets: Array, width: int, ties: Ties, owned: Owned, count: Array, bitmap: Array,
    told: Array,
) -> None:  # fmt: skip
    """Match vertices that point at each other; the others wait for the one they point at.

    told[0] = matched vertices; owned.matched holds them, or `bitmap` where that is shorter.
    Caller: count is that of `choose`, and the bitmap is 0.
    """
    seed, by_hash = ties
    lo, hi = share(team, owned.pointer.size)
    matched = lo + count[team.rank]
    for at in range(0, packets.size, width):
        if interrupted(team, at):
            return
        k = np.int64(packets[at])
        if k < lo or k >= hi:
            continue
        name, w = packets[at + 1], get_bits(packets, at + 2, owned.weight)
        if owned.pointer[k] == name:
            owned.matched[matched] = k
            matched += 1
            continue
        if owned.waiter[k] != nobody(owned.waiter) and not prefers(
            w, owned.names[k], name, owned.waiter_weight[k], owned.names[k], owned.waiter[k],
            seed, by_hash,
        ):  # fmt: skip
            continue
        owned.waiter[k] = name
        owned.waiter_weight[k] = w
    count[team.rank] = matched - lo
    if barrier(team) or team.rank > 0:
        return
    end = np.int64(0)
    for member in range(team.size):
        start = share(Team(member, team.size, team.words), owned.pointer.size)[0]
        for i in range(start, start + count[member]):
            owned.matched[end] = owned.matched[i]
            end += 1
    told[0] = end
    width_of_word = 8 * bitmap.itemsize
    if end >= bitmap.size:
        for i in range(end):
            k = np.int64(owned.matched[i])
            bitmap[k // width_of_word] |= bitmap.dtype.type(1) << bitmap.dtype.type(
                k % width_of_word
            )
