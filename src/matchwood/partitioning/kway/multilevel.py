"""From level to level: coarser graphs, the start on the coarsest, and back; and what comes last.

The same for every engine, which has three steps for one level (reference.py):

    light_edges(level, labels, limit)                    the edges that may be contracted
    refine(level, labels, limits, ceilings, fixed, plan, cut) Jet and rebalancing, in place
    cut_of(level, labels)

Matching, contracting and the start (partitioning/bisection) are steps of their own.

Coarsening.  Vertices are paired by `weighted_matching`'s order (weight, hash of the ends with
seed + level) among edges whose ends together weigh at most 4 times the mean of the coarsest graph,
and lie in one block where there are blocks already (`fixed`, a V-cycle).  Free vertices with the
same heaviest neighbour pair up, within the same limits.  So until max(40 k, 16,000 / ceil(log2 k))
vertices are left (eight times as many where degrees are uneven; of V-cycles max(10 k, 100)), or a
level would keep 95 %.  Graphs of uneven degrees with more than 2**23 entries have no more vertices
in the end than others, and no sweep, unless the effort is 2: both are serial.

Where the limit of weights is tight, pairs are made of edges that nobody would choose: with 1.5
instead of 4 times the mean the cut of usroads into two, from 1600 vertices, was 1.8 times as large.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.components.connected import connected_components
from matchwood.gate.views import View
from matchwood.matching.coarsening import pair_free
from matchwood.matching.methods import heavy_matching
from matchwood.partitioning.bisection import recursive_bisection, small_graph
from matchwood.partitioning.kway.task import Level, Plan, Task, base_level
from matchwood.partitioning.sweep import sweep
from matchwood.primitives.contract import trusted_contract_pairs, trusted_sums
from matchwood.stopwatch import Stopwatch

# Vertices of the coarsest graph: for each block, at least, and all together for each of the
# ceil(log2 k) bisections that they go through.  Where degrees are uneven (their variance is more
# than UNEVEN times their mean) there are more: Jet finds little in such graphs, the serial start
# much.  email-Enron in two blocks was cut at 15,000 edges from 1600 vertices, at 10,500 from all.
# Measured: bench/partitioning/kway.py
VERTICES_PER_BLOCK, VERTICES_OF_START = 40, 16_000
UNEVEN, MORE_WHERE_UNEVEN = 4, 8
VERTICES_PER_BLOCK_OF_CYCLES, VERTICES_OF_CYCLES = 10, 100  # the same for V-cycles
HEAVIEST = 4  # a vertex of the coarsest graph may weigh HEAVIEST times the mean
STALLED = 0.95  # fraction of the vertices; a level that keeps more is not made
SERIAL_ENTRIES, SERIAL_EFFORT = 1 << 23, 2  # what is serial and pays in uneven graphs: up to, from
CYCLES = (0, 0, 1, 3)  # V-cycles of `partition`, by effort
CYCLES_REFINING = (0, 1, 2, 4)  # those of `refine_partition`
PLANS = (Plan((2,), 3, 3), Plan((3, 2, 1), 5, 3), *(Plan((3, 2, 1), 8, 3),) * 2)  # by effort
QUARTERS_WHERE_UNEVEN = (1, 0)  # instead: as good there, and fewer vertices move in vain
TRIES = (1, 2, 3, 3)  # of each bisection of the start, by effort
JOINING_ROUNDS = 10  # of stray pieces that join other blocks


class LevelReport(NamedTuple):
    """What happened on a level: vertices, cut before and after, iterations, seconds."""

    n: int
    before: int  # in integer weights
    after: int
    iterations: int
    seconds: float


class Where(NamedTuple):
    """The engine of a call."""

    module: Any
    engine: str
    threads: int | None

    def here(self, array: Any) -> Any:
        """The array, or None, moved to where the engine has its levels."""
        return engines.moved(array, engines.home(self.engine))


class Run(NamedTuple):
    """A call under way: what it asks for, where, and what has happened."""

    where: Where
    base: Level
    task: Task
    uneven: bool  # degrees are
    log: list[LevelReport]
    watch: Stopwatch

    @property
    def thorough(self) -> bool:
        """Whether what is serial, and pays where degrees are uneven, is done."""
        small = self.base.indices.size <= SERIAL_ENTRIES
        return self.uneven and (small or self.task.effort >= SERIAL_EFFORT)


def begin(graph: Any, task: Task, caller: str, engine: str, threads: int | None = None) -> Run:
    """A call that is about to start."""
    watch = Stopwatch()
    where = Where(engines.load(__package__, engine), engine, threads)
    base = base_level(graph, caller, task.weights)
    uneven = _is_uneven(base)
    watch.lap("prepare")
    return Run(where, base, task, uneven, [], watch)


def _is_uneven(base: Level) -> bool:
    """Whether degrees differ much; in integers, the same on every engine."""
    degree = engines.xp(base.indptr).diff(base.indptr).astype(np.int64)
    total, squares = int(degree.sum()), int((degree * degree).sum())
    return squares * base.n - total * total > UNEVEN * total * base.n


def coarser(
    where: Where, level: Level, blocks: Any, limit: int, seed: int
) -> tuple[Level, Any] | None:
    """The next level and the map to it; None where it would keep nearly all vertices."""
    xp = engines.xp(level.indices)
    if blocks is None and 2 * int(level.weights.max()) <= limit:
        kind = np.float32 if level.data is None and where.engine == "gpu" else np.float64
        data = xp.ones(level.indices.size, kind) if level.data is None else level.data.astype(kind)
        view = View(level.indptr, level.indices, data)
    else:
        view = View(*where.module.light_edges(level, blocks, limit, where.threads))
    mate = heavy_matching(view, where.engine, where.threads, seed).mate
    mate = pair_free(
        view, mate, threads=where.threads, blocks=blocks, weights=level.weights, limit=limit
    )
    if level.n - int((mate >= 0).sum()) // 2 > STALLED * level.n:
        return None
    arrays, map, weights = trusted_contract_pairs(
        View(level.indptr, level.indices, level.data), mate, level.weights, where.engine,
        "partition", where.threads, ordered=False,
    )  # fmt: skip
    return Level(*arrays, weights, int(xp.diff(arrays[0]).max())), map


class Descent(NamedTuple):
    """Ever coarser graphs: maps[i] leads from levels[i] to levels[i + 1]; blocks of each, or []."""

    levels: list[Level]
    maps: list[Any]
    blocks: list[Any]


def descend(run: Run, blocks: Any, seed: int, until: int) -> Descent:
    """Coarsen the graph to `until` vertices, inside `blocks` where these are given."""
    where, base = run.where, run.base
    limit = max(HEAVIEST * int(base.weights.sum()) // until, 1)
    found = Descent([base], [], [] if blocks is None else [blocks])
    while found.levels[-1].n > until:
        number = (seed + len(found.maps)) % 2**64
        made = coarser(where, found.levels[-1], blocks, limit, number)
        if made is None:
            break
        found.levels.append(made[0])
        found.maps.append(made[1])
        if blocks is not None:
            above = engines.xp(blocks).empty(made[0].n, blocks.dtype)
            above[made[1]] = blocks  # all members of a vertex have one block
            blocks = above
            found.blocks.append(blocks)
    return found


def ascend(run: Run, descent: Descent, labels: Any, held: list[Any] | None) -> tuple[int, int, Any]:
    """Labels of the coarsest level, refined on every level on the way to the finest."""
    task, where = run.task, run.where
    plan = PLANS[task.effort]
    if run.uneven:
        plan = plan._replace(c=QUARTERS_WHERE_UNEVEN)
    excess, cut = 0, where.module.cut_of(descent.levels[-1], labels, where.threads)
    for number in range(len(descent.levels) - 1, -1, -1):
        level = descent.levels[number]
        began = time.perf_counter()
        if number < len(descent.maps):
            labels = labels[descent.maps[number]]
        before = cut  # what was contracted is no part of it
        fixed = None if held is None else held[number]
        excess, cut, iterations = where.module.refine(
            level, labels, task.limits, task.ceilings(), fixed, plan, cut, where.threads
        )
        if run.thorough and number == 0:  # on coarse levels it takes the room that is needed here
            cut = _swept(run, labels, fixed, cut)
        seconds = time.perf_counter() - began
        run.log.append(LevelReport(level.n, before, cut, iterations, seconds))
    return excess, cut, labels


def _swept(run: Run, labels: Any, fixed: Any, cut: int) -> int:
    """Moves one after the other on the finest level, in place: the cut that is left."""
    found, held = on_host(labels), on_host(fixed)
    cut = sweep(run.base.on_host(), found, run.task.limits, held, cut)
    if found is not labels:
        labels.set(found)
    return cut


def on_host(array: Any) -> Any:
    """The array, or None, on the host; a copy only where it was not there."""
    return engines.moved(array, "cpu")


def partitioned(run: Run, joins: bool) -> Any:
    """The labels of a partition; with `joins` stray pieces have joined other blocks."""
    if run.task.k == 1:
        return run.where.here(np.zeros(run.base.n, np.int32))
    labels = _parts(run)
    return numbered(connected(run, labels) if joins else labels, run.task)


def _parts(run: Run) -> Any:
    task = run.task
    size = VERTICES_OF_START * (MORE_WHERE_UNEVEN if run.thorough else 1)
    until = max(VERTICES_PER_BLOCK * task.k, size // (task.k - 1).bit_length())
    descent = descend(run, run.where.here(task.fixed), task.seed, until)
    run.watch.lap("coarsen")
    top = descent.levels[-1]
    labels = recursive_bisection(
        small_graph(top.indptr, top.indices, top.data, top.weights), task.targets, task.limits,
        task.seed, fixed=on_host(descent.blocks[-1]) if descent.blocks else None,
        tries=TRIES[task.effort], threads=run.where.threads,
    )  # fmt: skip
    run.watch.lap("start")
    held = [(blocks >= 0).astype(np.uint8) for blocks in descent.blocks]
    labels = ascend(run, descent, run.where.here(labels), held or None)[2]
    run.watch.lap("refine")
    return finished(run, cycles(run, labels, CYCLES[task.effort]))


def cycles(run: Run, labels: Any, count: int) -> Any:
    """V-cycles: coarsening inside the blocks, and back."""
    task = run.task
    held = 0 if task.fixed is None else run.where.here((task.fixed >= 0).astype(np.int32))
    until = max(VERTICES_PER_BLOCK_OF_CYCLES * task.k, VERTICES_OF_CYCLES)
    for cycle in range(count):
        seed = (task.seed + (cycle + 1) * 0x9E3779B1) % 2**64
        descent = descend(run, 2 * labels + held, seed, until)
        fixed = None
        if task.fixed is not None:
            fixed = [(blocks % 2).astype(np.uint8) for blocks in descent.blocks]
        labels = ascend(run, descent, descent.blocks[-1] // 2, fixed)[2]
    run.watch.lap("cycles")
    return labels


def refined(run: Run, labels: Any) -> Any:
    """The labels after refinement; those given where they would be worse."""
    task, where = run.task, run.where

    def score(found: Any) -> tuple[int, int, int]:
        excess = int(np.maximum(weights_of(run.base, found, task.k) - task.limits, 0).sum())
        empty = int((sizes_of(found, task.k) == 0).sum())
        return empty, excess, where.module.cut_of(run.base, found, where.threads)

    found = labels.copy()
    if CYCLES_REFINING[task.effort] == 0:
        held = None
        if task.fixed is not None:
            held = [where.here((task.fixed >= 0).astype(np.uint8))]
        found = ascend(run, Descent([run.base], [], []), found, held)[2]
        run.watch.lap("refine")
    found = finished(run, cycles(run, found, CYCLES_REFINING[task.effort]))
    return found if score(found) < score(labels) else labels


def weights_of(level: Level, labels: Any, k: int) -> Any:
    """What the blocks weigh, on the host."""
    if engines.location(labels) == "gpu":
        return trusted_sums(level.weights, labels, k).get()
    found = np.zeros(k, np.int64)
    np.add.at(found, labels, level.weights)
    return found


def sizes_of(labels: Any, k: int) -> Any:
    """How many vertices the blocks have, on the host."""
    return on_host(engines.xp(labels).bincount(labels, minlength=k))


# What comes last, on the host: levels of the GPU, which nobody there asks for these, are copied


def finished(run: Run, labels: Any) -> Any:
    """The labels with no block empty."""
    task, k = run.task, run.task.k
    sizes = sizes_of(labels, k)
    empty = np.flatnonzero(sizes == 0)
    if not empty.size:
        return labels
    base, labels = run.base.on_host(), on_host(labels)
    rows = np.repeat(np.arange(base.n), np.diff(base.indptr))
    tied = np.ones(rows.size, np.int64) if base.data is None else base.data
    inside = np.zeros(base.n, np.int64)
    same = labels[rows] == labels[base.indices]
    np.add.at(inside, rows[same], tied[same])
    heavy = weights_of(base, labels, k) > task.limits
    free = np.ones(base.n, np.bool_) if task.fixed is None else task.fixed < 0
    by_ties = np.lexsort((inside, ~heavy[labels]))  # by vertex where these are equal
    by_weight = np.argsort(base.weights, kind="stable")
    left, limits = empty.tolist()[::-1], task.limits.tolist()
    count, weights = sizes.tolist(), base.weights.tolist()
    for order, fitting in ((by_ties, True), (by_weight, False)):  # none is empty, at any excess
        for v in order[free[order]].tolist():
            if not left:
                return run.where.here(labels)
            own = int(labels[v])
            if count[own] > 1 and not (fitting and weights[v] > limits[left[-1]]):
                count[own] -= 1
                labels[v] = left.pop()
                count[labels[v]] = 1
    return run.where.here(labels)


def pieces_of(view: Any, labels: Any) -> tuple[Any, Any]:
    """The piece of each vertex, numbered by smallest vertices; and the block of each piece.

    A piece is a connected component of the graph without the edges between blocks.
    """
    rows = np.repeat(np.arange(view.n), np.diff(view.indptr))
    inside = labels[rows] == labels[view.indices]
    indptr = np.zeros(view.n + 1, np.int64)
    np.cumsum(np.bincount(rows[inside], minlength=view.n), out=indptr[1:])
    count, pieces = connected_components((indptr, view.indices[inside].astype(np.int64)))
    blocks = np.zeros(count, np.int64)
    blocks[pieces] = labels
    return pieces, blocks


def connected(run: Run, labels: Any) -> Any:
    """The labels after stray pieces have joined blocks that they are tied to.

    All pieces of a block but the heaviest (equal: the one with the smallest vertex) are stray.
    From the lightest on (equal: smallest vertex) each joins the block that it is tied to most among
    those with room, of equal ones the first; again and again until nothing changes.
    """
    task, base, labels = run.task, run.base.on_host(), on_host(labels)
    limits = task.limits.tolist()
    tied = np.ones(base.indices.size, np.int64) if base.data is None else base.data
    rows = np.repeat(np.arange(base.n), np.diff(base.indptr))
    for _ in range(JOINING_ROUNDS):
        pieces, blocks = pieces_of(View(base.indptr, base.indices), labels)
        mass = np.zeros(blocks.size, np.int64)
        np.add.at(mass, pieces, base.weights)
        order = np.lexsort((-mass, blocks))
        main = np.zeros(blocks.size, bool)
        main[order[np.unique(blocks[order], return_index=True)[1]]] = True
        if task.fixed is not None:
            main[pieces[task.fixed >= 0]] = True  # stays where it is
        outward = np.flatnonzero(~main[pieces[rows]] & (labels[rows] != labels[base.indices]))
        ties, entry = np.unique(
            pieces[rows[outward]] * np.int64(task.k) + labels[base.indices[outward]],
            return_inverse=True,
        )
        tie = np.zeros(ties.size, np.int64)
        np.add.at(tie, entry, tied[outward])
        piece, block = np.divmod(ties, task.k)
        order = np.lexsort((block, -tie, piece, mass[piece]))
        weight, own, weighs = (x.tolist() for x in (weights_of(base, labels, task.k), blocks, mass))
        target = own.copy()
        for p, b in zip(piece[order].tolist(), block[order].tolist(), strict=True):
            if target[p] == own[p] and weight[b] + weighs[p] <= limits[b]:
                weight[b] += weighs[p]
                weight[own[p]] -= weighs[p]
                target[p] = b
        if target == own:
            break
        labels = np.array(target, labels.dtype)[pieces]
    return run.where.here(labels)


def numbered(labels: Any, task: Task) -> Any:
    """Blocks of equal targets, numbered by their smallest vertices; not where some are fixed."""
    if task.fixed is not None:
        return labels
    if engines.location(labels) == "gpu":
        smallest = engines.load(__package__, "gpu").first_of_blocks(labels, task.k)
    else:
        used, first = np.unique(labels, return_index=True)
        smallest = np.full(task.k, labels.size, np.int64)
        smallest[used] = first
    number = np.empty(task.k, labels.dtype)
    number[np.lexsort((smallest, task.targets))] = np.argsort(task.targets, kind="stable")
    return engines.moved(number, engines.location(labels))[labels]
