"""Label propagation.  Read on in reference.py, check.py, cpu.py, gpu.py + gpu.cu, ranks."""

from __future__ import annotations

from typing import Any

from matchwood import arguments, calls, engines
from matchwood.communities.propagation.reference import Plan
from matchwood.communities.quality import quality_of
from matchwood.communities.result import Communities
from matchwood.communities.weights import level_of
from matchwood.primitives.number import trusted_number_labels
from matchwood.stopwatch import Stopwatch

MAX_ROUNDS = 1000


def label_propagation(
    A: Any,
    *,
    max_rounds: int = MAX_ROUNDS,
    tol: float = 0,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> Communities:
    """Find communities by letting every vertex take the label that weighs most around it.

    Each vertex starts with a label of its own.  Again and again it takes the label c for which

        K(v, c) = the weight of its edges to vertices with label c

    is largest, of several the one with the smallest hash, until no label changes [1]_.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes; or a DistributedGraph
        Weights must not be negative.  Of a matrix that is not symmetric ``a_ij + a_ji`` counts, of
        a directed edge list the heavier direction.  Loops do not count, but for the modularity, and
        must not be negative either.
    max_rounds : int
        Rounds at most.
    tol : float
        A round that moves at most this part of the vertices is the last.  With 0, every vertex
        has one of the heaviest labels around it in the end, unless `max_rounds` is reached first.
    rng : int, Generator or None
        Seed of the order in which vertices look around; None is 0.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Communities
        With `count`, `labels`, numbered by smallest vertices, `modularity`, `rounds` and
        `seconds`; unpacks as ``count, labels``.  The labels of a DistributedGraph are a
        DistributedVector.  Vertices of one label need not be connected: what held them together
        may have moved on (unlike those of `louvain` and `leiden`).

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix or has negative weights, or an argument is out of its range.

    Notes
    -----
    Deterministic: every engine, at any number of threads or ranks, returns the same labels for a
    seed.  Weights are integers (see `modularity`), so that sums are exact.  In each of the first 20
    rounds the vertices are split into 16 sub-rounds, by a hash of vertex, round and seed (up to 256
    sub-rounds below 2^14 vertices).  Those of one sub-round look at the state before it, and all
    move at once.  Only vertices look that are active: a vertex that has looked is not, until a
    neighbour moves.  A vertex does not keep its label where another weighs the same and has the
    smaller hash: labels would stay small, and modularity up to 0.24 lower.

    It ends.  After those rounds all active vertices look at once, and of neighbours that want to
    move only the first by hash does.  So no two neighbours move together, and each step makes the
    weight inside labels larger, or leaves it and makes hashes smaller.  Asynchronous and plain
    synchronous forms can run for ever.

    Work O(n + m) for a round, less when few are active.  Memory: 4 bytes a vertex and thread, and
    some arrays of n; 8 bytes for each entry where weights are not all 1, kept by a `Graph`.

    References
    ----------
    .. [1] U. N. Raghavan, R. Albert, S. Kumara. Near linear time algorithm to detect community
       structures in large-scale networks. Phys. Rev. E 76 (2007). doi:10.1103/PhysRevE.76.036106
    .. [2] C. L. Staudt, H. Meyerhenke. Engineering parallel algorithms for community detection in
       massive networks. IEEE Trans. Parallel Distrib. Syst. 27 (2016).
       doi:10.1109/TPDS.2015.2390633

    Examples
    --------
    Two triangles and a weak edge between them:

    >>> import matchwood
    >>> edges = [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [3, 5], [4, 5]]
    >>> found = matchwood.label_propagation((6, edges, [2, 2, 2, 1, 2, 2, 2]))
    >>> found.count, found.labels.tolist()
    (2, [0, 0, 0, 1, 1, 1])
    """
    caller = "label_propagation"

    def checked() -> Plan:
        most = arguments.count(caller, "max_rounds", max_rounds)
        part = arguments.real(caller, "tol", tol, 0, 1)
        return Plan(0.0, most, part, arguments.seed(caller, rng))

    plan = calls.agreed(A, checked)
    call = calls.enter(A, caller, engine, threads)
    if call.engine == "ranks":
        return call.load(__name__).label_propagation(A, plan, threads)
    level = level_of(call.graph, caller)
    watch = Stopwatch()
    labels, rounds = call.load(__name__).propagate(level, plan, threads)
    watch.lap("rounds")
    count, labels = trusted_number_labels(labels, engine=call.engine, threads=threads)
    quality = quality_of(level, labels, count, 1.0, call.engine, threads)
    watch.lap("quality")
    return Communities(count, call.back(labels), quality, 1, rounds, watch.seconds)


def layer(
    graph: Any,
    gamma: float,
    *,
    caller: str,
    max_rounds: int,
    tol: float,
    seed: int,
    engine: str,
    threads: int | None = None,
) -> tuple[Any, int]:
    """Labels of a layer of layered label propagation, and the rounds it took.

    As `label_propagation`, but a vertex takes the label of the largest
    ``(1 + gamma) K(v, c) - gamma size(c)``, where size counts the other vertices with label c.
    With gamma above 0 nothing says that it ends before `max_rounds`.  Labels are vertices, not
    numbered; `graph` is a Graph where the engine reads it, its weights all 1.
    """
    plan = Plan(gamma, max_rounds, tol, seed)
    found: tuple[Any, int] = engines.load(__name__, engine).propagate(
        level_of(graph, caller), plan, threads
    )
    return found
