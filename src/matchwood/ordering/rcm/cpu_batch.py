"""Batches of the queue with early signals: algorithm 5.  The board: cpu_board.py.

A worker has several batches in work, each in a slot, and goes on with whichever can go on.  The
stages of a slot, and what it waits for:

    FRESH      nothing; but a batch with very many arcs waits for its turn (DISCOVERED) and for the
               one wide list
    GUESSED    for DISCOVERED: children are sorted, but some may belong to batches before
    SETTLED    for COUNTED: children are known, their places are not
    OVERHANG   for COMPLETED, before passing it on: children are written, and left to the next batch
    MAKING     for COMPLETED, before making batches that begin with the overhang

DISCOVERED is passed on as soon as it has come and the batch has looked at its neighbours, before
anything is sorted; COUNTED as soon as the number of children is known.  Few children are not made
into a batch but handed on as overhang, unless there is no batch behind to take them: then the
worker goes on alone with them, as in the serial method, until there are enough for all.

When all places are filled, batches that are not counted yet have no children, and are dropped.

No deadlock: batches are taken in order, a worker takes one only with a slot to put it in, and of
those not finished the first has all its signals.  The wide list is taken by a batch whose turn has
come, so those before have had it; and its holder waits only for batches before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.ordering.rcm.cpu_batch_basic import _lap, begin_all, order_batch_basic
from matchwood.ordering.rcm.cpu_board import (
    BEGIN,
    BIG,
    COMPLETED,
    COUNTED,
    COUNTERS,
    COUNTS,
    DEQUEUED,
    DISCOVERED,
    EMPTY,
    END,
    EXECUTED,
    FILLED,
    FINISHED,
    GENERATED,
    HEAD,
    IN_DISCOVER,
    IN_OUTPUT,
    IN_REDISCOVER,
    IN_SIGNAL,
    IN_SORT,
    IN_STALL,
    LINE,
    NEXT,
    OVER,
    OVER_ARCS,
    POS,
    READY,
    REDISCOVERIES,
    REMOVED,
    SHARED,
    STAGES,
    STATE,
    Tuning,
    arcs_between,
    arcs_from,
    batches_for,
    cut,
    discover,
    line,
    rediscover,
    send,
    sort_all,
    ticks,
    weight_of,
)
from matchwood.ordering.rcm.cpu_serial import CODE, LEVELS, PLACED, WHOLE
from matchwood.ordering.rcm.cpu_serial import END as ORDER_END
from matchwood.ordering.rcm.cpu_sort import ONE, ZERO, delay, sort_children
from matchwood.teams import (
    advance,
    atomic_add,
    back_off,
    device,
    kernel,
    load_acquire,
    load_relaxed,
    stopping,
    store_relaxed,
    store_release,
)
from matchwood.traversal import bfs

Array = np.ndarray[Any, Any]

IDLE, FRESH, GUESSED, SETTLED, OVERHANG, MAKING = (np.uint64(k) for k in range(6))

# words of a slot
_STAGE, _B, _COUNT, _ARCS, _WIDE, _LONE, _MADE = range(7)
SLOT = 8


@device
def _settle(
    indptr: Array, claim: Array, slot: Array, found: Array, ends: Array, parents: Any, counts: Array
) -> None:
    """Rediscover, for a batch whose turn has come."""
    left = rediscover(claim, slot[_B], found, ends, parents)
    counts[REDISCOVERIES] += ONE if left < slot[_COUNT] else ZERO
    counts[REMOVED] += slot[_COUNT] - left
    slot[_COUNT] = left


@device
def _count(
    indptr: Array,
    board: Array,
    slot: Array,
    found: Array,
    limit: Any,
    full: Any,
    enough: Any,
    shared: Array,
) -> None:
    """The batch knows its children and has been told their place: tell the next (signalCount)."""
    b, count = slot[_B], slot[_COUNT]
    words = line(b)
    pos, following = board[words + POS], board[words + NEXT]
    over, over_arcs = board[words + OVER], board[words + OVER_ARCS]
    arcs = arcs_from(indptr, found, count)
    slot[_ARCS] = arcs
    total, total_arcs = over + count, over_arcs + arcs
    weight = weight_of(total, total_arcs)
    last = b + ONE == following
    slot[_LONE] = ZERO
    slot[_MADE] = ZERO
    slot[_STAGE] = MAKING
    if pos + count == limit:  # all places are filled
        store_relaxed(shared, FILLED, pos + count)
        store_release(shared, FINISHED, ONE)
        send(board, b + ONE, pos + count, following, ZERO, ZERO, COMPLETED)
    elif total == ZERO:
        if last:
            store_relaxed(shared, FILLED, pos)
            store_release(shared, FINISHED, ONE)
        send(board, b + ONE, pos, following, ZERO, ZERO, COMPLETED)
    elif last and weight < enough:
        slot[_LONE] = ONE
    elif not last and weight < full // np.uint64(4):
        slot[_STAGE] = OVERHANG
        send(board, b + ONE, pos + count, following, total, total_arcs, COUNTED)
    else:
        slot[_MADE] = batches_for(total, total_arcs, full)
        send(board, b + ONE, pos + count, following + slot[_MADE], ZERO, ZERO, COMPLETED)


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
    enough: Any,
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
    arcs = arcs_between(indptr, queue, i, tail)
    while i < tail < limit and weight_of(tail - i, arcs) < enough:
        if i & np.uint64(4095) == ZERO and stopping(team):
            break
        u = queue[i]
        i += ONE
        head = tail
        first, last = np.uint64(indptr[u]), np.uint64(indptr[u + one])
        arcs -= last - first
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
    full: Any,
    enough: Any,
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
    all_counts: Array,
    timed: bool,
    delays: Array,
) -> None:
    rank = team.rank
    keys, other, bins = all_keys[rank], all_other[rank], all_bins[rank]
    counts, slots = all_counts[rank], all_slots[rank]
    nobody = np.uint64(0xFFFFFFFFFFFFFFFF)
    ticket = nobody  # the number of the batch to be taken next by this worker
    looks = 0
    if begin_all(team, start, at, claim, queue, board):
        return
    now = ticks() if timed else ZERO
    while True:
        moved = False
        busy = 0
        vacant = -1
        for s in range(slots.shape[0]):
            slot = slots[s]
            stage = slot[_STAGE]
            if stage == IDLE:
                vacant = s
                continue
            b = slot[_B]
            words = line(b)
            state = load_acquire(board, words + STATE)
            begin, end = board[words + BEGIN], board[words + END]
            parents = end - begin
            finished = load_acquire(shared, FINISHED) > ZERO

            if stage == FRESH:
                if finished and state < COUNTED:
                    slot[_STAGE] = IDLE
                    moved = True
                    continue
                if slot[_WIDE] > ZERO:
                    if state < DISCOVERED or load_acquire(shared, BIG) > ZERO:
                        busy += 1
                        continue
                    store_release(shared, BIG, ONE)  # no other wide batch can have its turn now
            wide = slot[_WIDE] > ZERO
            found = wide_list if wide else lists[rank, s]
            ends = wide_ends if wide else all_ends[rank, s]

            if stage == FRESH:
                now = _lap(counts, IN_STALL, now, timed)
                early = state
                count = discover(indptr, indices, claim, queue, begin, end, b, found, ends)
                slot[_COUNT] = count
                now = _lap(counts, IN_DISCOVER, now, timed)
                delay(team, delays)
                state = load_acquire(board, words + STATE)
                if state >= DISCOVERED:
                    if load_relaxed(board, words + np.uint64(LINE) + STATE) < DISCOVERED:
                        store_release(board, words + np.uint64(LINE) + STATE, DISCOVERED)
                    now = _lap(counts, IN_SIGNAL, now, timed)
                    if early < DISCOVERED:
                        _settle(indptr, claim, slot, found, ends, parents, counts)
                        now = _lap(counts, IN_REDISCOVER, now, timed)
                    stage = SETTLED
                    if state >= COUNTED:
                        _count(indptr, board, slot, found, limit, full, enough, shared)
                        stage = slot[_STAGE]
                        now = _lap(counts, IN_SIGNAL, now, timed)
                else:
                    stage = GUESSED
                delay(team, delays)
                sort_all(indptr, found, ends, parents, shift, keys, other, bins)
                now = _lap(counts, IN_SORT, now, timed)
                delay(team, delays)
                slot[_STAGE] = stage
                moved = True
                if stage >= OVERHANG:
                    pos = board[words + POS]
                    for x in range(slot[_COUNT]):
                        queue[pos + x] = found[x]
                    now = _lap(counts, IN_OUTPUT, now, timed)
                    if wide:
                        store_release(shared, BIG, ZERO)
                    advance(team, np.int64(slot[_COUNT]))
                state = load_acquire(board, words + STATE)

            if stage == GUESSED:
                if state >= DISCOVERED:
                    now = _lap(counts, IN_STALL, now, timed)
                    store_release(board, words + np.uint64(LINE) + STATE, DISCOVERED)
                    now = _lap(counts, IN_SIGNAL, now, timed)
                    delay(team, delays)
                    _settle(indptr, claim, slot, found, ends, parents, counts)
                    now = _lap(counts, IN_REDISCOVER, now, timed)
                    stage = slot[_STAGE] = SETTLED
                    moved = True
                elif finished:
                    slot[_STAGE] = IDLE
                    moved = True
                    continue

            if stage == SETTLED:
                if state >= COUNTED:
                    now = _lap(counts, IN_STALL, now, timed)
                    _count(indptr, board, slot, found, limit, full, enough, shared)
                    stage = slot[_STAGE]
                    now = _lap(counts, IN_SIGNAL, now, timed)
                    delay(team, delays)
                    pos = board[words + POS]
                    for x in range(slot[_COUNT]):
                        queue[pos + x] = found[x]
                    if wide:
                        store_release(shared, BIG, ZERO)
                    advance(team, np.int64(slot[_COUNT]))
                    now = _lap(counts, IN_OUTPUT, now, timed)
                    delay(team, delays)
                    moved = True
                elif finished:
                    if wide:
                        store_release(shared, BIG, ZERO)
                    slot[_STAGE] = IDLE
                    moved = True
                    continue

            if stage >= OVERHANG:
                # once all places are filled nobody takes batches any more
                finished = load_acquire(shared, FINISHED) > ZERO
                state = load_acquire(board, words + STATE)
                if finished or state >= COMPLETED:
                    now = _lap(counts, IN_STALL, now, timed)
                    over = board[words + OVER]
                    pos = board[words + POS] - over
                    tail = pos + over + slot[_COUNT]
                    following = board[words + NEXT]
                    if stage == OVERHANG:
                        store_release(board, words + np.uint64(LINE) + STATE, COMPLETED)
                        now = _lap(counts, IN_SIGNAL, now, timed)
                    elif slot[_LONE] > ZERO:
                        before = tail
                        pos, tail, arcs = _alone(
                            team, indptr, indices, claim, queue, b, pos, tail, limit,
                            enough, shift, keys, other, bins,
                        )  # fmt: skip
                        advance(team, np.int64(tail - before))
                        made = ZERO
                        if pos == tail or tail == limit:
                            store_relaxed(shared, FILLED, tail)
                            store_release(shared, FINISHED, ONE)
                        else:
                            made = batches_for(tail - pos, arcs, full)
                        send(board, b + ONE, tail, following + made, ZERO, ZERO, COMPLETED)
                        cut(indptr, queue, pos, tail, arcs, board, following, made)
                        counts[GENERATED] += made
                        now = _lap(counts, IN_OUTPUT, now, timed)
                    elif slot[_MADE] > ZERO and not finished:
                        arcs = board[words + OVER_ARCS] + slot[_ARCS]
                        cut(indptr, queue, pos, tail, arcs, board, following, slot[_MADE])
                        counts[GENERATED] += slot[_MADE]
                        now = _lap(counts, IN_OUTPUT, now, timed)
                    slot[_STAGE] = IDLE
                    moved = True
                    vacant = s
                    continue
            busy += 1

        if vacant >= 0:
            finished = load_acquire(shared, FINISHED) > ZERO
            if finished and busy == 0:
                return
            if not finished:
                if ticket == nobody:
                    ticket = atomic_add(shared, HEAD, ONE)
                words = line(ticket)
                if words < np.uint64(board.size) and load_acquire(board, words + READY) > ZERO:
                    begin, end = board[words + BEGIN], board[words + END]
                    slot = slots[vacant]
                    slot[_STAGE], slot[_B] = FRESH, ticket
                    wide = arcs_between(indptr, queue, begin, end) > np.uint64(lists.shape[2])
                    slot[_WIDE] = ONE if wide else ZERO
                    counts[DEQUEUED] += ONE
                    counts[EXECUTED if end > begin else EMPTY] += ONE
                    ticket = nobody
                    moved = True
        if moved:
            looks = 0
        else:
            if stopping(team):
                return
            looks = back_off(looks)


def order(run: Any, start: int, queue: Array, at: int, limit: int, basic: bool) -> None:
    """Host side of both methods; `run` is cpu.Run."""
    team, n = run.team, run.n
    keys, other, bins = run.sorting(team.size)
    tuning: Tuning = run.tuning
    slots = 1 if basic else tuning.slots
    most = tuning.batches(n, int(run.indices.size)) + (n if basic else 0)
    counts = np.zeros((team.size, COUNTS), np.uint64)
    counts[0, GENERATED] = 1  # the one that holds the start
    shared = np.zeros(SHARED, np.uint64)
    board = np.zeros(most * LINE, np.uint64)
    claim = np.empty(n, run.unsigned)
    lists = np.empty((team.size, slots, tuning.room), run.unsigned)
    ends = np.empty((team.size, slots, tuning.parents()), np.uint64)
    wide = np.empty(n, run.unsigned)
    begin = (run.indptr, run.indices, run.unsigned(start), queue, np.uint64(at))
    shift, full, enough = (np.uint64(x) for x in (run.shift, tuning.full, tuning.enough))
    if basic:
        team.run(
            order_batch_basic, *begin, shift, full, claim, board, lists, ends, wide,
            keys, other, bins, shared, counts, run.stats, run.delays,
        )  # fmt: skip
    else:
        team.run(
            order_batch, *begin, np.uint64(limit), shift, full, enough, claim, board, lists, ends,
            wide, np.empty(tuning.parents(), np.uint64), keys, other, bins,
            np.zeros((team.size, slots, SLOT), np.uint64), shared, counts, run.stats, run.delays,
        )  # fmt: skip
    end = int(shared[FILLED])
    if end - at < n:
        run.mark[queue[at:end]] = PLACED
    run.facts[ORDER_END], run.facts[CODE] = end, WHOLE
    if run.stats:
        _report(run, start, counts)


def _report(run: Any, start: int, counts: Array) -> None:
    """Counters of all members; shares of time; levels, which batches know nothing of."""
    from matchwood import csr

    total = counts.sum(axis=0)
    for k, name in enumerate(COUNTERS):
        run.counters[name] = run.counters.get(name, 0) + int(total[k])
    spent = total[IN_DISCOVER : IN_STALL + 1].astype(float)
    for name, share in zip(STAGES, spent / max(1.0, spent.sum()), strict=True):
        run.counters[name] = float(share)
    G = csr.as_graph((run.indptr, run.view.indices), "reverse_cuthill_mckee", index_dtype=run.kind)
    run.facts[LEVELS] = bfs(G, start, threads=run.team.size).rounds + 1
