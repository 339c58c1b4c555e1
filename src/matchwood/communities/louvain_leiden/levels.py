"""From level to level: move, contract, and so on; then back.  The same for every engine.

An engine (reference.py, cpu.py, gpu.py) has three steps for one level:

    move(level, labels, plan, limit)     vertices change communities, in place
    refine(level, labels, plan)          parts of communities that are well connected
    split(level, labels)                 connected parts of communities, numbered

Numbering labels, contracting a graph by them and the joins of ``method="joining"`` are primitives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.communities.louvain_leiden.reference import Limit, Plan
from matchwood.communities.weights import Level
from matchwood.primitives.community_merge import trusted_joins, trusted_trees
from matchwood.primitives.contract import trusted_contract_measured, trusted_sums
from matchwood.primitives.hashing import mix64
from matchwood.primitives.number import trusted_number_labels
from matchwood.primitives.sort import radix_sort
from matchwood.stopwatch import Stopwatch

MOST_ROUNDS = 32  # rounds on a level, where the caller sets no limit
ROUNDS_BACK = 4  # rounds on each level on the way back from the coarsest graph

# A round that moves at most one vertex in FEW_MOVERS is the last one of its level; measured in
# bench/communities/limits.py.
FEW_MOVERS = 2  # for Louvain: the way back repairs what is left
FEW_MOVERS_LEIDEN = 5  # for Leiden, whose coarser graphs are made of parts of the communities
FEW_MOVERS_BACK = 256  # on the way back: there is no coarser level that would repair it

# Levels that stall: see `_stalls`.  On 70 real graphs no more than 3 did in a row, but for one
# whose weights are graded.
STALL = 8  # a level stalls where fewer than one vertex in STALL becomes part of another
MOST_STALLS = 4  # levels in a row
CHAIN_DOUBLINGS = 5  # 32 joins; trees of joins had up to 12 where weights do not grow along paths


class Outcome(NamedTuple):
    """Labels that are numbered and connected, and how they were found."""

    communities: int
    labels: Any
    levels: int
    rounds: int
    seconds: dict[str, float]


class Steps(NamedTuple):
    """An engine and what its steps need besides a level."""

    module: Any
    name: str
    plan: Plan
    threads: int | None

    def move(self, level: Level, labels: Any, limit: Limit) -> int:
        done: int = self.module.move(level, labels, self.plan, limit, self.threads)
        return done

    def members(self, level: Level) -> int | None:
        """CPU threads for a level: small ones have one."""
        found: int | None = self.threads
        return self.module.members(level, found) if self.name == "cpu" else found

    def move_back(
        self, level: Level, labels: Any, count: int, limit: Limit, some: Any, edges: bool
    ) -> tuple[int, Any]:
        """`move`, and which vertices may have neighbours in another community, before and after.

        All labels are below `count`.  Of engines that do not ask, None: any may.
        """
        if self.name != "cpu":
            return self.move(level, labels, limit), None
        found: tuple[int, Any] = self.module.move_some(
            level, labels, count, self.plan, limit, self.threads, some, edges
        )
        return found

    def gathered(self, level: Level, values: Any, map: Any) -> Any:
        """For each vertex of a level the value of the vertex that `map` leads it to."""
        if self.name != "cpu":
            return values[map]
        return self.module.gathered(values, map, self.members(level))

    def refine(self, level: Level, labels: Any) -> Any:
        return self.module.refine(level, labels, self.plan, self.threads)

    def number(self, level: Level, labels: Any) -> tuple[int, Any]:
        """Labels in use become 0, 1, ... by their smallest vertices."""
        return trusted_number_labels(labels, engine=self.name, threads=self.members(level))

    def mix(self, labels: Any, count: int) -> Any:
        """The labels 0, 1, ..., count-1 with other numbers, in the order of their hashes."""
        xp = engines.xp(labels)
        numbers = xp.arange(count, dtype=labels.dtype)
        hashes = mix64(numbers.astype(np.uint64), engine=self.name, threads=self.threads)
        place = xp.empty_like(numbers)
        place[radix_sort(hashes, numbers, threads=self.threads)[1]] = numbers
        return place[labels]

    def split(self, level: Level, labels: Any) -> tuple[int, Any]:
        found: tuple[int, Any] = self.module.split(level, labels, self.threads)
        return found

    def contract(self, level: Level, labels: Any, count: int) -> Level:
        """The graph of the labels; what lies inside one is its diagonal."""
        threads = self.members(level)
        arrays, longest, tied = trusted_contract_measured(
            level.indptr, level.indices, level.data, level.inner, labels, count,
            engine=self.name, threads=threads, most=level.total, longest=level.longest,
        )  # fmt: skip
        strength = trusted_sums(level.strength, labels, count, threads)
        return Level(*arrays, strength, level.total, longest, tied)


class Descent(NamedTuple):
    """Ever coarser graphs: maps[i] leads from levels[i] to levels[i + 1].

    The last map leads to a graph that is not made, where `max_levels` is reached.
    """

    levels: list[Level]
    maps: list[Any]
    rounds: int


def louvain(
    steps: Steps, base: Level, method: str, max_levels: int | None, max_rounds: int | None
) -> Outcome:
    """Contract communities until nothing moves; then back, with a few rounds on each level.

    The method is moving, joining, or auto: joining as long as it makes no chains, then moving.
    """
    watch = Stopwatch()
    limit = MOST_ROUNDS if max_rounds is None else max_rounds
    descent, chained = Descent([base], [], 0), False
    if method != "moving":
        descent, chained = _join(steps, base, max_levels, chains=method == "joining")
    if method == "moving" or chained:
        descent = _move(steps, descent, max_levels, Limit(limit, FEW_MOVERS))
    levels, maps, rounds = descent
    watch.lap("levels")
    labels, more = _back(steps, levels, maps, Limit(min(ROUNDS_BACK, limit), FEW_MOVERS_BACK))
    watch.lap("back")
    count, labels = steps.split(base, labels)
    watch.lap("split")
    return Outcome(count, labels, len(levels), rounds + more, watch.seconds)


def partitions(steps: Steps, base: Level) -> Iterator[tuple[int, Any]]:
    """(count, labels) of the communities of each level, and at last those of `louvain`."""
    descent = Descent([base], [], 0)
    levels, maps, _ = _move(steps, descent, None, Limit(MOST_ROUNDS, FEW_MOVERS))
    labels = identity(base)
    for map in maps:
        labels = map[labels]
        yield steps.number(base, labels)
    labels, _ = _back(steps, levels, maps, Limit(ROUNDS_BACK, FEW_MOVERS_BACK))
    yield steps.split(base, labels)


def _back(steps: Steps, levels: list[Level], maps: list[Any], limit: Limit) -> tuple[Any, int]:
    """Labels of the given graph, moved a little on each level on the way to it; and the rounds."""
    rounds, edges, count = 0, None, levels[-1].n
    labels = None if 0 < len(levels) == len(maps) else identity(levels[-1])
    for level, map in zip(reversed(levels[: len(maps)]), reversed(maps), strict=True):
        labels = map if labels is None else steps.gathered(level, labels, map)
        # a vertex inside its community on the coarser level is inside here
        some = None if edges is None else steps.gathered(level, edges, map)
        done, edges = steps.move_back(level, labels, count, limit, some, level is not levels[0])
        rounds += done
    return labels, rounds


def _move(steps: Steps, descent: Descent, max_levels: int | None, limit: Limit) -> Descent:
    """Vertices move to the best community around them, level by level, from the coarsest one on."""
    levels, maps, rounds = descent
    stalls = 0
    while True:
        level = levels[-1]
        labels = identity(level)
        rounds += steps.move(level, labels, limit)
        count, labels = steps.number(level, labels)
        if count == level.n:
            break
        stalls = _stalls(stalls, level, count)
        if stalls >= MOST_STALLS:
            labels = steps.mix(labels, count)
        maps.append(labels)
        if len(maps) == max_levels:
            break
        levels.append(steps.contract(level, labels, count))
    return Descent(levels, maps, rounds)


def _stalls(before: int, level: Level, count: int) -> int:
    """Levels in a row, this one included, in which hardly a vertex moved; `before`: without it.

    Of two vertices that are alone the one with the larger number moves.  Where weights grow with
    the numbers, each wants to join a larger one: few move on a level, and there would be as many
    levels as vertices.  Then communities are numbered by hash, from there on.
    """
    if before >= MOST_STALLS or (level.n - count) * STALL < level.tied:
        return before + 1
    return 0


def _join(steps: Steps, base: Level, max_levels: int | None, chains: bool) -> tuple[Descent, bool]:
    """Communities join the best one around them, if they are the smaller; a round a level.

    Where weights grow along a path, all of it joins in one round, however long it is.  Without
    `chains`, the first round that would make such a chain is not made: then True is returned.
    """
    levels, rounds = [base], 0
    maps: list[Any] = []
    names = identity(base)
    while len(maps) != max_levels:
        level = levels[-1]
        if level.total == 0:
            break
        where: dict[str, Any] = {"engine": steps.name, "threads": steps.members(level)}
        pattern = (level.indptr, level.indices, level.data)
        target = trusted_joins(
            pattern, level.strength, names, level.total, resolution=steps.plan.resolution, **where
        )
        labels, roots = trusted_trees(target, **where)
        rounds += 1
        count = int(roots.shape[0])
        if count == level.n:
            break
        if not chains and level.data is not None and _has_chain(target, labels):
            return Descent(levels, maps, rounds), True
        maps.append(labels)
        names = names[roots]
        levels.append(steps.contract(level, labels, count))
    return Descent(levels, maps, rounds), False


def _has_chain(target: Any, labels: Any) -> bool:
    """Whether more than 2^CHAIN_DOUBLINGS joins lead from some vertex to the root of its tree."""
    if int(engines.xp(labels).bincount(labels).max()) <= 1 << CHAIN_DOUBLINGS:
        return False
    for _ in range(CHAIN_DOUBLINGS):
        target = target[target]
    return bool((target[target] != target).any())


def leiden(steps: Steps, base: Level, iterations: int) -> Outcome:
    """Move, refine, contract the refined parts; each iteration starts from the one before it."""
    watch = Stopwatch()
    rounds = most = 0
    labels, limit = identity(base), Limit(MOST_ROUNDS, FEW_MOVERS_LEIDEN)
    for iteration in range(iterations):
        turn = steps._replace(plan=steps.plan._replace(seed=(steps.plan.seed + iteration) % 2**64))
        found, done, levels = _descend(turn, base, labels, limit)
        limit = Limit(ROUNDS_BACK, FEW_MOVERS_BACK)  # what is found already is to be repaired
        rounds, most = rounds + done, max(most, levels)
        same = bool((found == labels).all())
        labels = found
        if same:
            break
    watch.lap("levels")
    count, labels = steps.split(base, labels)
    watch.lap("split")
    return Outcome(count, labels, most, rounds, watch.seconds)


def _descend(steps: Steps, base: Level, start: Any, limit: Limit) -> tuple[Any, int, int]:
    """One iteration: communities of `base`, rounds, levels.  `limit` is that of the given graph."""
    level, map, rounds, levels = base, None, 0, 1
    stalls = 0
    labels = start.copy()
    while True:
        rounds += steps.move(level, labels, limit)
        limit = Limit(MOST_ROUNDS, FEW_MOVERS_LEIDEN)
        count, labels = steps.number(level, labels)
        if count == level.n:
            break
        parts_count, parts = steps.number(level, steps.refine(level, labels))
        if parts_count == level.n:
            break
        stalls = _stalls(stalls, level, parts_count)
        if stalls >= MOST_STALLS:
            labels, parts = steps.mix(labels, count), steps.mix(parts, parts_count)
        above = engines.xp(parts).empty(parts_count, labels.dtype)
        above[parts] = labels  # all members of a part have one community: any may be the last
        map = parts if map is None else parts[map]
        level = steps.contract(level, parts, parts_count)
        labels = above
        levels += 1
    found = labels if map is None else labels[map]
    return steps.number(base, found)[1], rounds, levels


def identity(level: Level) -> Any:
    """Every vertex in a community of its own."""
    return engines.xp(level.indices).arange(level.n, dtype=level.indices.dtype)
