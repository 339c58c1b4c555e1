"""Weighted matching: the public function.  The methods are the folders beside this file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matchwood import calls
from matchwood.arguments import one_of, seed, shown
from matchwood.matching.augmented import rounds_asked
from matchwood.matching.mates import settled_weight
from matchwood.matching.methods import AUTO, METHODS, Found, Origin, load
from matchwood.matching.result import Matching
from matchwood.primitives.wide_sums import finite
from matchwood.stopwatch import Stopwatch

if TYPE_CHECKING:
    from matchwood.engines.devices import Devices


def weighted_matching(
    A: Any,
    *,
    method: str = "auto",
    rng: Any = 0,
    ties: str = "hash",
    rounds: int | None = None,
    engine: str | Devices | None = None,
    threads: int | None = None,
) -> Matching:
    """Find a heavy matching: edges of large weight, no two of which share an end.

    The methods ``"greedy"``, ``"dominant"`` and ``"suitor"`` return the same edges, the greedy
    matching: go through all edges from the heaviest to the lightest and take each whose ends are
    both free.  Its weight is at least half that of the best matching, nine tenths on grids and
    meshes, 0.82 to 0.88 on graphs with hubs; `Matching.bound` says how much for this one.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes, or a DistributedGraph
        The weight of an edge is ``|a_ij|``, or ``|a_ij| + |a_ji|`` where `A` is not symmetric.
        The diagonal is not read; zeros are no edges.
    method : {"auto", "greedy", "dominant", "suitor", "augmented", "streaming", \
"random_weighted", "exact"}
        ``"greedy"`` sorts the edges.  ``"dominant"`` works in rounds: each free vertex points at
        its heaviest free neighbour, and vertices that point at each other are matched [1]_ [2]_.
        ``"suitor"`` lets vertices propose to their heaviest neighbour that has no better
        offer [3]_; a vertex whose proposal is replaced by a better one proposes again.
        ``"augmented"`` begins with the greedy matching and exchanges an edge for one or two at its
        ends as long as that wins weight [6]_ [7]_: at least 2/3 of the best, and 7 to 14 % more
        than greedy on the collaboration, mail and citation graphs we tried.  ``"streaming"`` reads
        each edge once and keeps few of them, within 2 + epsilon of the best [4]_
        (`streaming_matching` takes edges from an iterator).  ``"random_weighted"`` visits vertices
        in random order and matches each with its heaviest free neighbour [5]_.  ``"exact"`` finds
        the best matching, for small graphs.  ``"auto"`` takes the suitor method, the fastest in our
        measurements.
    rng : int, Generator or None
        Seed of the order of equal weights, and of the vertices in ``"random_weighted"``.
    ties : {"hash", "index"}
        Which of two edges of equal weight comes first: by a hash of their ends, or the one to
        the smaller column.  See `matchwood.primitives.edge_order`.
    rounds : int or None
        Of ``"augmented"``: how many at most.  None goes on until nothing is won.  One round won
        half to nine tenths of what all of them did on the graphs we tried, in 1.3 to 2.7 times the
        time of the greedy matching; all of them took 1.5 to 6.4 times as long.
    engine : {None, "reference", "cpu", "gpu"} or Devices
        None takes the engine where `A` already lives.  Nothing is ever moved silently.  A
        `Devices` is for graphs larger than a GPU, by the method ``"dominant"`` (or ``"auto"``).
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Matching
        With `mate`, `weight`, `rounds`, `bound`, `cardinality`, `edges()` and `check(A)`; `mate`
        lives where `A` lives.  On `Devices` also `stats`: what travelled, round by round.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, a weight is not finite, or an argument is unknown; if the
        graph is too large for ``"exact"``; if the weights of the edges found add up to more than
        double precision holds.
    EngineUnavailable
        If the method has no such engine.
    OutOfMemory
        If the memory of the `Devices` cannot hold even the shortest lists; the message says what
        would do.

    Notes
    -----
    Deterministic: edges have a total order without ties, so the three greedy methods and all
    engines, at any number of threads or ranks, return the same `mate`.  `weight` is a sum in double
    precision; engines agree to 1e-12 of it.  The same holds for ``"augmented"``: its rounds
    look at the matching before them, and gains are compared as integers
    (`matchwood.matching.augmented`).  It stops after 100 rounds; the graphs we tried needed 2 to
    11.  2/3 is proved where it stopped before that, and before `rounds`; `Matching.check` looks
    whether that is so.

    Of a `DistributedGraph`, all ranks call this, with the same arguments; `method` is ``"auto"`` or
    ``"dominant"`` (one rank takes the single machine's methods of these names).  `mate` is a
    `DistributedVector`, `weight`, `rounds` and `cardinality` are those of all ranks, `edges()` are
    those whose smaller end this rank owns, and `bound` is not available.  A rank receives about
    1.8 n / sqrt(p) words of 8 bytes on R-MAT graphs with float32 weights, in all rounds together.
    Where all ranks share a GPU, ``"auto"`` is the single machine's: the first rank gets a copy of
    the whole graph there, if half of the free memory holds it, and matches for all.

    Work: O(m) for suitor and dominant on random weights; greedy sorts, in a few passes of O(m).
    Memory besides the graph: two to four arrays of n; suitor on a GPU with ties by index ten arrays
    of n; greedy three arrays of m; augmented 110 bytes a vertex.

    References
    ----------
    .. [1] R. Preis. Linear time 1/2-approximation algorithm for maximum weighted matching in
       general graphs. STACS 1999. doi:10.1007/3-540-49116-3_24
    .. [2] M. Mandulak, S. Ghosh, S. M. Ferdous, M. Halappanavar, G. Slota. Efficient weighted
       graph matching on GPUs. SC 2024. doi:10.1109/SC41406.2024.00068
    .. [3] F. Manne, M. Halappanavar. New effective multithreaded matching algorithms.
       IPDPS 2014. doi:10.1109/IPDPS.2014.61
    .. [4] A. Paz, G. Schwartzman. A (2 + epsilon)-approximation for maximum weight matching in
       the semi-streaming model. SODA 2017. doi:10.1137/1.9781611974782.140
    .. [5] B. O. Fagginger Auer, R. H. Bisseling. A GPU algorithm for greedy graph matching.
       Facing the Multicore-Challenge II, 2012. doi:10.1007/978-3-642-30397-5_10
    .. [6] S. Pettie, P. Sanders. A simpler linear time 2/3 - epsilon approximation for maximum
       weight matching. Information Processing Letters 91, 2004. doi:10.1016/j.ipl.2004.05.007
    .. [7] J. Maue, P. Sanders. Engineering algorithms for approximate weighted matching.
       WEA 2007. doi:10.1007/978-3-540-72845-0_19

    Examples
    --------
    The heavy edge in the middle is taken first, which is not the best here:

    >>> import scipy.sparse as sp
    >>> from matchwood.matching import weighted_matching
    >>> A = sp.csr_array([[0, 4, 0, 0], [4, 0, 5, 0], [0, 5, 0, 4], [0, 0, 4, 0]])
    >>> mate, weight = weighted_matching(A)
    >>> mate.tolist(), weight
    ([-1, 2, 1, -1], 5.0)
    >>> weighted_matching(A, method="augmented").edges().tolist()
    [[0, 1], [2, 3]]
    """
    caller = "weighted_matching"

    def checked() -> tuple[int, dict[str, int]]:
        one_of(caller, "method", method, METHODS)
        one_of(caller, "ties", ties, ("hash", "index"))
        if rounds is not None and method != "augmented":
            raise ValueError(f'{caller}: rounds needs method="augmented", got {shown(method)}')
        most = {} if rounds is None else {"rounds": rounds_asked(caller, rounds)}
        return seed(caller, rng), most

    number, most = calls.agreed(A, checked)
    if calls.is_distributed(A):
        dist = calls.spread(A, caller, f"{__package__}.dominant", engine, threads)
        found_by_ranks: Matching = dist.weighted_matching(
            A, method=method, seed=number, ties=ties, threads=threads
        )
        return found_by_ranks
    call = calls.enter(A, caller, engine, threads, beyond=True, may_stay=True)
    if method == "auto":
        method = AUTO[call.engine]
    engine_of_method = load(method, call.engine)
    clock = Stopwatch()
    view = call.graph.undirected_weights(caller)
    clock.lap("prepare")
    by_hash = ties == "hash"
    found = Found(*engine_of_method.match(view, number, by_hash, threads, **call.options, **most))
    weight = settled_weight(caller, view, found.mate, found.weight)
    bound = None if found.bound is None else finite(caller, "the bound", found.bound)
    clock.lap("match")
    origin = Origin(call.given.watched(), bound, seed=number, ties=ties, rounds=most.get("rounds"))
    mate = call.back(found.mate)
    return Matching(
        mate, weight, found.rounds, method, clock.seconds, stats=found.stats, _origin=origin
    )
