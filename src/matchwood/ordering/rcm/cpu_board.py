"""What both batch methods share: the board of batches, their signals, and new batches.

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
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from matchwood.ordering.rcm.cpu_batch_work import (
    ENOUGH,
    ROW,
    batches_for,
    size_of,
    weight_of,
)
from matchwood.ordering.rcm.cpu_sort import ONE, ZERO
from matchwood.teams import (
    atomic_add,
    atomic_exchange,
    back_off,
    device,
    load_relaxed,
    store_relaxed,
    store_release,
)
from matchwood.teams.team import SPINS, YIELDS

Array = np.ndarray[Any, Any]


LINE = 16
(READY, BEGIN, END, TURN, STATE, POS, NEXT, OVER) = (np.uint64(k) for k in range(8))
(OVER_ARCS, CHILDREN, ARCS, FATE, MADE, MET_TURN, MET_COUNT, OWNER) = (
    np.uint64(k) for k in range(8, 16)
)
COUNTED, COMPLETED = np.uint64(1), np.uint64(2)
CUT, LEFT, LONE, NOTHING = (np.uint64(k) for k in range(1, 5))
"""Fates of children: made into batches, but for what is left to the next as overhang; left to it as
a whole; followed alone; there are none."""


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
def publish(board: Array, b: Any, begin: Any, end: Any, owner: Any) -> None:
    """Let batch b be taken."""
    at = line(b)
    board[at + OWNER] = owner
    board[at + BEGIN] = begin
    board[at + END] = end
    store_release(board, at + READY, ONE)


@device
def _hand_out(
    board: Array, b: Any, begin: Any, end: Any, weight: Any, rank: int, size: int, loads: Array
) -> None:
    """Let batch b be taken by the worker that makes it, unless another has clearly less to do.

    Its neighbourhood is in the caches of who made it; with batches handed out in turn, discovery
    took three times as long on a mesh.  But with two batches where others have one, a worker has
    them all wait.
    """
    owner = rank
    most = load_relaxed(loads, 16 * rank)
    if most > weight // np.uint64(2):
        most -= weight // np.uint64(2)
        for k in range(size):
            load = load_relaxed(loads, 16 * k)
            if load < most:
                most, owner = load, k
    atomic_add(loads, 16 * owner, weight)
    publish(board, b, begin, end, owner)


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
    first, weight = begin, ZERO
    passed = made = ZERO
    if sizes[ROW] > ZERO:
        while made < count:
            last = begin + (end - begin) * (made + ONE) // count
            weight = weight_of(last - first, (last - first) * sizes[ROW])
            _hand_out(board, b + made, first, last, weight, rank, size, loads)
            first = last
            made += ONE
        return
    for i in range(begin, end):
        u = queue[i]
        own = weight_of(ONE, np.uint64(indptr[u + one] - indptr[u]))
        passed += own
        weight += own
        # the batch is full when its share of the weight is reached
        while made + ONE < count and passed * count >= total * (made + ONE):
            _hand_out(board, b + made, first, i + ONE, weight, rank, size, loads)
            first, weight = i + ONE, ZERO
            made += ONE
    while made < count:
        _hand_out(board, b + made, first, end, weight, rank, size, loads)
        first, weight = end, ZERO
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
def count_from(board: Array, b: Any, limit: Any, sizes: Array, shared: Array) -> None:
    """Batch b knows its children and where they go: decide on them, and tell those behind.

    Goes on as long as batches know their children.  What does not fill a batch is left to the next
    one, so that all are of one size; where rows are uneven, only if it is far from that.  If there
    is no next one, few children are followed alone.
    """
    even = sizes[ROW] > ZERO
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
        if end >= limit:  # all places are filled, or will be
            fate, done = NOTHING, True
        elif total == ZERO:
            fate, done = NOTHING, last
        elif last and weight < sizes[ENOUGH]:
            fate = LONE
        elif not last and weight < (full if even else full // np.uint64(4)):
            fate, rest = LEFT, total
        else:
            fate = CUT
            made = batches_for(total, total_arcs, full)
            if even and not last and made * full > weight:
                made -= ONE
                rest = (weight - made * full) * total // weight
            board[at + MADE] = made
            following += made
        if rest > ZERO:
            send(board, b + ONE, end, following, rest, total_arcs * rest // total, COUNTED)
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
