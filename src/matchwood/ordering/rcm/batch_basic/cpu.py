"""Batches of the queue, discovered ahead of their turn: algorithm 4.  The board: cpu_board.py.

A worker takes batches one after the other and waits where it must: for its turn, which comes when
all batches before have discovered and dropped what is not theirs, then for the place of its
children.  Every batch with children makes new ones.

No deadlock: batches are taken in order, and of those not finished the first waits for nobody.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.ordering.rcm.cpu_batch_work import (
    LEAST,
    arcs_between,
    batches_for,
    discover,
    most_arcs,
    rediscover,
    sort_all,
)
from matchwood.ordering.rcm.cpu_board import (
    BEGIN,
    COMPLETED,
    DEQUEUED,
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
    MET_COUNT,
    MET_TURN,
    NEXT,
    POS,
    READY,
    REDISCOVERIES,
    REMOVED,
    STATE,
    TURN,
    WIDE_TAKEN,
    cut,
    line,
    patience,
    publish,
    send,
    ticks,
)
from matchwood.ordering.rcm.cpu_sort import ONE, ZERO, delay
from matchwood.ordering.rcm.serial.cpu import EVERYTHING
from matchwood.teams import (
    advance,
    atomic_add,
    barrier,
    device,
    kernel,
    load_acquire,
    share,
    stopping,
    store_relaxed,
    store_release,
)

Array = np.ndarray[Any, Any]


PAGE = 1024  # words; of 4 KiB at least


@device
def begin_all(team: Any, start: Any, at: Any, claim: Array, queue: Array, board: Array) -> bool:
    """Free claims, the start in its place, and batch 0 ready; True when the team stops.

    Pages of new arrays are cleared when they are first written to.  That is done here, by all at
    once, since later all would wait for the one that comes first.
    """
    lo, hi = share(team, claim.size)
    free = claim.dtype.type(0xFFFFFFFFFFFFFFFF)
    for v in range(lo, hi):
        claim[v] = free
    for i in range(max(lo, np.int64(at)), hi, PAGE):
        queue[i] = start
    if barrier(team):
        return True
    # What is placed stays so.  In a symmetric pattern nothing leads there; in another one vertices
    # would be placed twice, and there are only so many places.
    for i in range(lo, min(hi, np.int64(at))):
        claim[queue[i]] = claim.dtype.type(0)
    if barrier(team):
        return True
    if team.rank == 0:
        queue[at] = start
        claim[start] = claim.dtype.type(0)
        board[TURN], board[MET_TURN], board[MET_COUNT] = ONE, ONE, ONE
        send(board, ZERO, at + ONE, ONE, ZERO, ZERO, COMPLETED)
        publish(board, ZERO, at, at + ONE, ZERO)  # the others wait for it
    return False


@device
def _await(team: Any, words: Array, at: Any, value: Any, shared: Array) -> bool:
    """Wait until words[at] >= value; False when the order is finished or the team stops."""
    looks = 0
    while load_acquire(words, at) < value:
        if stopping(team) or load_acquire(shared, FINISHED) > ZERO:
            # it may have come between the two looks
            return load_acquire(words, at) >= value
        looks = patience(looks)
    return True


@device
def lap(counts: Array, stage: int, since: Any, timed: bool) -> Any:
    """Book the time since then on a stage; returns now."""
    if not timed:
        return since
    now = ticks()
    counts[stage] += now - since
    return now


@kernel
def order_batch_basic(
    team: Any,
    indptr: Array,
    indices: Array,
    start: Any,
    queue: Array,
    at: Any,
    shift: Any,
    sizes: Array,
    claim: Array,
    board: Array,
    lists: Array,
    all_ends: Array,
    wide_list: Array,
    all_keys: Array,
    all_other: Array,
    all_bins: Array,
    shared: Array,
    loads: Array,
    all_counts: Array,
    timed: bool,
    delays: Array,
) -> None:
    rank = team.rank
    keys, other, bins = all_keys[rank], all_other[rank], all_bins[rank]
    ends, counts = all_ends[rank, 0], all_counts[rank]
    if begin_all(team, start, at, claim, queue, board):
        return
    now = ticks() if timed else ZERO
    while not stopping(team):
        b = atomic_add(shared, HEAD, ONE)
        words = line(b)
        if words >= np.uint64(board.size) or not _await(team, board, words + READY, ONE, shared):
            return
        counts[DEQUEUED] += ONE
        begin, end = board[words + BEGIN], board[words + END]
        counts[EXECUTED if end > begin else EMPTY] += ONE
        parents = end - begin
        arcs = arcs_between(indptr, queue, begin, end, sizes)
        now = lap(counts, IN_STALL, now, timed)
        # A batch with more arcs than the buffer holds takes the wide list, when its turn has come.
        wide = most_arcs(arcs, parents, sizes) > np.uint64(lists.shape[2])
        if wide:
            if not _await(team, board, words + TURN, ONE, shared):
                return
            looks = 0
            while load_acquire(shared, WIDE_TAKEN) > ZERO:
                if stopping(team):
                    return
                looks = patience(looks)
            store_release(shared, WIDE_TAKEN, ONE)  # no other wide batch has its turn now
            now = lap(counts, IN_STALL, now, timed)
        found = wide_list if wide else lists[rank, 0]
        _, count = discover(
            indptr, indices, claim, queue, begin, begin, end, b, wide, EVERYTHING,
            found, ends, ZERO,
        )  # fmt: skip
        now = lap(counts, IN_DISCOVER, now, timed)
        delay(team, delays)
        sort_all(indptr, found, ends, parents, shift, keys, other, bins)
        now = lap(counts, IN_SORT, now, timed)
        delay(team, delays)
        if not _await(team, board, words + TURN, ONE, shared):
            return
        now = lap(counts, IN_STALL, now, timed)
        left = rediscover(claim, b, found, ends, parents)
        counts[REDISCOVERIES] += ONE if left < count else ZERO
        counts[REMOVED] += count - left
        now = lap(counts, IN_REDISCOVER, now, timed)
        store_release(board, words + np.uint64(LINE) + TURN, ONE)
        delay(team, delays)
        if not _await(team, board, words + STATE, COMPLETED, shared):
            return
        now = lap(counts, IN_STALL, now, timed)
        pos, following = board[words + POS], board[words + NEXT]
        arcs = arcs_between(indptr, found, ZERO, left, sizes)
        made = batches_for(left, arcs, sizes[LEAST])
        send(board, b + ONE, pos + left, following + made, ZERO, ZERO, COMPLETED)
        if b + ONE == following + made:  # no batch is left: the last one had no children
            store_relaxed(shared, FILLED, pos)
            store_release(shared, FINISHED, ONE)
        now = lap(counts, IN_SIGNAL, now, timed)
        delay(team, delays)
        for x in range(left):
            queue[pos + x] = found[x]
        if wide:
            store_release(shared, WIDE_TAKEN, ZERO)
        cut(
            indptr, queue, pos, pos + left, arcs, board, following, made, rank, team.size, loads,
            sizes,
        )  # fmt: skip
        counts[GENERATED] += made
        advance(team, np.int64(left))
        now = lap(counts, IN_OUTPUT, now, timed)
