"""What both batch methods share: the board of batches, their signals, discovery, new batches.

A batch is a range of places in the queue; its vertices are parents.  Batches are numbered in the
order of the queue, and `claim[v]` is the least batch that has reached v so far.  Each batch has
a line of words on the board:

    READY, BEGIN, END    its parents are at places BEGIN to END
    OWNER                the worker that is to take it
    TURN                 all batches before it have looked at their neighbours (DISCOVERED)
    STATE                COUNTED: the words POS, NEXT, OVER, OVER_ARCS hold: where its children go,
                         the number of the next batch to be made, and the overhang, vertices placed
                         just before that are in no batch yet.  COMPLETED: the overhang is written
    CHILDREN, ARCS       of this batch, once they are certain
    FATE, MADE           what becomes of its children, and into how many batches they are cut

Two signals run along the chain of batches.  The paper has each worker receive and pass them on;
then they wait wherever a worker is busy with another batch.  Here a signal that meets a batch
whose own part is done (its discovery, its children certain) is passed on at once by whoever
brought it, as far as it can go; otherwise the batch's worker takes it from there.  Who comes second
to the words MET_TURN and MET_COUNT, the signal or the worker, is the one that goes on.

Races.  Words are published with release (READY, TURN, STATE, FATE) and read with acquire; an
exchange on MET_TURN and MET_COUNT is both.  So what was written before, the queue included, is
seen.  `claim` only goes down, by atomic minimum; a batch whose turn has come is the least that is
left and may store plainly, since no claim of others can be below.  Once a batch's turn has come,
what is claimed for it stays so.  A claim that is read too early is too large at worst.
"""

from __future__ import annotations

import platform
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from matchwood.ordering.rcm.cpu_sort import AHEAD, ONE, ZERO, fetch_rows, sort_children
from matchwood.primitives.cpu_hints import prefetch, prefetch_write
from matchwood.teams import (
    atomic_add,
    atomic_exchange,
    atomic_min,
    back_off,
    device,
    load_relaxed,
    store_relaxed,
    store_release,
)
from matchwood.teams.team import SPINS, YIELDS

Array = np.ndarray[Any, Any]

PARENT_WEIGHT = np.uint64(64)  # a parent weighs as much as so many arcs


class Tuning(NamedTuple):
    """Sizes of batches; tests take small ones.

    Measured on a mesh of 128^3 with 16 threads, in milliseconds (serial: 70): batches of `least`
    38, of a quarter of a worker's part of the front 50, of half of it 25, of all of it 23.
    """

    least: int = 8192  # weight of a batch: some 64 parents and 4096 arcs
    largest: int = 3 << 16  # what it may grow to where the front is wide
    each: int = 1  # batches that a worker should have of the front
    enough: int = 1 << 15  # weight from which a lone worker makes batches for all
    room: int = 1 << 18  # children that a worker's own buffer holds; for more it takes turns
    slots: int = 4  # batches in work per thread

    def parents(self) -> int:
        """The most parents of a batch: the last may be heavier than what is left."""
        return 2 * self.largest // int(PARENT_WEIGHT) + 2

    def batches(self, n: int, m: int) -> int:
        """The most batches that can be made, from vertices of at least a quarter of `least`."""
        return 5 * (m + n * int(PARENT_WEIGHT)) // self.least + 64


LINE = 16
(READY, BEGIN, END, TURN, STATE, POS, NEXT, OVER) = (np.uint64(k) for k in range(8))
(OVER_ARCS, CHILDREN, ARCS, FATE, MADE, MET_TURN, MET_COUNT, OWNER) = (
    np.uint64(k) for k in range(8, 16)
)
TRY_TWO = False
TRY_CLAIMS = False
TRY_LINES = False
TRY_ROUND = False
TRY_GROUP = False
TRY_WRITE = False
TRY_FREE = False
GROUP = np.uint64(8)
TRY_REST = False
COUNTED, COMPLETED = np.uint64(1), np.uint64(2)
CUT, LEFT, LONE, NOTHING = (np.uint64(k) for k in range(1, 5))
"""Fates: made into batches; left to the next batch as overhang; followed alone; none to place."""

# words of `sizes`: the weights of Tuning, of an average vertex, and batches wanted of the front
LEAST, LARGEST, ENOUGH, AVERAGE, WANTED, ROW, LONGEST = range(7)

SPIN = 200  # looks, with the hint between them, before the core is offered to others ...
LONG = 20_000  # ... and before sleeping

# words of `shared`, a cache line apart
HEAD, FINISHED, WIDE_TAKEN, FILLED = (16 * k for k in range(4))
SHARED = 4 * 16

# what is counted for each member: events, then ticks by stage
COUNTERS = ("generated", "dequeued", "executed", "empty", "rediscoveries", "removed")
GENERATED, DEQUEUED, EXECUTED, EMPTY, REDISCOVERIES, REMOVED = range(6)
STAGES = ("discover", "sort", "rediscover", "signal", "output", "stall")
IN_DISCOVER, IN_SORT, IN_REDISCOVER, IN_SIGNAL, IN_OUTPUT, IN_STALL = range(6, 12)
COUNTS = 16

_ARM = platform.machine().lower() in ("aarch64", "arm64")
_X86 = platform.machine().lower() in ("x86_64", "amd64", "x64")


@intrinsic
def ticks(typingctx: Any) -> Any:
    """A clock of the core, in steps of its own; 0 where there is none that programs may read."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        if _ARM:
            kind = ir.FunctionType(word, [])
            return builder.asm(kind, "mrs $0, cntvct_el0", "=r", (), side_effect=True)
        if _X86:
            kind = ir.FunctionType(word, [])
            clock = builder.module.declare_intrinsic("llvm.readcyclecounter", (), kind)
            return builder.call(clock, ())
        return word(0)

    return types.uint64(), codegen


@device
def line(b: Any) -> Any:
    """Where the words of batch b begin."""
    return b * np.uint64(LINE)


@device
def weight_of(vertices: Any, arcs: Any) -> Any:
    return arcs + vertices * PARENT_WEIGHT


@device
def batches_for(vertices: Any, arcs: Any, full: Any) -> Any:
    """Into how many batches vertices with so many arcs are cut."""
    if TRY_ROUND:
        return max(ONE, (weight_of(vertices, arcs) + full // np.uint64(2)) // full)
    return (weight_of(vertices, arcs) + full - ONE) // full


@device
def arcs_between(indptr: Array, queue: Array, begin: Any, end: Any, sizes: Array) -> Any:
    """Arcs that leave places begin to end; about so many, where rows are even."""
    if sizes[ROW] > ZERO:
        return (end - begin) * sizes[ROW]
    one = queue.dtype.type(1)
    arcs = ZERO
    for i in range(begin, end):
        u = queue[i]
        arcs += np.uint64(indptr[u + one] - indptr[u])
    return arcs


@device
def most_arcs(arcs: Any, vertices: Any, sizes: Array) -> Any:
    """The most arcs that vertices have for which `arcs_between` says `arcs`."""
    return vertices * sizes[LONGEST] if sizes[ROW] > ZERO else arcs


@device
def discover(
    indptr: Array,
    indices: Array,
    claim: Array,
    queue: Array,
    begin: Any,
    end: Any,
    b: Any,
    in_turn: bool,
    found: Array,
    ends: Array,
) -> Any:
    """List the neighbours of places begin to end that batch b is the least to claim so far.

    ends[i - begin] is where the children of the i-th parent end.  Returns their number.
    """
    one = indices.dtype.type(1)
    mine = claim.dtype.type(b)
    count = ZERO
    if TRY_GROUP:
        i = begin
        while i < end:
            stop = min(i + GROUP, end)
            seen = count
            for j in range(i, stop):
                fetch_rows(indptr, indices, queue, j, end)
                u = queue[j]
                for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + one])):
                    v = indices[k]
                    if TRY_FREE:
                        found[seen] = v
                        seen += np.uint64(load_relaxed(claim, v) > mine)
                    elif load_relaxed(claim, v) > mine:
                        if TRY_WRITE:
                            prefetch_write(claim, v)
                        found[seen] = v
                        seen += ONE
                ends[j - begin] = seen
            at = count
            for j in range(i, stop):
                last = ends[j - begin]
                while at < last:
                    v = found[at]
                    at += ONE
                    if load_relaxed(claim, v) > mine:
                        if in_turn:
                            store_relaxed(claim, v, mine)
                        elif atomic_min(claim, v, mine) <= mine:
                            continue
                        found[count] = v
                        count += ONE
                ends[j - begin] = count
            i = stop
        return count
    for i in range(begin, end):
        fetch_rows(indptr, indices, queue, i, end)
        u = queue[i]
        if TRY_LINES:
            if i + AHEAD < end:
                prefetch(indices, np.uint64(indptr[queue[i + AHEAD]]) + np.uint64(16))
        if TRY_CLAIMS:
            if i + ONE < end:
                w = queue[i + ONE]
                for k in range(np.uint64(indptr[w]), np.uint64(indptr[w + one])):
                    prefetch(claim, indices[k])
        if TRY_TWO:
            seen = count
            for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + one])):
                v = indices[k]
                found[seen] = v
                seen += np.uint64(load_relaxed(claim, v) > mine)
            if in_turn:
                for x in range(count, seen):
                    store_relaxed(claim, found[x], mine)
                count = seen
            else:
                for x in range(count, seen):
                    v = found[x]
                    if atomic_min(claim, v, mine) > mine:
                        found[count] = v
                        count += ONE
        else:
            for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + one])):
                v = indices[k]
                if load_relaxed(claim, v) > mine:
                    if in_turn:
                        store_relaxed(claim, v, mine)
                    elif atomic_min(claim, v, mine) <= mine:
                        continue
                    found[count] = v
                    count += ONE
        ends[i - begin] = count
    return count


@device
def rediscover(claim: Array, b: Any, found: Array, ends: Array, parents: Any) -> Any:
    """Drop children that batches before b have claimed since; returns how many are left."""
    mine = claim.dtype.type(b)
    at = kept = ZERO
    for i in range(parents):
        end = np.uint64(ends[i])
        while at < end:
            v = found[at]
            at += ONE
            if load_relaxed(claim, v) == mine:
                found[kept] = v
                kept += ONE
        ends[i] = kept
    return kept


@device
def sort_all(
    indptr: Array,
    found: Array,
    ends: Array,
    parents: Any,
    shift: Any,
    keys: Array,
    other: Array,
    bins: Array,
) -> None:
    """Sort the children of each parent."""
    first = ZERO
    for i in range(parents):
        end = np.uint64(ends[i])
        sort_children(indptr, found, first, end - first, shift, keys, other, bins)
        first = end


@device
def publish(board: Array, b: Any, begin: Any, end: Any, owner: Any) -> None:
    """Let batch b be taken."""
    at = line(b)
    board[at + OWNER] = owner
    board[at + BEGIN] = begin
    board[at + END] = end
    store_release(board, at + READY, ONE)


@device
def _owner_of(loads: Array, rank: int, size: int, weight: Any) -> int:
    """Who is to take a batch: the worker that made it, unless it has much more than others.

    Its neighbourhood is in the caches of who made it; with batches handed out in turn, discovery
    took three times as long on a mesh.
    """
    mine = load_relaxed(loads, 16 * rank)
    if mine < weight + weight:
        return rank
    total = ZERO
    least, free = mine, rank
    for k in range(size):
        load = load_relaxed(loads, 16 * k)
        total += load
        if load < least:
            least, free = load, k
    return free if mine * np.uint64(size) > total + total // np.uint64(4) else rank


@device
def cut(
    indptr: Array,
    queue: Array,
    begin: Any,
    end: Any,
    arcs: Any,
    board: Array,
    b: Any,
    count: Any,
    rank: int,
    size: int,
    loads: Array,
    sizes: Array,
) -> None:
    """Make batches b to b + count of the places begin to end, of equal weights.

    A vertex heavier than a batch leaves the ones behind it empty.
    """
    one = queue.dtype.type(1)
    total = weight_of(end - begin, arcs)
    share = total // max(count, ONE)
    passed = made = ZERO
    first = begin
    if sizes[ROW] > ZERO:
        while made < count:
            last = begin + (end - begin) * (made + ONE) // count
            owner = _owner_of(loads, rank, size, share)
            atomic_add(loads, 16 * owner, share)
            publish(board, b + made, first, last, owner)
            first = last
            made += ONE
        return
    for i in range(begin, end):
        u = queue[i]
        passed += weight_of(ONE, np.uint64(indptr[u + one] - indptr[u]))
        # the batch is full when its share of the weight is reached
        while made + ONE < count and passed * count >= total * (made + ONE):
            owner = _owner_of(loads, rank, size, share)
            atomic_add(loads, 16 * owner, share)
            publish(board, b + made, first, i + ONE, owner)
            first = i + ONE
            made += ONE
    while made < count:
        owner = _owner_of(loads, rank, size, share)
        atomic_add(loads, 16 * owner, share)
        publish(board, b + made, first, end, owner)
        first = end
        made += ONE


@device
def take_turn(board: Array, b: Any) -> None:
    """All batches before b have discovered: tell b, and those behind as far as that holds."""
    while line(b) < np.uint64(board.size):
        at = line(b)
        store_release(board, at + TURN, ONE)
        if atomic_exchange(board, at + MET_TURN, ONE) == ZERO:
            return
        b += ONE


@device
def end_discovery(board: Array, b: Any) -> None:
    """Batch b has looked at all its neighbours."""
    if atomic_exchange(board, line(b) + MET_TURN, ONE) > ZERO:
        take_turn(board, b + ONE)


@device
def send(
    board: Array, b: Any, pos: Any, following: Any, over: Any, over_arcs: Any, state: Any
) -> None:
    """Tell batch b where its children go."""
    at = line(b)
    board[at + POS] = pos
    board[at + NEXT] = following
    board[at + OVER] = over
    board[at + OVER_ARCS] = over_arcs
    store_release(board, at + STATE, state)


@device
def size_of(front: Any, sizes: Array) -> Any:
    """The weight of a batch where so many vertices are in the queue; `sizes` as from `order`."""
    wanted = front * sizes[AVERAGE] // sizes[WANTED]
    return max(sizes[LEAST], min(wanted, sizes[LARGEST]))


@device
def count_from(board: Array, b: Any, limit: Any, sizes: Array, shared: Array) -> None:
    """Batch b knows its children and where they go: decide on them, and tell those behind.

    Goes on as long as batches know their children.  Few children are left to the next batch, or
    followed alone when there is none.
    """
    while True:
        at = line(b)
        count, arcs = board[at + CHILDREN], board[at + ARCS]
        pos, following = board[at + POS], board[at + NEXT]
        over, over_arcs = board[at + OVER], board[at + OVER_ARCS]
        total, total_arcs = over + count, over_arcs + arcs
        weight = weight_of(total, total_arcs)
        last = b + ONE == following  # no batch is behind this one
        end = pos + count
        full = size_of(end - board[at + BEGIN], sizes)
        rest = ZERO
        done = False
        if end == limit:  # all places are filled, or will be
            fate, done = NOTHING, True
        elif total == ZERO:
            fate, done = NOTHING, last
        elif last and weight < sizes[ENOUGH]:
            fate = LONE
        elif not last and weight < (full if TRY_REST else full // np.uint64(4)):
            fate = LEFT
        else:
            fate = CUT
            made = batches_for(total, total_arcs, full)
            if TRY_REST and not last:
                made = weight // full
                rest = total - min(total, (total * made * full + weight - ONE) // weight)
            board[at + MADE] = made
            following += made
        if fate == CUT and rest > ZERO:
            rest_arcs = total_arcs * rest // total
            send(board, b + ONE, end, following, rest, rest_arcs, COUNTED)
        elif fate == LEFT:
            send(board, b + ONE, end, following, total, total_arcs, COUNTED)
        elif fate != LONE and not done:
            send(board, b + ONE, end, following, ZERO, ZERO, COMPLETED)
        store_release(board, at + FATE, fate)
        if done:  # after the fate: who sees this sees the fates of all that have one
            store_relaxed(shared, FILLED, end)
            store_release(shared, FINISHED, ONE)
        if done or fate == LONE:
            return
        if atomic_exchange(board, at + np.uint64(LINE) + MET_COUNT, ONE) == ZERO:
            return
        b += ONE


@device
def children_known(
    board: Array,
    b: Any,
    count: Any,
    arcs: Any,
    limit: Any,
    sizes: Array,
    shared: Array,
) -> None:
    """The children of batch b are certain."""
    at = line(b)
    board[at + CHILDREN] = count
    board[at + ARCS] = arcs
    if atomic_exchange(board, at + MET_COUNT, ONE) > ZERO:
        count_from(board, b, limit, sizes, shared)


@device
def resume(
    board: Array,
    b: Any,
    pos: Any,
    following: Any,
    limit: Any,
    sizes: Array,
    shared: Array,
) -> None:
    """Tell batch b where its children go, after some were placed alone."""
    send(board, b, pos, following, ZERO, ZERO, COMPLETED)
    if atomic_exchange(board, line(b) + MET_COUNT, ONE) > ZERO:
        count_from(board, b, limit, sizes, shared)


@device
def patience(looks: int) -> int:
    """Wait a little for another worker.  Signals come soon, so sleep only after a long time."""
    if looks < SPIN:
        back_off(0)  # the hint, no more
    elif looks < LONG:
        back_off(SPINS)  # offers the core
    else:
        back_off(SPINS + YIELDS)  # sleeps
        return looks
    return looks + 1
