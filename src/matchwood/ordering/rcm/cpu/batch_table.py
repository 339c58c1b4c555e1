"""What both batch methods share: the table of batches, their signals, and the work on one batch.

A batch is a range of places in the queue; its vertices are parents.  Batches are numbered in the
order of the queue, and `claim[v]` is the least batch that has reached v so far.  Each batch has
a line of words in the table:

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

The weight of a batch is the number of its arcs, and a little for each parent.  Its children are
listed parent by parent: `found` has the children, `ends` where those of each parent end.

D. Mlakar, M. Winter, M. Parger, M. Steinberger. Speculative parallel reverse Cuthill-McKee
reordering on multi- and many-core architectures. IPDPS 2021. doi:10.1109/IPDPS49936.2021.00080
"""

from __future__ import annotations

import platform
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    atomic_add,
    atomic_exchange,
    atomic_min,
    back_off,
    barrier,
    device,
    load_relaxed,
    share,
    store_relaxed,
    store_release,
)
from matchwood.engines.cpu.compiled import Later, intrinsic
from matchwood.engines.cpu.hints import assembly
from matchwood.engines.cpu.team import SPINS, YIELDS
from matchwood.ordering.rcm.cpu.children import (
    FACT,
    ONE,
    PLACED,
    WHOLE,
    ZERO,
    Csr,
    Sorter,
    fetch_rows,
    scattered,
    sort_children,
)
from matchwood.traversal import bfs

Array = np.ndarray[Any, Any]
ir, types = Later("llvmlite.ir"), Later("numba.core.types")

PAGE_WORDS = 1024  # words of 4 bytes on a page of 4 KiB
PARENT_WEIGHT = np.uint64(64)  # the weight of a parent beside its arcs, in arcs


class Tuning(NamedTuple):
    """Sizes of batches; tests take small ones.

    Measured on a mesh of 128^3 with 16 threads: 16 ms with one batch of the frontier for each
    worker, 25 with two, 29 with three; the serial method takes 62.
    """

    least: int = 8192  # weight of a batch: some 64 parents and 4096 arcs
    largest: int = 1 << 19  # weight that it may grow to where the frontier is wide
    each: int = 1  # batches of the frontier per worker
    enough: int = 1 << 15  # weight from which a lone worker makes batches for all
    room: int = 1 << 18  # children that a worker's own list holds; more go to the wide list
    slots: int = 2  # batches in work per thread
    piece: int = 1 << 13  # arcs, some 10 us, after which the worker serves its other batches

    @classmethod
    def of(cls, workers: int) -> Tuning:
        """The usual sizes.  Few workers need large batches, to have one each of a wide frontier."""
        largest = max(1 << 19, (1 << 23) // workers)
        return cls(largest=largest, room=largest // 2)

    def sizes(self, workers: int, n: int, m: int, longest: int) -> Sizes:
        """These sizes as kernels take them; `longest` is the length of the longest row."""
        average = m // max(1, n)
        wanted = self.each * workers + (1 if workers <= MOST_FEW_WORKERS else 0)
        row = average + 1 if longest <= EVEN_ROW_ENTRIES else 0
        weights = [self.least, self.largest, self.enough, average + int(PARENT_WEIGHT)]
        return Sizes(*(np.uint64(x) for x in (*weights, wanted, row, longest, self.piece)))

    def parents(self) -> int:
        """The most parents of a batch, of which the last may exceed the weight."""
        return self.largest // int(PARENT_WEIGHT) + 2

    def batches(self, n: int, m: int) -> int:
        """The most batches that can be made, from vertices of at least a quarter of `least`."""
        return 5 * (m + n * int(PARENT_WEIGHT)) // self.least + 64


MOST_FEW_WORKERS = 8
"""Workers up to which a frontier is cut into one batch more than there are workers.  With one batch
each, a part is always overhang, and one worker is idle: on a mesh of 128^3 the extra batch saves 6
percent with 8 workers.  With 16 it costs time: all wait for a worker that has two batches."""

EVEN_ROW_ENTRIES = 64
"""Where no row is longer, each counts as the average row, which saves reading their lengths."""


class Sizes(NamedTuple):
    """The sizes of batches, as kernels take them."""

    least: Any  # weights, as in Tuning
    largest: Any
    enough: Any
    average: Any  # weight of an average vertex
    wanted: Any  # batches that the frontier should be cut into
    row: Any  # entries of an average row where rows are even, else 0
    longest: Any  # entries of the longest row
    piece: Any  # arcs of a piece


@device
def weight_of(vertices: Any, arcs: Any) -> Any:
    return arcs + vertices * PARENT_WEIGHT


@device
def batches_for(vertices: Any, arcs: Any, full: Any) -> Any:
    """The number of batches of weight `full` for these vertices with these arcs."""
    return (weight_of(vertices, arcs) + full - ONE) // full


@device
def size_of(front: Any, sizes: Sizes) -> Any:
    """The weight of a batch where `front` vertices are in the queue; `sizes` as from Tuning."""
    wanted = front * sizes.average // sizes.wanted
    return max(sizes.least, min(wanted, sizes.largest))


@device
def arcs_between(indptr: Array, queue: Array, begin: Any, end: Any, sizes: Sizes) -> Any:
    """Arcs that leave places begin to end; an estimate, where rows are even."""
    if sizes.row > ZERO:
        return (end - begin) * sizes.row
    one = queue.dtype.type(1)
    arcs = ZERO
    for i in range(begin, end):
        u = queue[i]
        arcs += np.uint64(indptr[u + one] - indptr[u])
    return arcs


@device
def most_arcs(arcs: Any, vertices: Any, sizes: Sizes) -> Any:
    """An upper bound on the arcs of these vertices, where `arcs_between` returned `arcs`."""
    return vertices * sizes.longest if sizes.row > ZERO else arcs


@device
def discover(
    csr: Csr, claim: Array, queue: Array, begin: Any, at: Any, end: Any, b: Any, in_turn: bool,
    arcs: Any, found: Array, ends: Array, count: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """List the neighbours of places at to end that batch b is the least to claim so far.

    Stops after that number of arcs; `count` are listed already, of places begin to at.  Returns the
    place reached and the number listed.
    """
    indptr, indices = csr.indptr, csr.indices
    one = indices.dtype.type(1)
    mine = claim.dtype.type(b)
    i, seen = at, ZERO
    while i < end and seen < arcs:
        fetch_rows(indptr, indices, queue, i, end)
        u = queue[i]
        first, last = np.uint64(indptr[u]), np.uint64(indptr[u + one])
        seen += last - first
        for k in range(first, last):
            v = indices[k]
            if load_relaxed(claim, v) > mine:
                if in_turn:
                    store_relaxed(claim, v, mine)
                elif atomic_min(claim, v, mine) <= mine:
                    continue
                found[count] = v
                count += ONE
        ends[i - begin] = count
        i += ONE
    return i, count


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
def sort_all(indptr: Array, found: Array, ends: Array, parents: Any, sorter: Sorter) -> None:
    first = ZERO
    for i in range(parents):
        end = np.uint64(ends[i])
        sort_children(indptr, found, first, end - first, sorter)
        first = end


# The table

LINE = 16  # words of a batch in the table: two cache lines


class BatchWords(NamedTuple):
    """The words of a batch in the table, as explained above."""

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


WORD = BatchWords(*(np.uint64(k) for k in range(LINE)))
BEHIND = np.uint64(LINE)  # words from one batch to the next in the table

COUNTED, COMPLETED = np.uint64(1), np.uint64(2)  # values of the word `state`

CUT, LEFT, LONE, NOTHING = (np.uint64(k) for k in range(1, 5))
"""Values of the word `decision`, about the children of a batch.  CUT: made into batches, except for
an overhang left to the next batch.  LEFT: all are left to it.  LONE: one worker follows them alone.
NOTHING: there are none."""


class SharedWords(NamedTuple):
    head: int = 0  # the next batch to take
    finished: int = 16  # 1 when all places are filled, or will be
    wide_taken: int = 32  # 1 while a batch uses the wide list
    filled: int = 48  # the place behind the last


SHARED = SharedWords()
SHARED_WORDS = 64


class BatchTable(NamedTuple):
    """The words by which workers signal to each other."""

    words: Array  # LINE words for each batch
    shared: Array  # as named by SHARED
    loads: Array  # weight of the batches that each worker has to do, two cache lines apart
    sizes: Sizes
    limit: Any  # places that can be filled


# Counters of each member: events, then ticks by stage
COUNTERS = ("generated", "dequeued", "executed", "empty", "rediscoveries", "removed")
STAGES = ("discover", "sort", "rediscover", "signal", "output", "stall")


class CountWords(NamedTuple):
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


COUNT = CountWords()
COUNT_WORDS = 16


class Watch(NamedTuple):
    """What a member records for statistics, and its delays for tests."""

    counts: Array
    timed: bool  # whether ticks are counted
    delays: Array


@device
def own_watch(watches: Watch, me: int) -> Watch:
    """The watch of one member; its clock starts now."""
    counts = watches.counts[me]
    if watches.timed:
        counts[COUNT.since] = ticks()
    return Watch(counts, watches.timed, watches.delays)


@device
def lap(watch: Watch, stage: int) -> None:
    """Add the time since the last lap to a stage."""
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
    table: BatchTable, b: Any, begin: Any, end: Any, weight: Any, me: int, size: int
) -> None:
    """Let batch b be taken by the worker that makes it, unless another has clearly less to do.

    The maker has its neighbourhood in the caches; with batches handed out in turn, discovery took
    three times as long on a mesh.  But a worker that has two batches where others have one makes
    them all wait.
    """
    owner = me
    most = load_relaxed(table.loads, 16 * me)
    if most > weight // np.uint64(2):
        most -= weight // np.uint64(2)
        for k in range(size):
            load = load_relaxed(table.loads, 16 * k)
            if load < most:
                most, owner = load, k
    atomic_add(table.loads, 16 * owner, weight)
    publish(table.words, b, begin, end, owner)


@device
def cut(
    indptr: Array, queue: Array, begin: Any, end: Any, arcs: Any, table: BatchTable, b: Any,
    count: Any, me: int, size: int,
) -> None:  # fmt: skip
    """Make batches b to b + count of the places begin to end, of equal weights.

    A vertex heavier than a batch leaves the ones behind it empty.
    """
    one = queue.dtype.type(1)
    total = weight_of(end - begin, arcs)
    first, weight = begin, ZERO
    passed = made = ZERO
    row = table.sizes.row
    if row > ZERO:
        while made < count:
            last = begin + (end - begin) * (made + ONE) // count
            weight = weight_of(last - first, (last - first) * row)
            _hand_out(table, b + made, first, last, weight, me, size)
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
            _hand_out(table, b + made, first, i + ONE, weight, me, size)
            first, weight = i + ONE, ZERO
            made += ONE
    while made < count:
        _hand_out(table, b + made, first, end, weight, me, size)
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
    """Signal batch b where its children go."""
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
def count_from(table: BatchTable, b: Any) -> None:
    """Batch b knows its children and where they go: decide on them, and signal those after it.

    Goes on as long as batches know their children.  Children that do not fill a batch are left to
    the next one, so that all are of one size; where rows are uneven, only if they are far from it.
    If there is no next one, one worker follows few children alone.
    """
    words, sizes = table.words, table.sizes
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
        if end >= table.limit:  # all places are filled, or will be
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
            finish(table.shared, end)
        if done or decision == LONE:
            return
        if atomic_exchange(words, at + BEHIND + WORD.met_count, ONE) == ZERO:
            return
        b += ONE


@device
def children_known(table: BatchTable, b: Any, count: Any, arcs: Any) -> None:
    """Record that the children of batch b are certain."""
    at = line(b)
    table.words[at + WORD.children] = count
    table.words[at + WORD.arcs] = arcs
    if atomic_exchange(table.words, at + WORD.met_count, ONE) > ZERO:
        count_from(table, b)


@device
def resume(table: BatchTable, b: Any, pos: Any, following: Any) -> None:
    """Signal to batch b where its children go, after some were placed alone."""
    send(table.words, b, pos, following, ZERO, ZERO, COMPLETED)
    if atomic_exchange(table.words, line(b) + WORD.met_count, ONE) > ZERO:
        count_from(table, b)


@device
def wait_a_little(checks: int) -> int:
    """Wait for another worker.  Signals are quick, so sleep only after many checks."""
    if checks < SPIN_CHECKS:
        back_off(0)  # the pause hint only
    elif checks < YIELD_CHECKS:
        back_off(SPINS)  # yields the core
    else:
        back_off(SPINS + YIELDS)  # sleeps
        return checks
    return checks + 1


# A component


class ChildLists(NamedTuple):
    """Where workers list the children of their batches; `ends` as above."""

    found: Array  # for each worker and slot
    ends: Array
    wide: Array  # for one batch at a time that has more children than a worker's list holds
    wide_ends: Array


@device
def begin_all(team: Any, start: Any, at: Any, claim: Array, queue: Array, words: Array) -> bool:
    """Free claims, the start in its place, and batch 0 ready; True when the team stops.

    Pages of new arrays are cleared when they are first written to.  All members do that here in
    parallel; later, the others would wait for the member that touches a page first.
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
    # would be placed twice, and there are no more places than vertices.
    for i in range(lo, min(hi, np.int64(at))):
        claim[queue[i]] = claim.dtype.type(0)
    if barrier(team):
        return True
    if team.me == 0:
        queue[at] = start
        claim[start] = claim.dtype.type(0)
        words[WORD.turn], words[WORD.met_turn], words[WORD.met_count] = ONE, ONE, ONE
        send(words, ZERO, at + ONE, ONE, ZERO, ZERO, COMPLETED)
        publish(words, ZERO, at, at + ONE, ZERO)  # the others wait for it
    return False


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
        self.table = BatchTable(
            scattered(((tuning.batches(n, arcs) + more) * LINE,), np.uint64),
            np.zeros(SHARED_WORDS, np.uint64), loads, sizes, np.uint64(limit),
        )  # fmt: skip
        self.lists = ChildLists(
            scattered((members, slots, tuning.room), run.unsigned),
            scattered((members, slots, tuning.parents()), np.uint64),
            np.empty(n, run.unsigned),
            np.empty(tuning.parents(), np.uint64),
        )
        self.counts = np.zeros((members, COUNT_WORDS), np.uint64)
        self.counts[0, COUNT.generated] = 1  # the batch of the start

    def arguments(self, queue: Array) -> tuple[Any, ...]:
        """What both kernels take first."""
        run = self.run
        return (
            run.csr, queue, run.unsigned(self.start), np.uint64(self.at),
            np.empty(run.n, run.unsigned), self.table, self.lists, run.sorters(run.team.size),
            Watch(self.counts, run.stats, run.delays),
        )  # fmt: skip

    def close(self, queue: Array) -> int:
        """Leave the facts and counters in the run; returns where the component ends."""
        run = self.run
        end = int(self.table.shared[SHARED.filled])
        if end < run.n:
            run.mark[queue[self.at : end]] = PLACED
        run.facts[FACT.end], run.facts[FACT.code] = end, WHOLE
        if run.stats:
            self._report()
        return end

    def _report(self) -> None:
        """Add up the counters of all members, and the shares of time; count the levels."""
        run = self.run
        total = self.counts.sum(axis=0)
        for k, name in enumerate(COUNTERS):
            run.counters[name] = run.counters.get(name, 0) + int(total[k])
        spent = total[COUNT.in_discover : COUNT.in_stall + 1].astype(float)
        for name, share_ in zip(STAGES, spent / max(1.0, spent.sum()), strict=True):
            run.counters[name] = float(share_)
        found = bfs(run.graph, self.start, directed=False, engine="cpu", threads=run.team.size)
        run.facts[FACT.levels] = found.rounds + 1
