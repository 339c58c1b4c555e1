"""The basic batch method: threads find the children of ranges of the queue ahead of time.

A batch is a range of the queue.  A worker takes batches one after the other, and lists and sorts
the free neighbours of each ahead of time.  It waits for its turn, until all earlier batches have
done so and dropped what is not theirs; then for the place of its children.  Every batch with
children makes new batches.  The table, its signals, the work on one batch, the paper:
batch_table.py.

No deadlock: batches are taken in order, and of those not finished the first waits for no other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    advance,
    atomic_add,
    device,
    kernel,
    load_acquire,
    stopping,
    store_release,
)
from matchwood.ordering.rcm.cpu.batch_table import (
    BEHIND,
    COMPLETED,
    COUNT,
    SHARED,
    WORD,
    Batches,
    BatchTable,
    ChildLists,
    Watch,
    arcs_between,
    batches_for,
    begin_all,
    cut,
    discover,
    finish,
    lap,
    line,
    most_arcs,
    own_watch,
    rediscover,
    send,
    sort_all,
    wait_a_little,
)
from matchwood.ordering.rcm.cpu.children import (
    EVERYTHING,
    ONE,
    ZERO,
    Csr,
    Sorter,
    delay,
    own_sorter,
)

Array = np.ndarray[Any, Any]


@device
def _await(team: Any, table: BatchTable, at: Any, value: Any) -> bool:
    """Wait until words[at] >= value; False when the order is finished or the team stops."""
    checks = 0
    while load_acquire(table.words, at) < value:
        if stopping(team) or load_acquire(table.shared, SHARED.finished) > ZERO:
            # the signal may have arrived between the two reads
            return load_acquire(table.words, at) >= value
        checks = wait_a_little(checks)
    return True


@device
def _take_wide_list(team: Any, table: BatchTable, at: Any) -> bool:
    """As `_await`, for the turn of the batch whose words are at `at`, then for the wide list."""
    if not _await(team, table, at + WORD.turn, ONE):
        return False
    checks = 0
    while load_acquire(table.shared, SHARED.wide_taken) > ZERO:
        if stopping(team):
            return False
        checks = wait_a_little(checks)
    store_release(table.shared, SHARED.wide_taken, ONE)  # no other wide batch has its turn now
    return True


@kernel
def order_batch_basic(
    team: Any, csr: Csr, queue: Array, start: Any, at: Any, claim: Array, table: BatchTable,
    lists: ChildLists, sorters: Sorter, watches: Watch,
) -> None:  # fmt: skip
    """Place the component of `start` from place `at` on."""
    rank = team.rank
    indptr, words, sizes = csr.indptr, table.words, table.sizes
    sorter = own_sorter(sorters, rank)
    ends = lists.ends[rank, 0]
    if begin_all(team, start, at, claim, queue, words):
        return
    watch = own_watch(watches, rank)
    counts, delays = watch.counts, watch.delays
    while not stopping(team):
        b = atomic_add(table.shared, SHARED.head, ONE)
        mine = line(b)
        if mine >= np.uint64(words.size) or not _await(team, table, mine + WORD.ready, ONE):
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
            if not _take_wide_list(team, table, mine):
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
        if not _await(team, table, mine + WORD.turn, ONE):
            return
        lap(watch, COUNT.in_stall)
        left = rediscover(claim, b, found, ends, parents)
        counts[COUNT.rediscoveries] += ONE if left < count else ZERO
        counts[COUNT.removed] += count - left
        lap(watch, COUNT.in_rediscover)
        store_release(words, mine + BEHIND + WORD.turn, ONE)
        delay(team, delays)
        if not _await(team, table, mine + WORD.state, COMPLETED):
            return
        lap(watch, COUNT.in_stall)
        pos, following = words[mine + WORD.pos], words[mine + WORD.next]
        arcs = arcs_between(indptr, found, ZERO, left, sizes)
        made = batches_for(left, arcs, sizes.least)
        send(words, b + ONE, pos + left, following + made, ZERO, ZERO, COMPLETED)
        if b + ONE == following + made:  # no batch is left: the last one had no children
            finish(table.shared, pos)
        lap(watch, COUNT.in_signal)
        delay(team, delays)
        for x in range(left):
            queue[pos + x] = found[x]
        if wide:
            store_release(table.shared, SHARED.wide_taken, ZERO)
        cut(indptr, queue, pos, pos + left, arcs, table, following, made, rank, team.size)
        counts[COUNT.generated] += made
        advance(team, np.int64(left))
        lap(watch, COUNT.in_output)


def order(run: Any, start: int, queue: Array, at: int, limit: int) -> None:
    # every batch that has children makes new ones, so there may be one for each vertex
    used = Batches(run, start, at, run.n, slots=1, more=run.n)
    run.team.run(order_batch_basic, *used.arguments(queue))
    used.close(queue)
