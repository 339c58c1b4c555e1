"""What the owners of vertices do in a round (dominant/ranks/__init__.py), and all messages.

Messages are flat arrays of the unsigned index type.  Records are sorted by receiver, those for the
rank itself last: they are not sent, but read where they were written.  A weight of 64 bits takes
two words of 32.

A kernel writes records in two passes over its work.  The work is in parts, which members take one
after the other: a thread that has to share its core keeps the others waiting for one part at most.
The first pass counts the records of each part for each receiver.  In the second pass, which writes
them, a member knows from the counts where those of its next part begin (`begin_records`, then
`begin_part`).  So their order is that of the parts, on any team.

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
from matchwood.matching.cpu import Ties
from matchwood.primitives.edge_order.cpu import prefers_tied
from matchwood.primitives.frontier.cpu import flush, push

Array = np.ndarray[Any, Any]
STRETCH = 4096  # records that a member reads at a time
LINE = 8  # words of a cache line
AHEAD = 16  # vertices between the one whose words are prefetched and the one that is looked at
PLACES = 4096  # vertices that a member takes at a time


# Messages


class Candidates(NamedTuple):
    """The candidates of own vertices, at place * C + c for that of the row's rank c."""

    ids: Array  # the grid's ids; empty where they are the names
    names: Array
    bits: Array  # weights; 0 for none


class SendBuffer(NamedTuple):
    """Messages that a kernel writes, sorted by receiver; those for this rank are last."""

    words: Array
    counts: Array  # (parts, row) records that each part has for each receiver
    places: Array  # (members, row) where those of a member's present part begin
    bits: Array  # (members, LINE or more) scratch: [0] is the weight of a record
    receivers: int
    own: int  # this rank's number among them
    width: int  # words of a record


class Received(NamedTuple):
    words: Array  # those of the other ranks, by rank
    starts: Array  # (ranks + 1) where those of each begin
    kept: Array  # those of this rank
    own: int  # its number
    width: int  # words of a record


def row_words(receivers: int) -> int:
    """Words of a row that a member counts in: rows of two members never share a cache line.

    Arrays begin anywhere within a line.  Without a line to spare between rows, in some processes
    members took each other's line away at every record: `choose` then took 17 ms instead of 7 in
    the first round of R-MAT 22, on four ranks of four threads.
    """
    return -(-receivers // LINE) * LINE + LINE


@expanded
def _run_of(received: Received, rank: Any) -> Any:
    """The messages of a rank: an array, and the words between which they lie."""
    if rank == received.own:
        return received.kept, np.int64(0), np.int64(received.kept.size)
    return received.words, received.starts[rank], received.starts[rank + 1]


@device
def stretches(received: Received) -> Any:
    """The number of stretches: each has messages of one rank."""
    words, total = STRETCH * received.width, np.int64(0)
    for rank in range(received.starts.size - 1):
        _, start, stop = _run_of(received, rank)
        total += (stop - start + words - 1) // words
    return total


@expanded
def stretch_of(received: Received, number: Any) -> Any:
    """A stretch: an array, the words between which it lies, and the rank that sent it."""
    words, rank = STRETCH * received.width, 0
    array, start, stop = _run_of(received, rank)
    while number * words >= stop - start:
        number -= (stop - start + words - 1) // words
        rank += 1
        array, start, stop = _run_of(received, rank)
    start += number * words
    return array, np.uint64(start), np.uint64(min(start + words, stop)), np.uint64(rank)


@device
def nobody(array: Array) -> Any:
    return ~array.dtype.type(0)


@expanded
def put_bits(words: Array, at: Any, bits: Array, i: Any) -> None:
    """Write the weight bits[i] from `at` on."""
    raw = np.uint64(bits[i])  # weights are not negative
    if bits.itemsize > words.itemsize:
        words[at] = np.uint32(raw & np.uint64(0xFFFF_FFFF))
        words[at + 1] = np.uint32(raw >> np.uint64(32))
    else:
        words[at] = raw


@expanded
def get_bits(words: Array, at: Any, bits: Array) -> Any:
    """The weight at `at`, of the type of `bits`."""
    raw = np.uint64(words[at])
    if bits.itemsize > words.itemsize:
        raw |= np.uint64(words[at + 1]) << np.uint64(32)
    return bits.dtype.type(raw)


@device
def begin_records(team: Team, out: SendBuffer) -> bool:
    """Wait for all counts, then set where the records of part 0 begin; True: the team stops."""
    if barrier(team):
        return True
    places, start = out.places[team.me], np.int64(0)
    for turn in range(out.receivers + 1):
        d = turn if turn < out.receivers else out.own
        if turn != out.own:
            places[d] = start
            for part in range(out.counts.shape[0]):
                start += out.counts[part, d]
    return False


@device
def begin_part(team: Team, out: SendBuffer, done: Any, part: Any) -> Any:
    """Advance `places` from part `done` to `part`; returns part + 1, the next `done`.

    Writing the records of a part advances `places` past that part itself.
    """
    places = out.places[team.me]
    for other in range(done, part):
        for d in range(out.receivers):
            places[d] += out.counts[other, d]
    return part + 1


@device
def records_of(out: SendBuffer, part: Any) -> Any:
    total = np.int64(0)
    for d in range(out.receivers):
        total += out.counts[part, d]
    return total


# Own vertices


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
    team: Team, received: Received, round_: int, candidates: Candidates, owned: Owned,
    queues: Queues,
) -> None:  # fmt: skip
    """Store records; from the second round on their places are queued."""
    C, step, total = (
        np.uint64(received.starts.size - 1),
        np.uint64(received.width),
        stretches(received),
    )
    renamed, alone = candidates.ids.size > 0, team.size == 1
    buffer, count = queues.buffers[0, team.me], 0
    number = next_chunk(team, total, 1)
    while number >= 0:
        records, start, end, c = stretch_of(received, number)
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
    team: Team, received: Received, round_: int, ties: Ties, candidates: Candidates, owned: Owned,
    queues: Queues, out: SendBuffer,
) -> None:  # fmt: skip
    """Store the received candidates, and point again where the first has changed.

    A packet is (place, name, weight): of the vertex pointed at, of the one that points, and of the
    edge.  Packets may overwrite the records of this rank itself: all are stored by then.
    Caller: out.counts and the lengths of the queues are 0.
    """
    C, p = np.uint64(received.starts.size - 1), np.uint64(out.receivers)
    renamed = candidates.ids.size > 0
    changed = received.kept  # of a block with whole rows: it has stored their candidates, each once
    if C > np.uint64(1):
        _store(team, received, round_, candidates, owned, queues)
        if barrier(team):
            return
        changed = owned.queue[: queues.queued[0]]
    total = changed.size if round_ > 1 else owned.queue.size
    matched, buffer = 0, queues.buffers[1, team.me]
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
    places = out.places[team.me]
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

    The kept weight only grows, so most vertices with lighter edges return without holding k.
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
def _settle(team: Team, received: Received, ties: Ties, owned: Owned, queues: Queues) -> None:
    """Settle all packets: match the vertex, or let the sender wait for it."""
    alone, step, total = team.size == 1, np.uint64(received.width), stretches(received)
    matched, buffer = 0, queues.buffers[1, team.me]
    number = next_chunk(team, total, 1)
    while number >= 0:
        packets, start, end, _ = stretch_of(received, number)
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
    team: Team, received: Received, ties: Ties, owned: Owned, queues: Queues, bitmap: Array
) -> None:  # fmt: skip
    """Match vertices that point at each other; the others wait for the one they point at.

    owned.matched holds the matched vertices, and `bitmap` where that is shorter.
    Caller: queues.matched is that of `choose`, and the bitmap is 0.
    """
    _settle(team, received, ties, owned, queues)
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
