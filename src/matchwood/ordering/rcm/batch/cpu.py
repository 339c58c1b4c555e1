"""Batches of the queue with early signals: algorithm 5.  The board and its signals: cpu_board.py.

A worker has several batches in work, each in a slot, and goes on with whichever can go on.  The
stages of a slot, and what it waits for:

    FRESH      nothing; but a batch with very many arcs waits for its turn and for the one wide list
    BEGUN      nothing: it looks at its neighbours, in pieces, and at the other slots in between
    GUESSED    for its turn: children are sorted, but some may belong to batches before
    KNOWN      for its fate: children are certain, their places are not
    WRITTEN    for the overhang to be written, before it goes into batches or is passed on

A batch is taken by the worker that made it, whose caches have the neighbourhood, unless another has
clearly less to do (cpu_board.py).  Where the front is wide it has one batch for each worker: then
few vertices are claimed by two, and none waits for a worker that has two batches.

A batch whose turn has come before it starts claims nothing in vain; one whose turn comes while it
looks drops what others have claimed before it sorts; else it sorts what it has, and drops later.
As soon as children are certain their number is told, before they are sorted.  What does not fill a
batch is left to the next one as overhang, unless there is none to take it: then the worker goes on
alone with it, as in the serial method, until there is enough for all.

When all places are filled, batches whose fate is open have no children, and are dropped.

No deadlock: each worker takes its batches in order, and only with a slot to put them in; so the
first of those not finished is in work or can be taken, and waits for nobody.  The wide list is
taken by a batch whose turn has come, so those before have had it; and its holder waits only for
batches before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.ordering.rcm.batch_basic.cpu import begin_all, lap
from matchwood.ordering.rcm.cpu_batch_work import (
    ENOUGH,
    PIECE,
    arcs_between,
    batches_for,
    discover,
    most_arcs,
    rediscover,
    size_of,
    sort_all,
    weight_of,
)
from matchwood.ordering.rcm.cpu_board import (
    BEGIN,
    COMPLETED,
    CUT,
    DEQUEUED,
    EMPTY,
    END,
    EXECUTED,
    FATE,
    FILLED,
    FINISHED,
    GENERATED,
    IN_DISCOVER,
    IN_OUTPUT,
    IN_REDISCOVER,
    IN_SIGNAL,
    IN_SORT,
    IN_STALL,
    LEFT,
    LINE,
    LONE,
    MADE,
    NEXT,
    OVER,
    OVER_ARCS,
    OWNER,
    POS,
    READY,
    REDISCOVERIES,
    REMOVED,
    STATE,
    TURN,
    WIDE_TAKEN,
    children_known,
    cut,
    end_discovery,
    line,
    patience,
    resume,
    ticks,
)
from matchwood.ordering.rcm.cpu_sort import (
    ONE,
    ZERO,
    delay,
    fetch_rows,
    reverse_places,
    sort_children,
)
from matchwood.ordering.rcm.serial.cpu import EVERYTHING
from matchwood.teams import (
    advance,
    atomic_add,
    barrier,
    device,
    kernel,
    load_acquire,
    stopping,
    store_relaxed,
    store_release,
)

Array = np.ndarray[Any, Any]

IDLE, FRESH, BEGUN, GUESSED, KNOWN, WRITTEN = (np.uint64(k) for k in range(6))

# words of a slot; up to _AT it has looked, in its turn from the start if _CERTAIN
_STAGE, _B, _COUNT, _ARCS, _WIDE, _WEIGHT, _AT, _CERTAIN = range(8)
SLOT = 8


@device
def _alone(
    team: Any,
    indptr: Array,
    indices: Array,
    claim: Array,
    queue: Array,
    b: Any,
    i: Any,
    tail: Any,
    limit: Any,
    sizes: Array,
    shift: Any,
    keys: Array,
    other: Array,
    bins: Array,
) -> tuple[Any, Any, Any]:
    """Follow the queue from place i on, while there is too little for all.

    Nobody else has a batch.  Returns the places that are left, and their arcs.
    """
    one = indices.dtype.type(1)
    mine = claim.dtype.type(b)
    arcs = arcs_between(indptr, queue, i, tail, sizes)
    while i < tail < limit and weight_of(tail - i, arcs) < sizes[ENOUGH]:
        if i & np.uint64(4095) == ZERO and stopping(team):
            break
        u = queue[i]
        i += ONE
        fetch_rows(indptr, indices, queue, i, tail)
        head = tail
        first, last = np.uint64(indptr[u]), np.uint64(indptr[u + one])
        arcs -= min(arcs, last - first)  # it may be a guess
        for k in range(first, last):
            v = indices[k]
            if claim[v] > mine:
                claim[v] = mine
                queue[tail] = v
                tail += ONE
                arcs += np.uint64(indptr[v + one] - indptr[v])
        sort_children(indptr, queue, head, tail - head, shift, keys, other, bins)
    return i, tail, arcs


@kernel
def order_batch(
    team: Any,
    indptr: Array,
    indices: Array,
    start: Any,
    queue: Array,
    at: Any,
    limit: Any,
    shift: Any,
    sizes: Array,
    claim: Array,
    board: Array,
    lists: Array,
    all_ends: Array,
    wide_list: Array,
    wide_ends: Array,
    all_keys: Array,
    all_other: Array,
    all_bins: Array,
    all_slots: Array,
    shared: Array,
    loads: Array,
    all_counts: Array,
    timed: bool,
    delays: Array,
    reverse: bool,
) -> None:
    """Place the component of `start` from place `at` on.

    When that fills the last place, and `reverse` is asked for, the queue is reversed at once.
    """
    rank = team.rank
    keys, other, bins = all_keys[rank], all_other[rank], all_bins[rank]
    counts, slots = all_counts[rank], all_slots[rank]
    ahead = ZERO  # batches below are taken, by their owners; the next one may be ours
    looks = 0
    if begin_all(team, start, at, claim, queue, board):
        return
    now = ticks() if timed else ZERO
    while True:
        moved = False
        busy = 0
        vacant = -1
        first = EVERYTHING  # of the batches that could go on to look at neighbours, the others wait
        for s in range(slots.shape[0]):
            slot = slots[s]
            if slot[_STAGE] == BEGUN or (slot[_STAGE] == FRESH and slot[_WIDE] == ZERO):
                first = min(first, slot[_B])
        for s in range(slots.shape[0]):
            slot = slots[s]
            stage = slot[_STAGE]
            if stage == IDLE:
                vacant = s
                continue
            b = slot[_B]
            words = line(b)
            wide = slot[_WIDE] > ZERO
            finished = load_acquire(shared, FINISHED) > ZERO  # first: then fates are seen
            turn = load_acquire(board, words + TURN) > ZERO
            if finished and stage < WRITTEN and load_acquire(board, words + FATE) == ZERO:
                slot[_STAGE] = IDLE
                moved = True
                continue
            if stage == FRESH and wide:
                if not turn or load_acquire(shared, WIDE_TAKEN) > ZERO:
                    busy += 1
                    continue
                store_release(shared, WIDE_TAKEN, ONE)  # no other wide batch has its turn now
                first = b
            if stage <= BEGUN and b > first:
                busy += 1
                continue
            found = wide_list if wide else lists[rank, s]
            ends = wide_ends if wide else all_ends[rank, s]
            begin, end = board[words + BEGIN], board[words + END]
            parents = end - begin

            if stage == FRESH:
                stage = slot[_STAGE] = BEGUN
                slot[_AT], slot[_COUNT] = begin, ZERO
                slot[_CERTAIN] = ONE if turn else ZERO
            if stage == BEGUN:
                now = lap(counts, IN_STALL, now, timed)
                slot[_AT], count = discover(
                    indptr, indices, claim, queue, begin, slot[_AT], end, b, turn, sizes[PIECE],
                    found, ends, slot[_COUNT],
                )  # fmt: skip
                slot[_COUNT] = count
                moved = True
                now = lap(counts, IN_DISCOVER, now, timed)
                delay(team, delays)
                if slot[_AT] < end:
                    busy += 1
                    continue
                turn = load_acquire(board, words + TURN) > ZERO
                end_discovery(board, b)
                now = lap(counts, IN_SIGNAL, now, timed)
                stage = GUESSED
                delay(team, delays)
                if turn:
                    if slot[_CERTAIN] == ZERO:
                        count = rediscover(claim, b, found, ends, parents)
                        counts[REDISCOVERIES] += ONE if count < slot[_COUNT] else ZERO
                        counts[REMOVED] += slot[_COUNT] - count
                        slot[_COUNT] = count
                        now = lap(counts, IN_REDISCOVER, now, timed)
                    slot[_ARCS] = arcs_between(indptr, found, ZERO, count, sizes)
                    children_known(board, b, count, slot[_ARCS], limit, sizes, shared)
                    stage = KNOWN
                    now = lap(counts, IN_SIGNAL, now, timed)
                sort_all(indptr, found, ends, parents, shift, keys, other, bins)
                now = lap(counts, IN_SORT, now, timed)
                delay(team, delays)
                slot[_STAGE] = stage
                turn = load_acquire(board, words + TURN) > ZERO

            if stage == GUESSED and turn:
                now = lap(counts, IN_STALL, now, timed)
                count = rediscover(claim, b, found, ends, parents)
                counts[REDISCOVERIES] += ONE if count < slot[_COUNT] else ZERO
                counts[REMOVED] += slot[_COUNT] - count
                slot[_COUNT] = count
                slot[_ARCS] = arcs_between(indptr, found, ZERO, count, sizes)
                now = lap(counts, IN_REDISCOVER, now, timed)
                delay(team, delays)
                children_known(board, b, count, slot[_ARCS], limit, sizes, shared)
                now = lap(counts, IN_SIGNAL, now, timed)
                delay(team, delays)
                stage = slot[_STAGE] = KNOWN
                moved = True

            fate = load_acquire(board, words + FATE)
            if stage == KNOWN and fate > ZERO:
                now = lap(counts, IN_STALL, now, timed)
                pos = board[words + POS]
                for x in range(slot[_COUNT]):
                    queue[pos + x] = found[x]
                if wide:
                    store_release(shared, WIDE_TAKEN, ZERO)
                advance(team, np.int64(slot[_COUNT]))
                now = lap(counts, IN_OUTPUT, now, timed)
                delay(team, delays)
                stage = slot[_STAGE] = WRITTEN
                moved = True

            if stage == WRITTEN and load_acquire(board, words + STATE) >= COMPLETED:
                now = lap(counts, IN_STALL, now, timed)
                over = board[words + OVER]
                pos = board[words + POS] - over
                tail = pos + over + slot[_COUNT]
                following = board[words + NEXT]
                atomic_add(loads, 16 * rank, ZERO - slot[_WEIGHT])
                if fate == LEFT:
                    store_release(board, words + np.uint64(LINE) + STATE, COMPLETED)
                    now = lap(counts, IN_SIGNAL, now, timed)
                elif fate == CUT:
                    arcs = board[words + OVER_ARCS] + slot[_ARCS]
                    behind = words + np.uint64(LINE)
                    if board[behind + OVER] > ZERO:
                        tail -= board[behind + OVER]
                        arcs -= board[behind + OVER_ARCS]
                        store_release(board, behind + STATE, COMPLETED)
                    cut(
                        indptr, queue, pos, tail, arcs, board, following, board[words + MADE],
                        rank, team.size, loads, sizes,
                    )  # fmt: skip
                    counts[GENERATED] += board[words + MADE]
                    now = lap(counts, IN_OUTPUT, now, timed)
                elif fate == LONE:
                    before = tail
                    pos, tail, arcs = _alone(
                        team, indptr, indices, claim, queue, b, pos, tail, limit,
                        sizes, shift, keys, other, bins,
                    )  # fmt: skip
                    advance(team, np.int64(tail - before))
                    if pos == tail or tail >= limit:
                        store_relaxed(shared, FILLED, tail)
                        store_release(shared, FINISHED, ONE)
                    else:
                        made = batches_for(tail - pos, arcs, size_of(tail - pos, sizes))
                        resume(board, b + ONE, tail, following + made, limit, sizes, shared)
                        cut(
                            indptr, queue, pos, tail, arcs, board, following, made,
                            rank, team.size, loads, sizes,
                        )  # fmt: skip
                        counts[GENERATED] += made
                    now = lap(counts, IN_OUTPUT, now, timed)
                slot[_STAGE] = IDLE
                moved = True
                vacant = s
                continue
            busy += 1

        if vacant >= 0:
            if load_acquire(shared, FINISHED) > ZERO:
                if busy == 0:
                    break
            else:
                words = line(ahead)
                if words < np.uint64(board.size) and load_acquire(board, words + READY) > ZERO:
                    if board[words + OWNER] == np.uint64(rank):
                        begin, end = board[words + BEGIN], board[words + END]
                        arcs = arcs_between(indptr, queue, begin, end, sizes)
                        slot = slots[vacant]
                        slot[_STAGE], slot[_B] = FRESH, ahead
                        slot[_WIDE] = (
                            ONE
                            if most_arcs(arcs, end - begin, sizes) > np.uint64(lists.shape[2])
                            else ZERO
                        )
                        slot[_WEIGHT] = weight_of(end - begin, arcs)
                        counts[DEQUEUED] += ONE
                        counts[EXECUTED if end > begin else EMPTY] += ONE
                    ahead += ONE
                    moved = True
        if stopping(team):
            return
        looks = 0 if moved else patience(looks)
    if reverse and shared[FILLED] == np.uint64(queue.size) and not barrier(team):
        reverse_places(team, queue)
