"""Batches of the queue, discovered ahead of their turn.  The board: cpu_board.py.

A worker takes batches one after the other and waits where it must: for its turn, which comes when
all batches before have discovered and dropped what is not theirs, then for the place of its
children.  Every batch with children makes new ones.

No deadlock: batches are taken in order, and of those not finished the first waits for no other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    advance,
    atomic_add,
    barrier,
    device,
    kernel,
    load_acquire,
    share,
    stopping,
    store_release,
)
from matchwood.ordering.rcm.batch_basic.cpu_board import (
    BEHIND,
    COMPLETED,
    COUNT,
    COUNT_WORDS,
    COUNTERS,
    LINE,
    SHARED,
    SHARED_WORDS,
    STAGES,
    WORD,
    Board,
    Watch,
    cut,
    finish,
    lap,
    line,
    own_watch,
    publish,
    send,
    wait_a_little,
)
from matchwood.ordering.rcm.batch_basic.cpu_work import (
    PARENT_WEIGHT,
    arcs_between,
    batches_for,
    discover,
    most_arcs,
    rediscover,
    sort_all,
)
from matchwood.ordering.rcm.cpu_records import (
    EVERYTHING,
    FACT,
    PLACED,
    WHOLE,
    Csr,
    Sorter,
    own_sorter,
)
from matchwood.ordering.rcm.cpu_sort import ONE, ZERO, delay, scattered
from matchwood.traversal import bfs

Array = np.ndarray[Any, Any]

PAGE_WORDS = 1024  # words on a page of 4 KiB, of the narrower type


class Lists(NamedTuple):
    """Where workers list the children of their batches; `ends` as in cpu_work.py."""

    found: Array  # for each worker and slot
    ends: Array
    wide: Array  # for one batch at a time that has more children than a worker's list holds
    wide_ends: Array


@device
def begin_all(team: Any, start: Any, at: Any, claim: Array, queue: Array, words: Array) -> bool:
    """Free claims, the start in its place, and batch 0 ready; True when the team stops.

    Pages of new arrays are cleared when they are first written to.  All members do that here at
    the same time; later all would wait for the one that comes first.
    """
    lo, hi = share(team, claim.size)
    free = claim.dtype.type(0xFFFFFFFFFFFFFFFF)
    for v in range(lo, hi):
        claim[v] = free
    for i in range(max(lo, np.int64(at)), hi, PAGE_WORDS):
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
        words[WORD.turn], words[WORD.met_turn], words[WORD.met_count] = ONE, ONE, ONE
        send(words, ZERO, at + ONE, ONE, ZERO, ZERO, COMPLETED)
        publish(words, ZERO, at, at + ONE, ZERO)  # the others wait for it
    return False


@device
def _await(team: Any, board: Board, at: Any, value: Any) -> bool:
    """Wait until words[at] >= value; False when the order is finished or the team stops."""
    checks = 0
    while load_acquire(board.words, at) < value:
        if stopping(team) or load_acquire(board.shared, SHARED.finished) > ZERO:
            # it may have come between the two reads
            return load_acquire(board.words, at) >= value
        checks = wait_a_little(checks)
    return True


@device
def _take_wide_list(team: Any, board: Board, at: Any) -> bool:
    """Wait for the turn of the batch whose words are at `at`, then for the wide list; False when
    the order is finished or the team stops."""
    if not _await(team, board, at + WORD.turn, ONE):
        return False
    checks = 0
    while load_acquire(board.shared, SHARED.wide_taken) > ZERO:
        if stopping(team):
            return False
        checks = wait_a_little(checks)
    store_release(board.shared, SHARED.wide_taken, ONE)  # no other wide batch has its turn now
    return True


@kernel
def order_batch_basic(
    team: Any,
    csr: Csr,
    queue: Array,
    start: Any,
    at: Any,
    claim: Array,
    board: Board,
    lists: Lists,
    sorters: Sorter,
    watches: Watch,
) -> None:
    """Place the component of `start` from place `at` on."""
    rank = team.rank
    indptr, words, sizes = csr.indptr, board.words, board.sizes
    sorter = own_sorter(sorters, rank)
    ends = lists.ends[rank, 0]
    if begin_all(team, start, at, claim, queue, words):
        return
    watch = own_watch(watches, rank)
    counts, delays = watch.counts, watch.delays
    while not stopping(team):
        b = atomic_add(board.shared, SHARED.head, ONE)
        mine = line(b)
        if mine >= np.uint64(words.size) or not _await(team, board, mine + WORD.ready, ONE):
            return
        counts[COUNT.dequeued] += ONE
        begin, end = words[mine + WORD.begin], words[mine + WORD.end]
        counts[COUNT.executed if end > begin else COUNT.empty] += ONE
        parents = end - begin
        arcs = arcs_between(indptr, queue, begin, end, sizes)
        lap(watch, COUNT.in_stall)
        # A batch with more arcs than the buffer holds takes the wide list, when its turn has come.
        wide = most_arcs(arcs, parents, sizes) > np.uint64(lists.found.shape[2])
        if wide:
            if not _take_wide_list(team, board, mine):
                return
            lap(watch, COUNT.in_stall)
        found = lists.wide if wide else lists.found[rank, 0]
        _, count = discover(
            csr, claim, queue, begin, begin, end, b, wide, EVERYTHING, found, ends, ZERO
        )
        lap(watch, COUNT.in_discover)
        delay(team, delays)
        sort_all(indptr, found, ends, parents, sorter)
        lap(watch, COUNT.in_sort)
        delay(team, delays)
        if not _await(team, board, mine + WORD.turn, ONE):
            return
        lap(watch, COUNT.in_stall)
        left = rediscover(claim, b, found, ends, parents)
        counts[COUNT.rediscoveries] += ONE if left < count else ZERO
        counts[COUNT.removed] += count - left
        lap(watch, COUNT.in_rediscover)
        store_release(words, mine + BEHIND + WORD.turn, ONE)
        delay(team, delays)
        if not _await(team, board, mine + WORD.state, COMPLETED):
            return
        lap(watch, COUNT.in_stall)
        pos, following = words[mine + WORD.pos], words[mine + WORD.next]
        arcs = arcs_between(indptr, found, ZERO, left, sizes)
        made = batches_for(left, arcs, sizes.least)
        send(words, b + ONE, pos + left, following + made, ZERO, ZERO, COMPLETED)
        if b + ONE == following + made:  # no batch is left: the last one had no children
            finish(board.shared, pos)
        lap(watch, COUNT.in_signal)
        delay(team, delays)
        for x in range(left):
            queue[pos + x] = found[x]
        if wide:
            store_release(board.shared, SHARED.wide_taken, ZERO)
        cut(indptr, queue, pos, pos + left, arcs, board, following, made, rank, team.size)
        counts[COUNT.generated] += made
        advance(team, np.int64(left))
        lap(watch, COUNT.in_output)


def order(run: Any, start: int, queue: Array, at: int, limit: int) -> None:
    """As `serial.cpu.order`."""
    # every batch that has children makes new ones, so there may be one for each vertex
    used = Batches(run, start, at, run.n, slots=1, more=run.n)
    run.team.run(order_batch_basic, *used.arguments(queue))
    used.close(queue)


class Batches:
    """The arrays of a batch method for one component, and what was counted; also for `batch`."""

    def __init__(
        self, run: Any, start: int, at: int, limit: int, *, slots: int, more: int = 0
    ) -> None:
        self.run, self.start, self.at = run, start, at
        members, n, tuning = run.team.size, run.n, run.tuning
        arcs = int(run.csr.indices.size)
        loads = np.zeros(16 * members, np.uint64)
        sizes = tuning.sizes(members, n, arcs, run.longest)
        first = sizes.row or run.csr.indptr[start + 1] - run.csr.indptr[start]
        loads[0] = PARENT_WEIGHT + np.uint64(first)
        self.board = Board(
            scattered(((tuning.batches(n, arcs) + more) * LINE,), np.uint64),
            np.zeros(SHARED_WORDS, np.uint64),
            loads,
            sizes,
            np.uint64(limit),
        )
        self.lists = Lists(
            scattered((members, slots, tuning.room), run.unsigned),
            scattered((members, slots, tuning.parents()), np.uint64),
            np.empty(n, run.unsigned),
            np.empty(tuning.parents(), np.uint64),
        )
        self.counts = np.zeros((members, COUNT_WORDS), np.uint64)
        self.counts[0, COUNT.generated] = 1  # the one that holds the start

    def arguments(self, queue: Array) -> tuple[Any, ...]:
        """What both kernels take first."""
        run = self.run
        return (
            run.csr, queue, run.unsigned(self.start), np.uint64(self.at),
            np.empty(run.n, run.unsigned), self.board, self.lists, run.sorters(run.team.size),
            Watch(self.counts, run.stats, run.delays),
        )  # fmt: skip

    def close(self, queue: Array) -> int:
        """Leave the facts and counters in the run; returns where the component ends."""
        run = self.run
        end = int(self.board.shared[SHARED.filled])
        if end < run.n:
            run.mark[queue[self.at : end]] = PLACED
        run.facts[FACT.end], run.facts[FACT.code] = end, WHOLE
        if run.stats:
            self._report()
        return end

    def _report(self) -> None:
        """Counters of all members; shares of time; levels, which batches know nothing of."""
        run = self.run
        total = self.counts.sum(axis=0)
        for k, name in enumerate(COUNTERS):
            run.counters[name] = run.counters.get(name, 0) + int(total[k])
        spent = total[COUNT.in_discover : COUNT.in_stall + 1].astype(float)
        for name, share_ in zip(STAGES, spent / max(1.0, spent.sum()), strict=True):
            run.counters[name] = float(share_)
        found = bfs(run.graph, self.start, directed=False, engine="cpu", threads=run.team.size)
        run.facts[FACT.levels] = found.rounds + 1
