"""The batch methods: threads find the children of ranges of the queue ahead of time.

Read batch_table.py first: the table, its signals, the work on one batch, the paper.  The basic
method, with one batch in work for each worker, is the second half of the file.  Here with less
waiting:

A worker has several batches in work, each in a slot, and continues with any that need not wait.
The stages of a slot, and what it waits for:

    FRESH      nothing; but a batch with very many arcs waits for its turn and for the one wide list
    BEGUN      nothing: it reads its neighbours in pieces; between pieces other slots are served
    GUESSED    for its turn: children are sorted, but some may belong to batches before
    KNOWN      for the decision what becomes of its children: they are certain, their places are not
    WRITTEN    for the overhang to be written, before it goes into batches or is passed on

A batch is taken by the worker that made it, whose caches have the neighbourhood, unless another has
clearly less to do (`_hand_out`).  A wide frontier has one batch for each worker: then few vertices
are claimed by two workers, and no worker waits for one that has two batches.

A batch whose turn has come before it starts keeps all that it claims.  One whose turn comes while
it reads neighbours drops what others have claimed, then sorts.  Any other sorts what it has, and
drops later.  As soon as children are certain their number is signalled, before they are sorted.
Children that do not fill a batch are left to the next one as overhang, so that batches have about
the same size.  Without a next one the worker follows them alone, as in the serial method, until
there is enough for all.

When all places are filled, batches without a decision have no children, and are dropped.

No deadlock: each worker takes its batches in order, and only with a slot to put them in; so the
first of those not finished is in work or can be taken, and waits for no other.  The wide list is
taken by a batch whose turn has come, so those before have had it; and its holder waits only for
batches before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    advance,
    atomic_add,
    barrier,
    device,
    expanded,
    kernel,
    load_acquire,
    stopping,
    store_release,
)
from matchwood.ordering.rcm.cpu.batch_table import (
    BEHIND,
    COMPLETED,
    COUNT,
    CUT,
    LEFT,
    LONE,
    SHARED,
    WORD,
    Batches,
    BatchTable,
    ChildLists,
    Watch,
    arcs_between,
    batches_for,
    begin_all,
    children_known,
    cut,
    discover,
    end_discovery,
    finish,
    lap,
    line,
    most_arcs,
    own_watch,
    rediscover,
    resume,
    send,
    size_of,
    sort_all,
    wait_a_little,
    weight_of,
)
from matchwood.ordering.rcm.cpu.children import (
    EVERYTHING,
    ONE,
    ZERO,
    Csr,
    Sorter,
    delay,
    fetch_rows,
    own_sorter,
    reverse_places,
    sort_children,
)

Array = np.ndarray[Any, Any]

IDLE, FRESH, BEGUN, GUESSED, KNOWN, WRITTEN = (np.uint64(k) for k in range(6))


class SlotWords(NamedTuple):
    """Words of a slot, which holds a batch in work."""

    stage: int = 0
    b: int = 1  # the number of the batch
    children: int = 2  # found so far
    arcs: int = 3  # that leave them
    wide: int = 4  # 1 if it needs the wide list
    weight: int = 5
    at: int = 6  # the place up to which neighbours have been read
    certain: int = 7  # 1 if its turn had come before it read the first neighbour


SLOT = SlotWords()


class Worker(NamedTuple):
    """A member, and the arrays that its stages work on."""

    team: Any
    csr: Csr
    queue: Array
    claim: Array
    table: BatchTable
    sorter: Sorter
    watch: Watch


@expanded
def _first_to_discover(slots: Array) -> Any:
    """The number of the first batch that can read neighbours now; the others wait for it."""
    first = EVERYTHING
    for s in range(slots.shape[0]):
        slot = slots[s]
        stage = slot[SLOT.stage]
        if stage == BEGUN or (stage == FRESH and slot[SLOT.wide] == ZERO):
            first = min(first, slot[SLOT.b])
    return first


@expanded
def _discover_piece(w: Worker, slot: Array, turn: bool, found: Array, ends: Array) -> None:
    """BEGUN: read a piece of the neighbours; sort after the last: GUESSED, or KNOWN if in turn."""
    words, b = w.table.words, slot[SLOT.b]
    mine = line(b)
    begin, end = words[mine + WORD.begin], words[mine + WORD.end]
    sizes, watch, delays = w.table.sizes, w.watch, w.watch.delays
    lap(watch, COUNT.in_stall)
    slot[SLOT.at], slot[SLOT.children] = discover(
        w.csr, w.claim, w.queue, begin, slot[SLOT.at], end, b, turn, sizes.piece, found, ends,
        slot[SLOT.children],
    )  # fmt: skip
    lap(watch, COUNT.in_discover)
    delay(w.team, delays)
    if slot[SLOT.at] < end:
        return
    turn = load_acquire(words, mine + WORD.turn) > ZERO
    end_discovery(words, b)
    lap(watch, COUNT.in_signal)
    stage = GUESSED
    delay(w.team, delays)
    if turn:
        if slot[SLOT.certain] == ZERO:
            _drop(w, slot, found, ends, end - begin)
            lap(watch, COUNT.in_rediscover)
        slot[SLOT.arcs] = arcs_between(w.csr.indptr, found, ZERO, slot[SLOT.children], sizes)
        children_known(w.table, b, slot[SLOT.children], slot[SLOT.arcs])
        stage = KNOWN
        lap(watch, COUNT.in_signal)
    sort_all(w.csr.indptr, found, ends, end - begin, w.sorter)
    lap(watch, COUNT.in_sort)
    delay(w.team, delays)
    slot[SLOT.stage] = stage


@expanded
def _drop(w: Worker, slot: Array, found: Array, ends: Array, parents: Any) -> None:
    """Drop the children that earlier batches have claimed."""
    count = rediscover(w.claim, slot[SLOT.b], found, ends, parents)
    w.watch.counts[COUNT.rediscoveries] += ONE if count < slot[SLOT.children] else ZERO
    w.watch.counts[COUNT.removed] += slot[SLOT.children] - count
    slot[SLOT.children] = count


@expanded
def _settle_children(w: Worker, slot: Array, found: Array, ends: Array, parents: Any) -> None:
    """GUESSED, and the turn has come: drop what belongs to others, signal the number; KNOWN."""
    lap(w.watch, COUNT.in_stall)
    _drop(w, slot, found, ends, parents)
    slot[SLOT.arcs] = arcs_between(w.csr.indptr, found, ZERO, slot[SLOT.children], w.table.sizes)
    lap(w.watch, COUNT.in_rediscover)
    delay(w.team, w.watch.delays)
    children_known(w.table, slot[SLOT.b], slot[SLOT.children], slot[SLOT.arcs])
    lap(w.watch, COUNT.in_signal)
    delay(w.team, w.watch.delays)
    slot[SLOT.stage] = KNOWN


@expanded
def _write(w: Worker, slot: Array, found: Array) -> None:
    """KNOWN, and the decision is made: write the children to their places; WRITTEN."""
    lap(w.watch, COUNT.in_stall)
    pos = w.table.words[line(slot[SLOT.b]) + WORD.pos]
    for x in range(slot[SLOT.children]):
        w.queue[pos + x] = found[x]
    if slot[SLOT.wide] > ZERO:
        store_release(w.table.shared, SHARED.wide_taken, ZERO)
    advance(w.team, np.int64(slot[SLOT.children]))
    lap(w.watch, COUNT.in_output)
    delay(w.team, w.watch.delays)
    slot[SLOT.stage] = WRITTEN


@expanded
def _finish_batch(w: Worker, slot: Array, decision: Any) -> None:
    """WRITTEN, and the overhang is too: do with the children what was decided; IDLE."""
    words, me, size = w.table.words, w.team.me, w.team.size
    lap(w.watch, COUNT.in_stall)
    b = slot[SLOT.b]
    mine = line(b)
    over = words[mine + WORD.over]
    pos = words[mine + WORD.pos] - over
    tail = pos + over + slot[SLOT.children]
    following = words[mine + WORD.next]
    atomic_add(w.table.loads, 16 * me, ZERO - slot[SLOT.weight])
    if decision == LEFT:
        store_release(words, mine + BEHIND + WORD.state, COMPLETED)
        lap(w.watch, COUNT.in_signal)
    elif decision == CUT:
        arcs = words[mine + WORD.over_arcs] + slot[SLOT.arcs]
        behind = mine + BEHIND
        if words[behind + WORD.over] > ZERO:
            tail -= words[behind + WORD.over]
            arcs -= words[behind + WORD.over_arcs]
            store_release(words, behind + WORD.state, COMPLETED)
        made = words[mine + WORD.made]
        cut(w.csr.indptr, w.queue, pos, tail, arcs, w.table, following, made, me, size)
        w.watch.counts[COUNT.generated] += made
        lap(w.watch, COUNT.in_output)
    elif decision == LONE:
        before = tail
        pos, tail, arcs = _follow_alone(w, b, pos, tail)
        advance(w.team, np.int64(tail - before))
        if pos == tail or tail >= w.table.limit:
            finish(w.table.shared, tail)
        else:
            made = batches_for(tail - pos, arcs, size_of(tail - pos, w.table.sizes))
            resume(w.table, b + ONE, tail, following + made)
            cut(w.csr.indptr, w.queue, pos, tail, arcs, w.table, following, made, me, size)
            w.watch.counts[COUNT.generated] += made
        lap(w.watch, COUNT.in_output)
    slot[SLOT.stage] = IDLE


@device
def _follow_alone(w: Worker, b: Any, i: Any, tail: Any) -> tuple[Any, Any, Any]:
    """Follow the queue from place i on, while there is too little for all.

    No other worker has a batch.  Returns the places that are left, and their arcs.
    """
    indptr, indices = w.csr.indptr, w.csr.indices
    queue, claim, sizes, sorter = w.queue, w.claim, w.table.sizes, w.sorter
    one = indices.dtype.type(1)
    mine = claim.dtype.type(b)
    arcs = arcs_between(indptr, queue, i, tail, sizes)
    while i < tail < w.table.limit and weight_of(tail - i, arcs) < sizes.enough:
        if i & np.uint64(4095) == ZERO and stopping(w.team):
            break
        u = queue[i]
        i += ONE
        fetch_rows(indptr, indices, queue, i, tail)
        head = tail
        first, last = np.uint64(indptr[u]), np.uint64(indptr[u + one])
        arcs -= min(arcs, last - first)  # `arcs` may be an estimate
        for k in range(first, last):
            v = indices[k]
            if claim[v] > mine:
                claim[v] = mine
                queue[tail] = v
                tail += ONE
                arcs += np.uint64(indptr[v + one] - indptr[v])
        sort_children(indptr, queue, head, tail - head, sorter)
    return i, tail, arcs


@expanded
def _take(w: Worker, slot: Array, b: Any, room: Any) -> None:
    """Put batch b into an idle slot, whose lists hold `room` children."""
    mine = line(b)
    begin, end = w.table.words[mine + WORD.begin], w.table.words[mine + WORD.end]
    sizes = w.table.sizes
    arcs = arcs_between(w.csr.indptr, w.queue, begin, end, sizes)
    slot[SLOT.stage], slot[SLOT.b] = FRESH, b
    slot[SLOT.wide] = ONE if most_arcs(arcs, end - begin, sizes) > room else ZERO
    slot[SLOT.weight] = weight_of(end - begin, arcs)
    w.watch.counts[COUNT.dequeued] += ONE
    w.watch.counts[COUNT.executed if end > begin else COUNT.empty] += ONE


@expanded
def _go_on(w: Worker, slot: Array, found: Array, ends: Array, turn: bool) -> bool:
    """Take a batch through all stages that it can pass now; True if it has moved."""
    words = w.table.words
    mine = line(slot[SLOT.b])
    moved = False
    if slot[SLOT.stage] == FRESH:
        slot[SLOT.stage] = BEGUN
        slot[SLOT.at], slot[SLOT.children] = words[mine + WORD.begin], ZERO
        slot[SLOT.certain] = ONE if turn else ZERO
    if slot[SLOT.stage] == BEGUN:
        _discover_piece(w, slot, turn, found, ends)
        moved = True
        if slot[SLOT.stage] == BEGUN:
            return moved
        turn = load_acquire(words, mine + WORD.turn) > ZERO
    if slot[SLOT.stage] == GUESSED and turn:
        _settle_children(w, slot, found, ends, words[mine + WORD.end] - words[mine + WORD.begin])
        moved = True
    decision = load_acquire(words, mine + WORD.decision)
    if slot[SLOT.stage] == KNOWN and decision > ZERO:
        _write(w, slot, found)
        moved = True
    if slot[SLOT.stage] == WRITTEN and load_acquire(words, mine + WORD.state) >= COMPLETED:
        _finish_batch(w, slot, decision)
        moved = True
    return moved


@kernel
def order_batch(
    team: Any, csr: Csr, queue: Array, start: Any, at: Any, claim: Array, table: BatchTable,
    lists: ChildLists, sorters: Sorter, watches: Watch, all_slots: Array, reverse: bool,
) -> None:  # fmt: skip
    """Place the component of `start` from `at` on; once all is placed, `reverse` if asked for."""
    me = team.me
    words, shared, slots = table.words, table.shared, all_slots[me]
    ahead = ZERO  # lower batches are taken by their owners; this one may be ours
    checks = 0
    if begin_all(team, start, at, claim, queue, words):
        return
    watch = own_watch(watches, me)
    w = Worker(team, csr, queue, claim, table, own_sorter(sorters, me), watch)
    while True:
        moved = False
        busy = 0
        vacant = -1
        first = _first_to_discover(slots)
        for s in range(slots.shape[0]):
            slot = slots[s]
            stage, b = slot[SLOT.stage], slot[SLOT.b]
            if stage == IDLE:
                vacant = s
                continue
            wide = slot[SLOT.wide] > ZERO
            finished = load_acquire(shared, SHARED.finished) > ZERO  # read before the decision
            turn = load_acquire(words, line(b) + WORD.turn) > ZERO
            if (
                finished
                and stage < WRITTEN
                and load_acquire(words, line(b) + WORD.decision) == ZERO
            ):
                slot[SLOT.stage] = IDLE
                moved = True
                continue
            if stage == FRESH and wide:
                if not turn or load_acquire(shared, SHARED.wide_taken) > ZERO:
                    busy += 1
                    continue
                store_release(shared, SHARED.wide_taken, ONE)  # no other one has its turn now
                first = b
            if stage <= BEGUN and b > first:
                busy += 1
                continue
            found = lists.wide if wide else lists.found[me, s]
            ends = lists.wide_ends if wide else lists.ends[me, s]
            if _go_on(w, slot, found, ends, turn):
                moved = True
            if slot[SLOT.stage] == IDLE:
                vacant = s
            else:
                busy += 1

        if vacant >= 0:
            if load_acquire(shared, SHARED.finished) > ZERO:
                if busy == 0:
                    break
            elif line(ahead) < np.uint64(words.size):
                mine = line(ahead)
                if load_acquire(words, mine + WORD.ready) > ZERO:
                    if words[mine + WORD.owner] == np.uint64(me):
                        _take(w, slots[vacant], ahead, np.uint64(lists.found.shape[2]))
                    ahead += ONE
                    moved = True
        if stopping(team):
            return
        checks = 0 if moved else wait_a_little(checks)
    if reverse and shared[SHARED.filled] == np.uint64(queue.size) and not barrier(team):
        reverse_places(team, queue)


def order(run: Any, start: int, queue: Array, at: int, limit: int) -> None:
    slots = run.tuning.slots
    used = Batches(run, start, at, limit, slots=slots)
    all_slots = np.zeros((run.team.size, slots, len(SLOT)), np.uint64)
    run.team.run(order_batch, *used.arguments(queue), all_slots, run.reverse)
    end = used.close(queue)
    run.reversed = run.reverse and end == run.n


# The basic method.  A worker takes batches one after the other, and lists and sorts the free
# neighbours of each ahead of time.  It waits for its turn, until all earlier batches have done so
# and dropped what is not theirs; then for the place of its children.  Every batch with children
# makes new batches.
#
# No deadlock: batches are taken in order, and of those not finished the first waits for no other.


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
    me = team.me
    indptr, words, sizes = csr.indptr, table.words, table.sizes
    sorter = own_sorter(sorters, me)
    ends = lists.ends[me, 0]
    if begin_all(team, start, at, claim, queue, words):
        return
    watch = own_watch(watches, me)
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
        found = lists.wide if wide else lists.found[me, 0]
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
        cut(indptr, queue, pos, pos + left, arcs, table, following, made, me, team.size)
        counts[COUNT.generated] += made
        advance(team, np.int64(left))
        lap(watch, COUNT.in_output)


def order_basic(run: Any, start: int, queue: Array, at: int, limit: int) -> None:
    # every batch that has children makes new ones, so there may be one for each vertex
    used = Batches(run, start, at, run.n, slots=1, more=run.n)
    run.team.run(order_batch_basic, *used.arguments(queue))
    used.close(queue)
