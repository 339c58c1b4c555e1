"""Louvain's and Leiden's communities: vertices that move, level by level.

Read on in reference.py (the steps), check.py, cpu.py, gpu.py + gpu.cu.  Here, after the public
functions, is the way from level to level: move, contract, and so on; then back.  It is the same for
every engine, which has three steps for one level:

    move(level, labels, plan, limit)     vertices change communities, in place
    refine(level, labels, plan)          parts of communities that are well connected
    split(level, labels)                 connected parts of communities, numbered

Numbering labels, contracting a graph by them and the joins of ``method="joining"`` are primitives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, calls, engines
from matchwood.communities.louvain_leiden.reference import Limit, Plan
from matchwood.communities.quality import quality_of, quality_of_level
from matchwood.communities.result import Communities
from matchwood.communities.weights import Level, level_of
from matchwood.primitives.community_merge import trusted_joins, trusted_trees
from matchwood.primitives.contract import (
    trusted_contract_measured,
    trusted_gathered,
    trusted_sums,
)
from matchwood.primitives.hashing import mix64
from matchwood.primitives.number import trusted_number_labels
from matchwood.primitives.sort import radix_sort
from matchwood.stopwatch import Stopwatch

METHODS = ("auto", "moving", "joining")
# Joining is taken where the variance of degrees is less than their mean divided by this.  In graphs
# drawn at random it is the mean, and joining falls behind NetworKit's PLM by up to 0.012.
# Measured: bench/communities/margins.py, 37 graphs, 6 seeds
MEAN_OVER_VARIANCE = 2

MOST_ROUNDS = 32  # rounds on a level, where the caller sets no limit
ROUNDS_BACK = 4  # rounds on each level on the way back from the coarsest graph

# A round that moves at most one vertex in FEW_MOVERS is the last one of its level; measured in
# bench/communities/limits.py.
FEW_MOVERS = 2  # for Louvain: the way back repairs what is left ...
FEW_MOVERS_DENSE = 8  # ... but not in graphs of DENSE entries a vertex: there it costs up to 0.003
DENSE = 12
FEW_MOVERS_LEIDEN = 5  # for Leiden, whose coarser graphs are made of parts of the communities
FEW_MOVERS_BACK = 256  # on the way back: there is no coarser level that would repair it

# Levels that stall: see `_stalls`.  On 70 real graphs no more than 3 did in a row, but for one
# whose weights are graded.
STALL = 8  # a level stalls where fewer than one vertex in STALL becomes part of another
MOST_STALLS = 4  # levels in a row
CHAIN_DOUBLINGS = 5  # 32 joins; trees of joins had up to 12 where weights do not grow along paths


@calls.of_first_rank
def louvain(
    A: Any,
    *,
    resolution: float = 1.0,
    max_levels: int | None = None,
    max_rounds: int | None = None,
    tolerance: float = 0.0,
    method: str = "auto",
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> Communities:
    """Find communities of high modularity by moving vertices and contracting what they form.

    Every vertex starts in a community of its own.  Again and again it moves to the neighbouring
    community c with the largest

        K(v, c) - resolution * k_v * vol(c without v) / 2 m

    where K(v, c) is the weight of its edges to c, k_v its strength, vol(c) the strengths of c, and
    2 m all strengths together: what `modularity` gains.  Then every community becomes a vertex, and
    all begins anew on that smaller graph, until nothing moves [1]_.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Weights must not be negative.  Of a matrix that is not symmetric ``a_ij + a_ji`` counts, of
        a directed edge list the heavier direction.  A loop counts twice in the strength of its
        vertex, and must not be negative either.
        Of a `DistributedGraph` the first rank finds the answer, with the whole graph.
    resolution : float
        1 is the usual modularity; larger values give more and smaller communities.
    max_levels : int or None
        How often vertices become communities, at most; 1 only moves vertices of `A`.
    max_rounds : int or None
        Rounds on each level, at most; None takes 32, and fewer are needed as a rule.
    tolerance : float
        A level that raises modularity by no more than this is the last one.
    method : {"auto", "moving", "joining"}
        ``"moving"`` is the rule above.  With ``"joining"`` vertices do not move one by one: each
        community joins the one that it gains most with, if it is the smaller of both, as in
        `rabbit_order`; vertices move on the way back only.  ``"auto"`` takes ``"joining"``, which
        is faster, where degrees are as even as in a grid, a mesh or a road map: their variance is
        less than half their mean.  Elsewhere it loses modularity, up to 0.02.  It loses far more
        where weights grow steadily from vertex to vertex, since long chains join at once:
        ``"auto"`` goes on by ``"moving"`` where a round would make a chain of more than 32 joins.
    rng : int, Generator or None
        Seed of the order in which vertices look around; None is 0.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Communities
        With `count`, `labels`, numbered by smallest vertices, `modularity`, `levels`, `rounds` and
        `seconds`; unpacks as ``count, labels``.  Every community is connected.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix or has negative weights, the method is unknown, or an argument is
        out of its range.

    Notes
    -----
    Deterministic: every engine, at any number of threads, returns the same labels for a seed.
    Weights become integers (see `modularity`), so that sums are exact in any order; gains are
    double precision, without fused multiplication.  A round has 16 sub-rounds (up to 256 below 2^14
    vertices); vertex v is in number ``hash2(v, round, seed)`` modulo that.  The active vertices of
    a sub-round look at the state before it.  Each takes the best community, of several the one with
    the smallest ``mix64``, and leaves its own only for strictly more; of two communities of one
    vertex the one with the larger number moves.  Then all move at once, and their neighbours are
    active.  A vertex that has looked is not active any more.

    A level ends with a round that moves at most half of the vertices, or an eighth where they have
    12 neighbours or more on average: what is left is done on the way back, where each level, from
    the coarsest to the given graph, has up to 4 more rounds (until at most one in 256 moves).  On a
    mesh of 64^3 they bring modularity from 0.878 to 0.895.
    At last communities that are not connected are split, which never lowers it.  Where weights grow
    with the numbers of vertices, each wants to join a larger one, and few may move.  After four
    levels in a row that make less than one in 8 vertices part of another, communities are numbered
    by ``mix64``; levels then stay as few as elsewhere.

    Work O(m) for each round, of which there are a few on each level.  Memory: 4 bytes a vertex and
    thread (8 where weights are not all 1), some arrays of n, and the contracted graphs.

    References
    ----------
    .. [1] V. D. Blondel, J.-L. Guillaume, R. Lambiotte, E. Lefebvre. Fast unfolding of communities
       in large networks. J. Stat. Mech. (2008) P10008. doi:10.1088/1742-5468/2008/10/P10008
    .. [2] H. Lu, M. Halappanavar, A. Kalyanaraman. Parallel heuristics for scalable community
       detection. Parallel Computing 47 (2015). doi:10.1016/j.parco.2015.03.003

    Examples
    --------
    Two triangles and an edge between them:

    >>> import matchwood
    >>> A = (6, [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [3, 5], [4, 5]])
    >>> found = matchwood.louvain(A)
    >>> found.labels.tolist(), round(found.modularity, 4)
    ([0, 0, 0, 1, 1, 1], 0.3571)

    A large resolution leaves every vertex alone:

    >>> matchwood.louvain(A, resolution=9).count
    6
    """
    caller = "louvain"
    resolution = arguments.real(caller, "resolution", resolution, 0)
    if max_levels is not None:
        max_levels = arguments.count(caller, "max_levels", max_levels, 1)
    if max_rounds is not None:
        max_rounds = arguments.count(caller, "max_rounds", max_rounds, 1, 2**31 - 1)
    tolerance = arguments.real(caller, "tolerance", tolerance, 0)
    arguments.one_of(caller, "method", method, METHODS)
    plan = Plan(resolution, arguments.seed(caller, rng))
    call = calls.enter(A, caller, engine, threads)
    base = level_of(call.graph, caller)
    steps = Steps(call.load(__name__), call.engine, plan, threads)
    until = Until(max_levels, tolerance)
    if method == "auto" and not call.graph.keep("even degrees", lambda: _is_even(base)):
        method = "moving"
    watch = Stopwatch()
    most = MOST_ROUNDS if max_rounds is None else max_rounds
    descent, chained = Descent([base], [], 0), False
    if method != "moving":
        descent, chained = _join(steps, base, until, chains=method == "joining")
    if method == "moving" or chained:
        descent = _move(steps, descent, until, Limit(most, _few_movers(base)))
    levels, maps, rounds = descent
    watch.lap("levels")
    labels, more = _back(steps, levels, maps, Limit(min(ROUNDS_BACK, most), FEW_MOVERS_BACK))
    watch.lap("back")
    return _result(call, steps, base, labels, len(levels), rounds + more, watch)


@calls.of_first_rank
def leiden(
    A: Any,
    *,
    resolution: float = 1.0,
    iterations: int = 2,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> Communities:
    """Find communities of high modularity that are well connected inside.

    As `louvain`, but what becomes a vertex of the next level is not a community.  It is a part of
    one, formed anew from single vertices, which join only what they are well connected to [1]_.
    The next level starts from the communities, and can take them apart again.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        As for `louvain`.
        Of a `DistributedGraph` the first rank finds the answer, with the whole graph.
    resolution : float
        1 is the usual modularity; larger values give more and smaller communities.
    iterations : int
        How often all of it is done, each time from the communities found before; it ends earlier
        where nothing changes.
    rng : int, Generator or None
        Seed of the order in which vertices look around; None is 0.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Communities
        With `count`, `labels`, numbered by smallest vertices, `modularity`, `levels` (of the
        longest iteration), `rounds` and `seconds`; unpacks as ``count, labels``.  Every community
        is connected.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix or has negative weights, or an argument is out of its range.

    Notes
    -----
    Deterministic, by the rules of `louvain`; nothing is drawn at random as in [1]_.  Parts are
    formed in one round of sub-rounds.  A vertex that is still alone, and for which

        K(v, C without v) >= resolution * k_v * vol(C without v) / 2 m,

    joins the part of its community C that gains most, and more than 0, among those for which the
    same holds.  A part of one vertex whose own turn is in the same sub-round is left out: it may
    move away.  So parts are connected.

    Work and memory as for `louvain`, with 56 bytes a vertex more.

    References
    ----------
    .. [1] V. A. Traag, L. Waltman, N. J. van Eck. From Louvain to Leiden: guaranteeing
       well-connected communities. Scientific Reports 9 (2019). doi:10.1038/s41598-019-41695-z

    Examples
    --------
    >>> import matchwood
    >>> A = (6, [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [3, 5], [4, 5]])
    >>> count, labels = matchwood.leiden(A)
    >>> count, labels.tolist()
    (2, [0, 0, 0, 1, 1, 1])
    """
    caller = "leiden"
    resolution = arguments.real(caller, "resolution", resolution, 0)
    iterations = arguments.count(caller, "iterations", iterations, 1)
    plan = Plan(resolution, arguments.seed(caller, rng))
    call = calls.enter(A, caller, engine, threads)
    base = level_of(call.graph, caller)
    steps = Steps(call.load(__name__), call.engine, plan, threads)
    watch = Stopwatch()
    rounds = most = 0
    labels, limit = identity(base), Limit(MOST_ROUNDS, FEW_MOVERS_LEIDEN)
    for iteration in range(iterations):
        turn = steps._replace(plan=plan._replace(seed=(plan.seed + iteration) % 2**64))
        found, done, levels = _descend(turn, base, labels, limit)
        limit = Limit(ROUNDS_BACK, FEW_MOVERS_BACK)  # what is found already is to be repaired
        rounds, most = rounds + done, max(most, levels)
        same = bool((found == labels).all())
        labels = found
        if same:
            break
    watch.lap("levels")
    return _result(call, steps, base, labels, most, rounds, watch)


def partitions(
    A: Any,
    *,
    resolution: float = 1.0,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> Iterator[tuple[int, Any]]:
    """(count, labels) of each level of ``louvain(method="moving")``, the finest first.

    The last ones are those that `louvain` returns; labels are numbered by smallest vertices.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.communities.louvain_leiden import partitions
    >>> [count for count, _ in partitions(matchwood.generators.path(32))]
    [18, 12, 8, 6, 6]
    """
    caller = "louvain"
    resolution = arguments.real(caller, "resolution", resolution, 0)
    plan = Plan(resolution, arguments.seed(caller, rng))
    call = calls.enter(A, caller, engine, threads)
    base = level_of(call.graph, caller)
    steps = Steps(call.load(__name__), call.engine, plan, threads)
    limit = Limit(MOST_ROUNDS, _few_movers(base))
    levels, maps, _ = _move(steps, Descent([base], [], 0), Until(None, 0.0), limit)
    labels = identity(base)
    for map in maps:
        labels = map[labels]
        count, numbers = steps.number(base, labels)
        yield count, call.back(numbers)
    labels, _ = _back(steps, levels, maps, Limit(ROUNDS_BACK, FEW_MOVERS_BACK))
    count, labels = steps.split(base, labels)
    yield count, call.back(labels)


def _few_movers(base: Level) -> int:
    """The last round of a level moves at most one vertex in this number."""
    return FEW_MOVERS_DENSE if base.indices.size >= DENSE * base.tied else FEW_MOVERS


def _is_even(level: Level) -> bool:
    """Whether degrees are as even as joining needs; in integers, the same on every engine."""
    degree = engines.xp(level.indptr).diff(level.indptr).astype(np.int64)
    total, squares = int(degree.sum()), int((degree * degree).sum())
    tied = max(level.tied, 1)
    return MEAN_OVER_VARIANCE * (squares * tied - total * total) < total * tied


def _result(
    call: Any, steps: Steps, base: Level, labels: Any, levels: int, rounds: int, watch: Stopwatch
) -> Communities:
    """Communities that are connected: those that are not are split, which lowers no modularity."""
    count, labels = steps.split(base, labels)
    watch.lap("split")
    resolution = steps.plan.resolution
    quality = quality_of(base, labels, count, resolution, steps.name, steps.threads)
    return Communities(count, call.back(labels), quality, levels, rounds, watch.seconds)


# From level to level


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
        return trusted_gathered(values, map, self.name, self.members(level))

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


class Until(NamedTuple):
    """When there are enough levels."""

    levels: int | None
    tolerance: float

    def reached(self, steps: Steps, levels: list[Level]) -> bool:
        """Whether the last level has raised modularity by no more than the tolerance."""
        if self.tolerance == 0.0:
            return False
        before, after = (quality_of_level(one, steps.plan.resolution) for one in levels[-2:])
        return after - before <= self.tolerance


class Descent(NamedTuple):
    """Ever coarser graphs: maps[i] leads from levels[i] to levels[i + 1].

    The last map leads to a graph that is not made, where `max_levels` is reached.
    """

    levels: list[Level]
    maps: list[Any]
    rounds: int


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


def _move(steps: Steps, descent: Descent, until: Until, limit: Limit) -> Descent:
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
        if len(maps) == until.levels:
            break
        levels.append(steps.contract(level, labels, count))
        if until.reached(steps, levels):
            break
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


def _join(steps: Steps, base: Level, until: Until, chains: bool) -> tuple[Descent, bool]:
    """Communities join the best one around them, if they are the smaller; a round a level.

    Where weights grow along a path, all of it joins in one round, however long it is.  Without
    `chains`, the first round that would make such a chain is not made: then True is returned.
    """
    levels, rounds = [base], 0
    maps: list[Any] = []
    names = identity(base)
    while len(maps) != until.levels:
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
        names = trusted_gathered(names, roots, **where)
        levels.append(steps.contract(level, labels, count))
        if until.reached(steps, levels):
            break
    return Descent(levels, maps, rounds), False


def _has_chain(target: Any, labels: Any) -> bool:
    """Whether more than 2^CHAIN_DOUBLINGS joins lead from some vertex to the root of its tree."""
    if int(engines.xp(labels).bincount(labels).max()) <= 1 << CHAIN_DOUBLINGS:
        return False
    for _ in range(CHAIN_DOUBLINGS):
        target = target[target]
    return bool((target[target] != target).any())


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
