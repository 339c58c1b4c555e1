"""What both batch methods share: the board of batches, their signals, and new batches.

A batch is a range of places in the queue; its vertices are parents.  Batches are numbered in the
order of the queue, and `claim[v]` is the least batch that has reached v so far.  Each batch has
a line of words on the board:

    ready, begin, end    its parents are at places begin to end
    owner                the worker that is to take it
    turn                 all batches before it have read their neighbours (discovered them)
    state                COUNTED: the words pos, next, over, over_arcs hold: where its children go,
                         the number of the next batch to be made, and the overhang: vertices placed
                         right before these that are in no batch yet.  COMPLETED: the overhang is
                         written
    children, arcs       of this batch, once they are certain
    decision, made       what becomes of its children, and into how many batches they are cut

Two signals run along the chain of batches: the turn, and the count of children.  In the paper each
worker receives and sends them; then they wait wherever a worker is busy with another batch.  Here
a worker that sends a signal to a batch whose own part is done sends it on at once, as far as it
can go.  Otherwise the batch's worker sends it on.  The signal and the worker both mark the word
met_turn or met_count; the second of the two sends the signal on.

Races.  Words are published with release (ready, turn, state, decision) and read with acquire; an
exchange on met_turn and met_count is both.  So what was written before, the queue included, is
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

from matchwood.engines.cpu import (
    atomic_add,
    atomic_exchange,
    back_off,
    device,
    load_relaxed,
    store_relaxed,
    store_release,
)
from matchwood.engines.cpu.hints import assembly
from matchwood.engines.cpu.team import SPINS, YIELDS
from matchwood.ordering.rcm.batch_basic.cpu_work import (
    Sizes,
    batches_for,
    size_of,
    weight_of,
)
from matchwood.ordering.rcm.cpu_sort import ONE, ZERO

Array = np.ndarray[Any, Any]


LINE = 16  # words of a batch on the board: two cache lines


class Words(NamedTuple):
    """The words of a batch on the board, as explained above."""

    ready: Any
    begin: Any
    end: Any
    turn: Any
    state: Any
    pos: Any
    next: Any
    over: Any
    over_arcs: Any
    children: Any
    arcs: Any
    decision: Any
    made: Any
    met_turn: Any
    met_count: Any
    owner: Any


WORD = Words(*(np.uint64(k) for k in range(LINE)))
BEHIND = np.uint64(LINE)  # words from one batch to the next on the board

COUNTED, COMPLETED = np.uint64(1), np.uint64(2)
"""Values of the word `state`."""

CUT, LEFT, LONE, NOTHING = (np.uint64(k) for k in range(1, 5))
"""Values of the word `decision`, about the children of a batch.  CUT: made into batches, except for
an overhang left to the next batch.  LEFT: all are left to it.  LONE: one worker follows them alone.
NOTHING: there are none."""


class Shared(NamedTuple):
    """Words of `shared`, two cache lines apart."""

    head: int = 0  # the next batch to take
    finished: int = 16  # 1 when all places are filled, or will be
    wide_taken: int = 32  # 1 while a batch uses the wide list
    filled: int = 48  # the place behind the last


SHARED = Shared()
SHARED_WORDS = 64


class Board(NamedTuple):
    """The words by which workers signal to each other."""

    words: Array  # LINE words for each batch
    shared: Array  # as named by SHARED
    loads: Array  # weight of the batches that each worker has to do, two cache lines apart
    sizes: Sizes
    limit: Any  # places that can be filled


# what is counted for each member: events, then ticks by stage
COUNTERS = ("generated", "dequeued", "executed", "empty", "rediscoveries", "removed")
STAGES = ("discover", "sort", "rediscover", "signal", "output", "stall")


class Counts(NamedTuple):
    """Words of a member's `counts`."""

    generated: int = 0  # events, as in COUNTERS
    dequeued: int = 1
    executed: int = 2
    empty: int = 3
    rediscoveries: int = 4
    removed: int = 5
    in_discover: int = 6  # ticks, as in STAGES
    in_sort: int = 7
    in_rediscover: int = 8
    in_signal: int = 9
    in_output: int = 10
    in_stall: int = 11
    since: int = 12  # when the present stage began


COUNT = Counts()
COUNT_WORDS = 16


class Watch(NamedTuple):
    """What statistics and tests ask of a member."""

    counts: Array
    timed: bool  # whether ticks are counted
    delays: Array


@device
def own_watch(watches: Watch, rank: int) -> Watch:
    """That of one member, whose clock starts now."""
    counts = watches.counts[rank]
    if watches.timed:
        counts[COUNT.since] = ticks()
    return Watch(counts, watches.timed, watches.delays)


@device
def lap(watch: Watch, stage: int) -> None:
    """Count the time since the last lap for a stage."""
    if watch.timed:
        now = ticks()
        watch.counts[stage] += now - watch.counts[COUNT.since]
        watch.counts[COUNT.since] = now


SPIN_CHECKS = 200  # reads of a signal, with the pause hint between them, before yielding the core
YIELD_CHECKS = 20_000  # reads of a signal before sleeping

_ARM = platform.machine().lower() in ("aarch64", "arm64")
_X86 = platform.machine().lower() in ("x86_64", "amd64", "x64")


@intrinsic
def ticks(typingctx: Any) -> Any:
    """The cycle counter of the core; 0 where there is none that programs may read."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        if _ARM:
            kind = ir.FunctionType(word, [])
            return assembly(builder, kind, "mrs $0, cntvct_el0", "=r", side_effect=True)
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
def publish(words: Array, b: Any, begin: Any, end: Any, owner: Any) -> None:
    """Let batch b be taken."""
    at = line(b)
    words[at + WORD.owner] = owner
    words[at + WORD.begin] = begin
    words[at + WORD.end] = end
    store_release(words, at + WORD.ready, ONE)


@device
def _hand_out(
    board: Board, b: Any, begin: Any, end: Any, weight: Any, rank: int, size: int
) -> None:
    """Let batch b be taken by the worker that makes it, unless another has clearly less to do.

    The maker has its neighbourhood in the caches; with batches handed out in turn, discovery took
    three times as long on a mesh.  But a worker that has two batches where others have one makes
    them all wait.
    """
    owner = rank
    most = load_relaxed(board.loads, 16 * rank)
    if most > weight // np.uint64(2):
        most -= weight // np.uint64(2)
        for k in range(size):
            load = load_relaxed(board.loads, 16 * k)
            if load < most:
                most, owner = load, k
    atomic_add(board.loads, 16 * owner, weight)
    publish(board.words, b, begin, end, owner)


@device
def cut(
    indptr: Array,
    queue: Array,
    begin: Any,
    end: Any,
    arcs: Any,
    board: Board,
    b: Any,
    count: Any,
    rank: int,
    size: int,
) -> None:
    """Make batches b to b + count of the places begin to end, of equal weights.

    A vertex heavier than a batch leaves the ones behind it empty.
    """
    one = queue.dtype.type(1)
    total = weight_of(end - begin, arcs)
    first, weight = begin, ZERO
    passed = made = ZERO
    row = board.sizes.row
    if row > ZERO:
        while made < count:
            last = begin + (end - begin) * (made + ONE) // count
            weight = weight_of(last - first, (last - first) * row)
            _hand_out(board, b + made, first, last, weight, rank, size)
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
            _hand_out(board, b + made, first, i + ONE, weight, rank, size)
            first, weight = i + ONE, ZERO
            made += ONE
    while made < count:
        _hand_out(board, b + made, first, end, weight, rank, size)
        first, weight = end, ZERO
        made += ONE


@device
def take_turn(words: Array, b: Any) -> None:
    """All batches before b have discovered: signal b, and those after it as far as that holds."""
    while line(b) < np.uint64(words.size):
        at = line(b)
        store_release(words, at + WORD.turn, ONE)
        if atomic_exchange(words, at + WORD.met_turn, ONE) == ZERO:
            return
        b += ONE


@device
def end_discovery(words: Array, b: Any) -> None:
    """Batch b has read all its neighbours."""
    if atomic_exchange(words, line(b) + WORD.met_turn, ONE) > ZERO:
        take_turn(words, b + ONE)


@device
def send(
    words: Array, b: Any, pos: Any, following: Any, over: Any, over_arcs: Any, state: Any
) -> None:
    """Tell batch b where its children go."""
    at = line(b)
    words[at + WORD.pos] = pos
    words[at + WORD.next] = following
    words[at + WORD.over] = over
    words[at + WORD.over_arcs] = over_arcs
    store_release(words, at + WORD.state, state)


@device
def finish(shared: Array, end: Any) -> None:
    """All places up to `end` are filled, or will be: no batch behind has children."""
    store_relaxed(shared, SHARED.filled, end)
    store_release(shared, SHARED.finished, ONE)


@device
def count_from(board: Board, b: Any) -> None:
    """Batch b knows its children and where they go: decide on them, and signal those after it.

    Goes on as long as batches know their children.  What does not fill a batch is left to the next
    one, so that all are of one size; where rows are uneven, only if it is far from that.  If there
    is no next one, few children are followed alone.
    """
    words, sizes = board.words, board.sizes
    even = sizes.row > ZERO
    while True:
        at = line(b)
        count, arcs = words[at + WORD.children], words[at + WORD.arcs]
        pos, following = words[at + WORD.pos], words[at + WORD.next]
        over, over_arcs = words[at + WORD.over], words[at + WORD.over_arcs]
        total, total_arcs = over + count, over_arcs + arcs
        weight = weight_of(total, total_arcs)
        last = b + ONE == following  # no batch is behind this one
        end = pos + count
        full = size_of(end - words[at + WORD.begin], sizes)
        rest = ZERO
        done = False
        if end >= board.limit:  # all places are filled, or will be
            decision, done = NOTHING, True
        elif total == ZERO:
            decision, done = NOTHING, last
        elif last and weight < sizes.enough:
            decision = LONE
        elif not last and weight < (full if even else full // np.uint64(4)):
            decision, rest = LEFT, total
        else:
            decision = CUT
            made = batches_for(total, total_arcs, full)
            if even and not last and made * full > weight:
                made -= ONE
                rest = (weight - made * full) * total // weight
            words[at + WORD.made] = made
            following += made
        if rest > ZERO:
            send(words, b + ONE, end, following, rest, total_arcs * rest // total, COUNTED)
        elif decision != LONE and not done:
            send(words, b + ONE, end, following, ZERO, ZERO, COMPLETED)
        store_release(words, at + WORD.decision, decision)
        if done:  # stored after the decision: a reader of this sees all decisions made
            finish(board.shared, end)
        if done or decision == LONE:
            return
        if atomic_exchange(words, at + BEHIND + WORD.met_count, ONE) == ZERO:
            return
        b += ONE


@device
def children_known(board: Board, b: Any, count: Any, arcs: Any) -> None:
    """The children of batch b are certain."""
    at = line(b)
    board.words[at + WORD.children] = count
    board.words[at + WORD.arcs] = arcs
    if atomic_exchange(board.words, at + WORD.met_count, ONE) > ZERO:
        count_from(board, b)


@device
def resume(board: Board, b: Any, pos: Any, following: Any) -> None:
    """Signal to batch b where its children go, after some were placed alone."""
    send(board.words, b, pos, following, ZERO, ZERO, COMPLETED)
    if atomic_exchange(board.words, line(b) + WORD.met_count, ONE) > ZERO:
        count_from(board, b)


@device
def wait_a_little(checks: int) -> int:
    """Wait for another worker.  Signals come soon, so sleep only after many checks."""
    if checks < SPIN_CHECKS:
        back_off(0)  # the pause hint only
    elif checks < YIELD_CHECKS:
        back_off(SPINS)  # yields the core
    else:
        back_off(SPINS + YIELDS)  # sleeps
        return checks
    return checks + 1
