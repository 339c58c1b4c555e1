"""Partitions into k blocks of bounded weight with few edges between them.

Read on in reference.py (how a partition is refined), check.py, cpu.py, multilevel.py (the way from
level to level), task.py (weights and limits as integers) and partitioning/bisection (the start).
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from matchwood import arguments, calls, engines
from matchwood.partitioning.kway import multilevel
from matchwood.partitioning.kway.result import Origin, Partition
from matchwood.partitioning.kway.task import Task, cut_as_given, task_of

__all__ = ["Partition", "partition", "refine_partition"]


def partition(
    A: Any,
    k: int,
    *,
    imbalance: float = 0.03,
    vertex_weights: Any = None,
    block_weights: Any = None,
    fixed: Any = None,
    effort: int = 1,
    connected: bool = False,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> Partition:
    """Cut a graph into k blocks of about the same weight, with few edges between them.

    Of all ways to give each vertex one of k labels such that no block weighs more than its limit,

        floor((1 + imbalance) ceil(total weight / k)),

    one is wanted whose cut, the weight of the edges between different labels, is small.  The
    smallest is NP-hard to find.  Here the graph is contracted along heavy matchings until few
    vertices are left, those are bisected again and again, and on the way back vertices move to
    better blocks on every level, by Jet [1]_.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Weights must not be negative.  Of a matrix that is not symmetric ``a_ij + a_ji`` counts, of
        a directed edge list the heavier direction.  The diagonal is not read.
    k : int
        Number of blocks, at most n.
    imbalance : float
        How much more than its target a block may weigh: 0.03 is three percent.
    vertex_weights : (n,) array or None
        Not negative; None counts each vertex as 1.
    block_weights : (k,) array or None
        Targets of the blocks, in proportion: a block with twice the number may weigh twice as much.
    fixed : (n,) integer array or None
        The block that a vertex must be in, or -1.
    effort : {0, 1, 2, 3}
        0 is fast.  2 adds a V-cycle: the graph is contracted once more, inside the blocks, and
        refined again; 3 adds three.
    connected : bool
        True: in the end stray pieces of a block join the block that they are tied to most among
        those with room.  `Partition.pieces` says what is left.
    rng : int, Generator or None
        Seed of the matchings and of the start; None is 0.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Partition
        With `cut`, `labels`, `weights`, `limits`, `excess`, `quotient()`, `boundary`, `volume`,
        `pieces`, `levels`, `sets()` and `check(A)`; unpacks as ``cut, labels``.  The labels live
        where `A` lives, all else on the host.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix or has negative weights; if k is less than 1 or more than n; if
        weights are negative, not finite or all 0; if a vertex weighs more than every limit, or
        fixed vertices weigh more than the limit of their block.

    Notes
    -----
    Deterministic: every engine, at any number of threads, returns the same labels for a seed.
    Weights become integers by a power of two (see `modularity`), so that sums are exact in any
    order; every choice has a total order.  States compare by (weight above the limits, cut,
    earlier).  Blocks of equal targets are numbered by their smallest vertices unless vertices are
    fixed.  No block is empty.

    Where all vertices weigh 1, every answer is balanced.  Otherwise `Partition.excess` says what is
    left: to find out whether k blocks can be balanced at all is NP-hard, too.

    Work: O(m) for each level and iteration, of which only the vertices that moved and their
    neighbours look around; levels shrink by nearly half.  Memory: all levels together have two
    to four times the entries of the graph, at 12 bytes each, and 60 bytes for each vertex.

    References
    ----------
    .. [1] M. S. Gilbert, K. Madduri, E. G. Boman, S. Rajamanickam. Jet: multilevel graph
       partitioning on graphics processing units. SIAM J. Sci. Comput. 46(5), 2024.
       doi:10.1137/23M1559129
    .. [2] G. Karypis, V. Kumar. Multilevel k-way partitioning scheme for irregular graphs.
       J. Parallel Distrib. Comput. 48, 1998. doi:10.1006/jpdc.1997.1404

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.grid((4, 4))
    >>> cut, labels = matchwood.partition(A, 2)
    >>> cut, sorted(labels.tolist())
    (4, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1])

    A vertex that must stay where it is, and a block that is to be three times as heavy:

    >>> P = matchwood.partition(matchwood.generators.path(8), 2, block_weights=[3, 1],
    ...                         fixed=[1, -1, -1, -1, -1, -1, -1, -1])
    >>> P.labels.tolist(), P.weights.tolist()
    ([1, 1, 0, 0, 0, 0, 0, 0], [6, 2])
    """
    caller = "partition"
    joins = arguments.flag(caller, "connected", connected)
    call = calls.enter(A, caller, engine, threads)
    given = _copies(imbalance, vertex_weights, block_weights, fixed)
    place = engines.home(call.engine)
    task = task_of(caller, call.graph.n, k, **given, effort=effort, rng=rng, place=place)
    run = multilevel.begin(call.graph, task, caller, call.engine, threads)
    return _result(call, run, multilevel.partitioned(run, joins), given)


def refine_partition(
    A: Any,
    labels: Any,
    *,
    k: int | None = None,
    imbalance: float = 0.03,
    vertex_weights: Any = None,
    block_weights: Any = None,
    fixed: Any = None,
    effort: int = 1,
    connected: bool = False,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> Partition:
    """Make a given partition better: lighter where blocks are too heavy, and with a smaller cut.

    As `partition`, without its start.  The answer is never worse than `labels`, by (empty blocks,
    weight above the limits, cut), and blocks keep their numbers: most vertices stay where they are.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        As for `partition`.
    labels : (n,) integer array
        The block of each vertex.
    k : int or None
        Number of blocks; None takes one more than the largest label.
    imbalance, vertex_weights, block_weights, fixed, rng, engine, threads
        As for `partition`; `labels` must hold the `fixed` blocks.
    effort : {0, 1, 2, 3}
        0 moves vertices of `A` only; 1, 2 and 3 make one, two and four V-cycles.
    connected : bool
        True: in the end stray pieces join other blocks, which may enlarge the cut.

    Returns
    -------
    Partition
        As of `partition`.

    Raises
    ------
    TypeError, ValueError
        As `partition`, negative weights too; if a label is out of range, or differs from the block
        that is fixed.

    Notes
    -----
    Deterministic, by the rules of `partition`.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(8)
    >>> P = matchwood.refine_partition(A, [0, 1, 0, 0, 1, 1, 0, 1])
    >>> P.cut, P.labels.tolist()
    (1, [0, 0, 0, 0, 1, 1, 1, 1])
    """
    caller = "refine_partition"
    joins = arguments.flag(caller, "connected", connected)
    call = calls.enter(A, caller, engine, threads)
    n = call.graph.n
    start = arguments.integers(caller, "labels", labels, size=n, low=0, high=max(n, 1) - 1)
    if k is None:
        k = int(start.max()) + 1 if n else 1
    given = _copies(imbalance, vertex_weights, block_weights, fixed)
    place = engines.home(call.engine)
    task = task_of(caller, n, k, **given, effort=effort, rng=rng, place=place)
    arguments.integers(caller, "labels", start, low=0, high=task.k - 1)
    start = engines.moved(start, "cpu").astype(np.int32)
    _refuse_moved(caller, start, task)
    run = multilevel.begin(call.graph, task, caller, call.engine, threads)
    start = run.where.here(start)
    found = multilevel.refined(run, start) if task.k > 1 else start
    if joins and task.k > 1:
        found = multilevel.connected(run, found)
    return _result(call, run, found, given)


def _copies(*values: Any) -> dict[str, Any]:
    """The arguments that a `Partition` keeps: callers may change theirs."""
    names = ("imbalance", "vertex_weights", "block_weights", "fixed")
    return dict(zip(names, map(copy, values), strict=True))


def _refuse_moved(caller: str, labels: Any, task: Task) -> None:
    if task.fixed is None:
        return
    wrong = (task.fixed >= 0) & (task.fixed != labels)
    if wrong.any():
        v = int(wrong.argmax())
        raise ValueError(
            f"{caller}: labels must hold the fixed blocks, got {labels[v]} for vertex {v}, "
            f"which is fixed to {task.fixed[v]}"
        )


def _result(call: Any, run: multilevel.Run, labels: Any, given: Any) -> Partition:
    task = run.task
    weights = task.given(multilevel.weights_of(run.base, labels, task.k))
    cut: Any = run.where.module.cut_of(run.base, labels, run.where.threads) if labels.size else 0
    if run.base.data is not None:
        cut = cut_as_given(call.graph, labels)
    run.watch.lap("finish")
    origin = Origin(call.given.watched(), given)
    return Partition(
        cut, call.back(labels), weights, task.given(task.limits), tuple(run.log), run.watch.seconds,
        _origin=origin,
    )  # fmt: skip
