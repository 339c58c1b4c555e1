"""What the owners of vertices do in a round of ranks; the blocks' part is cpu_blocks.py.

The owner of a vertex keeps the candidates of all C blocks of its row group, and points along the
first of them.  Of the vertices that point at it, it keeps the first in the order of edges.

Two vertices that point at each other are matched in the round in which the second of them points.
Both owners see it then, without a reply:

    `choose`   k points at v, and v has pointed at k before.  As long as k is free, those that
               point at it are free too, for they wait for k.  v is the first of all free
               neighbours of k, so it is the first of those that wait: the one that is kept.
    `settle`   v points at k now, and k points at v, since this round or an earlier one.

Races.  In `choose` members store the records, a stretch at a time: a place gets one from each rank
at most, so no two are for one slot.  Of the members that have records for a place the one that
stamps it, by compare-and-swap, queues it.  In the first round nearly all places have records, and
members look at all of them then.  In `settle` members read the packets in stretches, too.  For the
first of those that wait for a vertex two words change together, so a member holds the vertex
meanwhile.  The order of queues is arbitrary, and nothing depends on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Team,
    atomic_cas,
    atomic_or,
    barrier,
    device,
    expanded,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    store_release,
)
from matchwood.engines.cpu.hints import prefetch
from matchwood.matching.cpu_rows import Ties
from matchwood.matching.dominant.ranks.cpu_records import (
    Came,
    Candidates,
    Out,
    begin_part,
    begin_records,
    get_bits,
    nobody,
    put_bits,
    records_of,
    stretch_of,
    stretches,
)
from matchwood.primitives.edge_order.cpu import prefers_tied
from matchwood.primitives.frontier.cpu import flush, push

Array = np.ndarray[Any, Any]


AHEAD = 16  # vertices between the one whose words are prefetched and the one that is looked at
PLACES = 4096  # vertices that a member takes at a time


class Owned(NamedTuple):
    """A rank's own vertices, by place."""

    names: Array
    pointer: Array  # the name of the vertex that this one points at, or nobody
    weight: Array  # the bits of that edge, or 0
    waiter: Array  # of those that point at this one the first, or nobody
    waiter_weight: Array  # 0 for nobody, -1 while a member holds the vertex
    stamp: Array  # the last round, but the first, in which a candidate changed
    queue: Array  # scratch: those with a new candidate, then those whose pointer changes
    matched: Array  # those matched in this round


class Queues(NamedTuple):
    """The lengths of the queues of `Owned`, and what a member has not yet appended to them."""

    queued: Array
    matched: Array
    buffers: Array  # (2, members, BUFFER)


@device
def _best_of_ties(
    start: Any, end: Any, own: Any, candidates: Candidates, ties: Ties
) -> Any:  # fmt: skip
    """As `_best`, where several weights are equal."""
    seed, by_hash = ties
    best, best_w = start, candidates.bits.dtype.type(0)
    for at in range(start, end):
        w = candidates.bits[at]
        if w > best_w or (
            w == best_w
            and w > candidates.bits.dtype.type(0)
            and prefers_tied(own, candidates.names[at], own, candidates.names[best], seed, by_hash)
        ):
            best, best_w = at, w
    return best, best_w


@expanded
def _best(k: Any, C: Any, own: Any, candidates: Candidates, ties: Ties) -> Any:
    """Which of the candidates of place k comes first, and its weight; 0 for none."""
    bits = candidates.bits
    start = k * C
    end = start + C
    best, best_w, tied = start, bits.dtype.type(0), False
    for at in range(start, end):
        w = bits[at]
        tied |= (w == best_w) & (w > bits.dtype.type(0))
        # no branches: none of them could be predicted
        best, best_w = (at if w > best_w else best), max(w, best_w)
    if tied:
        best, best_w = _best_of_ties(start, end, own, candidates, ties)
    return best, best_w


@kernel
def forget(team: Team, taken: Array, candidates: Candidates, owned: Owned) -> None:
    """Before the first round: all vertices are free, none has a candidate, none waits."""
    for array in (candidates.bits, owned.weight, owned.waiter_weight):
        lo, hi = share(team, array.size)
        array[lo:hi] = 0
    for array in (owned.pointer, owned.waiter):
        lo, hi = share(team, array.size)
        array[lo:hi] = nobody(array)
    lo, hi = share(team, owned.stamp.size)
    owned.stamp[lo:hi] = 0
    lo, hi = share(team, taken.size)
    taken[lo:hi] = 0


@expanded
def _stamped(owned: Owned, k: Any, round_: int, alone: bool) -> bool:
    """Whether this member is the first in this round to stamp place k."""
    seen = load_relaxed(owned.stamp, k)
    if seen == round_:
        return False
    if alone:
        owned.stamp[k] = round_
        return True
    return bool(atomic_cas(owned.stamp, k, seen, owned.stamp.dtype.type(round_)) == seen)


@expanded
def _store(
    team: Team, came: Came, round_: int, candidates: Candidates, owned: Owned, queues: Queues
) -> None:  # fmt: skip
    """Store records; from the second round on their places are queued."""
    C, step, total = np.uint64(came.starts.size - 1), np.uint64(came.width), stretches(came)
    renamed, alone = candidates.ids.size > 0, team.size == 1
    buffer, count = queues.buffers[0, team.rank], 0
    number = next_chunk(team, total, 1)
    while number >= 0:
        records, start, end, c = stretch_of(came, number)
        for at in range(start, end, step):
            if round_ > 1:
                soon = np.uint64(records[min(at + np.uint64(AHEAD) * step, end - step)])
                prefetch(owned.stamp, soon)
                prefetch(candidates.names, soon * C)
                prefetch(candidates.bits, soon * C)
            k = np.uint64(records[at])
            slot = k * C + c
            weight_at = at + np.uint64(2)
            if renamed:
                candidates.ids[slot] = records[at + np.uint64(1)]
                candidates.names[slot] = records[at + np.uint64(2)]
                weight_at += np.uint64(1)
            else:
                candidates.names[slot] = records[at + np.uint64(1)]
            candidates.bits[slot] = get_bits(records, weight_at, candidates.bits)
            if round_ > 1 and _stamped(owned, k, round_, alone):
                count = push(buffer, count, k, owned.queue, queues.queued)
        number = next_chunk(team, total, 1)
    flush(buffer, count, owned.queue, queues.queued)


@kernel
def choose(
    team: Team, came: Came, round_: int, ties: Ties, candidates: Candidates, owned: Owned,
    queues: Queues, out: Out,
) -> None:  # fmt: skip
    """Store the candidates that came, and point again where the first has changed.

    A packet is (place, name, weight): of the vertex pointed at, of the one that points, and of the
    edge.  Packets may be written over what came from this rank itself: all of it is stored by then.
    Caller: out.counts and the lengths of the queues are 0.
    """
    C, p = np.uint64(came.starts.size - 1), np.uint64(out.receivers)
    renamed = candidates.ids.size > 0
    changed = came.kept  # of a block with whole rows: it has stored their candidates, each once
    if C > np.uint64(1):
        _store(team, came, round_, candidates, owned, queues)
        if barrier(team):
            return
        changed = owned.queue[: queues.queued[0]]
    total = changed.size if round_ > 1 else owned.queue.size
    matched, buffer = 0, queues.buffers[1, team.rank]
    parts = out.counts.shape[0]
    part = next_chunk(team, parts, 1)
    while part >= 0:
        counts, end = out.counts[part], min((part + 1) * PLACES, total)
        left = part * PLACES
        for i in range(part * PLACES, end):
            k = np.uint64(i)
            if round_ > 1:
                soon = np.uint64(changed[min(i + AHEAD, end - 1)])
                prefetch(owned.pointer, soon)
                prefetch(owned.waiter, soon)
                prefetch(candidates.bits, soon * C)
                k = np.uint64(changed[i])
            best, w = _best(k, C, owned.names[k], candidates, ties)
            owned.weight[k] = w
            if w == owned.weight.dtype.type(0):
                owned.pointer[k] = nobody(owned.pointer)
                continue
            name = candidates.names[best]
            if name == owned.pointer[k]:
                continue
            owned.pointer[k] = name
            if owned.waiter[k] == name:
                matched = push(buffer, matched, k, owned.matched, queues.matched)
            target = candidates.ids[best] if renamed else name
            counts[np.uint64(target) % p] += 1
            owned.queue[left] = k
            left += 1
        part = next_chunk(team, parts, 1)
    flush(buffer, matched, owned.matched, queues.matched)
    if begin_records(team, out):
        return
    places = out.places[team.rank]
    done, part = 0, next_chunk(team, parts, 1)
    while part >= 0:
        done = begin_part(team, out, done, part)
        for i in range(part * PLACES, part * PLACES + records_of(out, part)):
            k = np.uint64(owned.queue[i])
            target = np.uint64(owned.pointer[k])
            if renamed:
                best, _ = _best(k, C, owned.names[k], candidates, ties)
                target = np.uint64(candidates.ids[best])
            place = target // p
            receiver = target - place * p
            at = np.uint64(places[receiver] * out.width)
            places[receiver] += 1
            out.words[at] = place
            out.words[at + np.uint64(1)] = owned.names[k]
            put_bits(out.words, at + np.uint64(2), owned.weight, k)
        part = next_chunk(team, parts, 1)


@expanded
def _wait_for(owned: Owned, k: Any, name: Any, w: Any, ties: Ties, alone: bool) -> None:
    """`name` waits for place k, with an edge of weight w; the first of those that do is kept.

    Weights only grow, so most that come too late need not hold k.
    """
    seed, by_hash = ties
    held = owned.weight.dtype.type(-1)
    while True:
        seen = load_relaxed(owned.waiter_weight, k)
        if seen > w:
            return
        if alone or (seen != held and atomic_cas(owned.waiter_weight, k, seen, held) == seen):
            break
    if w > seen or prefers_tied(
        owned.names[k], name, owned.names[k], owned.waiter[k], seed, by_hash
    ):
        owned.waiter[k] = name
    store_release(owned.waiter_weight, k, w)


@expanded
def _settle(team: Team, came: Came, ties: Ties, owned: Owned, queues: Queues) -> None:
    """All packets."""
    alone, step, total = team.size == 1, np.uint64(came.width), stretches(came)
    matched, buffer = 0, queues.buffers[1, team.rank]
    number = next_chunk(team, total, 1)
    while number >= 0:
        packets, start, end, _ = stretch_of(came, number)
        for at in range(start, end, step):
            soon = np.uint64(packets[min(at + np.uint64(AHEAD) * step, end - step)])
            prefetch(owned.pointer, soon)
            prefetch(owned.waiter_weight, soon)
            k, name = np.uint64(packets[at]), packets[at + np.uint64(1)]
            if owned.pointer[k] == name:
                matched = push(buffer, matched, k, owned.matched, queues.matched)
            else:
                w = get_bits(packets, at + np.uint64(2), owned.weight)
                _wait_for(owned, k, name, w, ties, alone)
        number = next_chunk(team, total, 1)
    flush(buffer, matched, owned.matched, queues.matched)


@kernel
def settle(
    team: Team, came: Came, ties: Ties, owned: Owned, queues: Queues, bitmap: Array
) -> None:  # fmt: skip
    """Match vertices that point at each other; the others wait for the one they point at.

    owned.matched holds the matched vertices, and `bitmap` where that is shorter.
    Caller: queues.matched is that of `choose`, and the bitmap is 0.
    """
    _settle(team, came, ties, owned, queues)
    if barrier(team):
        return
    total = queues.matched[0]
    if total < bitmap.size:
        return
    lo, hi = share(team, total)
    kind, places = bitmap.dtype.type, np.uint64(8 * bitmap.itemsize)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        k = np.uint64(owned.matched[i])
        bit = kind(1) << kind(k % places)
        if team.size == 1:
            bitmap[k // places] |= bit
        else:
            atomic_or(bitmap, k // places, bit)
