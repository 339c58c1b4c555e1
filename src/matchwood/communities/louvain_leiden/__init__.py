"""Louvain's and Leiden's communities: vertices that move.

Read on in reference.py (the steps), levels.py (from level to level), check.py, cpu.py, gpu.py +
gpu.cu.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood import arguments, calls, engines
from matchwood.communities.louvain_leiden import levels
from matchwood.communities.louvain_leiden.reference import Plan
from matchwood.communities.quality import quality_of
from matchwood.communities.result import Communities
from matchwood.communities.weights import Level, level_of

METHODS = ("auto", "moving", "joining")
# Joining is taken where the variance of degrees is less than their mean divided by this.  In graphs
# drawn at random it is the mean, and joining falls behind NetworKit's PLM by up to 0.012.
# Measured: bench/communities/margins.py, 37 graphs, 6 seeds
MEAN_OVER_VARIANCE = 2


def louvain(
    A: Any,
    *,
    resolution: float = 1.0,
    max_levels: int | None = None,
    max_rounds: int | None = None,
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
    resolution : float
        1 is the usual modularity; larger values give more and smaller communities.
    max_levels : int or None
        How often vertices become communities, at most; 1 only moves vertices of `A`.
    max_rounds : int or None
        Rounds on each level, at most; None takes 32, and fewer are needed as a rule.
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

    A level ends with a round that moves at most half of the vertices: what is left is done on the
    way back, where each level, from the coarsest to the given graph, has up to 4 more rounds
    (until at most one in 256 moves).  On a mesh of 64^3 they bring modularity from 0.878 to 0.895.
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
    arguments.one_of(caller, "method", method, METHODS)
    plan = Plan(resolution, arguments.seed(caller, rng))
    call = calls.enter(A, caller, engine, threads)
    level = level_of(call.graph, caller)
    steps = levels.Steps(call.load(__name__), call.engine, plan, threads)
    if method == "auto" and not call.graph.keep("even degrees", lambda: _is_even(level)):
        method = "moving"
    return _result(call, level, levels.louvain(steps, level, method, max_levels, max_rounds), steps)


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
    level = level_of(call.graph, caller)
    steps = levels.Steps(call.load(__name__), call.engine, plan, threads)
    return _result(call, level, levels.leiden(steps, level, iterations), steps)


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
    level = level_of(call.graph, caller)
    steps = levels.Steps(call.load(__name__), call.engine, plan, threads)
    for count, labels in levels.partitions(steps, level):
        yield count, call.back(labels)


def _is_even(level: Level) -> bool:
    """Whether degrees are as even as joining needs; in integers, the same on every engine."""
    degree = engines.xp(level.indptr).diff(level.indptr).astype(np.int64)
    total, squares = int(degree.sum()), int((degree * degree).sum())
    tied = max(level.tied, 1)
    return MEAN_OVER_VARIANCE * (squares * tied - total * total) < total * tied


def _result(call: Any, level: Level, found: levels.Outcome, steps: levels.Steps) -> Communities:
    quality = quality_of(
        level, found.labels, found.communities, steps.plan.resolution, steps.name, steps.threads
    )
    labels = call.back(found.labels)
    return Communities(
        found.communities, labels, quality, found.levels, found.rounds, found.seconds
    )
