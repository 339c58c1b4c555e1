"""Heavy matchings: the public functions.  The methods are the folders beside this file."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood import calls
from matchwood.arguments import count, index_type, one_of, plain, real, seed, shown
from matchwood.gate.resources import require_vertices
from matchwood.matching.augmented import rounds_asked
from matchwood.matching.methods import AUTO, METHODS, EngineMatching, Origin, load, settled_weight
from matchwood.matching.result import Matching
from matchwood.matching.streaming import EPSILON
from matchwood.primitives.wide_sums import finite
from matchwood.stopwatch import Stopwatch

if TYPE_CHECKING:
    from matchwood.engines.devices import Devices

LARGEST_EXACT = 2**53  # larger integers are rounded in double precision
EDGES_PER_BLOCK = 1 << 16  # edges given to the kernel at a time, where they are read one by one


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
        ends as long as that gains weight [6]_ [7]_: at least 2/3 of the best, and 7 to 14 % more
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
        The most rounds of ``"augmented"``.  None goes on until nothing is gained.  One round gained
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
        lives where `A` lives.  On `Devices` also `stats`: the transfers, round by round.

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
    read the matching before them, and gains are compared as integers
    (`matchwood.matching.augmented`).  It stops after 100 rounds; the graphs we tried needed 2 to
    11.  2/3 is proved where it stopped before that, and before `rounds`; `Matching.check` tests
    that.

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
    call = calls.enter(A, caller, engine, threads, may_stay=True)
    if call.engine == "ranks":
        found_by_ranks: Matching = call.load(f"{__package__}.dominant").weighted_matching(
            A, method=method, seed=number, ties=ties, threads=threads
        )
        return found_by_ranks
    if method == "auto":
        method = AUTO[call.engine]
    engine_of_method = load(method, call.engine)
    clock = Stopwatch()
    view = call.graph.undirected_weights(caller)
    clock.lap("prepare")
    by_hash = ties == "hash"
    found = EngineMatching(
        *engine_of_method.match(view, number, by_hash, threads, **call.options, **most)
    )
    weight = settled_weight(caller, view, found.mate, found.weight)
    bound = None if found.bound is None else finite(caller, "the bound", found.bound)
    clock.lap("match")
    origin = Origin(call.given.watched(), bound, seed=number, ties=ties, rounds=most.get("rounds"))
    mate = call.back(found.mate)
    return Matching(
        mate, weight, found.rounds, method, clock.seconds, stats=found.stats, _origin=origin
    )


# In one pass over the edges


def streaming_matching(
    edges: Iterable[Any], *, n: int | None = None, epsilon: float = EPSILON
) -> Matching:
    """Find a heavy matching among edges that are read one after the other, each once.

    Every vertex has a potential, 0 at first.  An edge whose weight exceeds (1 + epsilon) times the
    sum of its ends' potentials is pushed onto a stack, and its weight minus that sum is added to
    both potentials; any other edge is dropped.  At the end the edges are popped from the stack, and
    each whose ends are both free is taken [1]_ [2]_.  The weight is at least 1 / (2 + 2 epsilon) of
    the best possible, for any order of the edges.

    Parameters
    ----------
    edges : iterable
        Either of edges ``(u, v, w)``, or of blocks ``(u, v, w)`` of three arrays of the same
        length, which is faster.  It is read once; it need not fit in memory.  Self loops and
        weights of 0 are left out; an edge that occurs several times counts as several.
    n : int or None
        Number of vertices; None takes the largest vertex seen, plus one.
    epsilon : float
        Not negative.  Larger keeps fewer edges and loses more weight.

    Returns
    -------
    Matching
        `bound` is the sum of the potentials times (1 + epsilon), rounded up by 2^-40: no matching
        is heavier.

    Raises
    ------
    TypeError, ValueError
        If a vertex is no integer in 0 .. n - 1, or a weight is negative or not finite, or an
        integer beyond 2**53; if the weight or the bound is more than double precision holds.

    Notes
    -----
    Memory: O(n (1 / epsilon) log(W)) for the stack, W being the ratio of the largest to the
    smallest weight, and two arrays of n.  Work O(1) for each edge.  One thread: an edge depends
    on all before it.

    References
    ----------
    .. [1] A. Paz, G. Schwartzman. A (2 + epsilon)-approximation for maximum weight matching in
       the semi-streaming model. SODA 2017. doi:10.1137/1.9781611974782.140
    .. [2] M. Ghaffari, D. Wajc. Simplified and space-optimal semi-streaming (2 + epsilon)-
       approximate matching. SOSA 2019. doi:10.4230/OASIcs.SOSA.2019.13

    Examples
    --------
    >>> from matchwood.matching import streaming_matching
    >>> found = streaming_matching([(0, 1, 4.0), (1, 2, 5.0), (2, 3, 4.0)], epsilon=0.0)
    >>> found.edges().tolist(), found.weight, round(found.bound, 9)
    ([[0, 1], [2, 3]], 8.0, 16.0)
    """
    caller = "streaming_matching"
    epsilon = real(caller, "epsilon", epsilon, 0.0)
    most = None if n is None else count(caller, "n", n)
    require_vertices(caller, most or 0)
    clock = Stopwatch()
    stream = load("streaming", "cpu").Stream(most or 0, epsilon)
    seen = 0
    for u, v, w in _blocks(edges, caller):
        _check(u, v, w, most, seen, caller)
        stream.feed(u, v, w)
        seen += u.size
    clock.lap("read")
    found = stream.finish()
    clock.lap("unwind")
    kind = index_type(found.mate.size)
    return Matching(
        found.mate.astype(kind, copy=False),
        finite(caller, "the weight of the matching", found.weight),
        found.rounds,
        "streaming",
        clock.seconds,
        _origin=Origin(bound=finite(caller, "the bound", found.bound or 0.0), weighted=True),
    )


def _blocks(edges: Iterable[Any], caller: str) -> Iterator[tuple[Any, Any, Any]]:
    """Blocks of arrays from blocks or from single edges."""
    if not isinstance(edges, Iterable) or getattr(edges, "shape", None) == ():
        raise TypeError(f"{caller}: edges must be an iterable, got {type(edges).__name__}")
    items = iter(edges)
    first = next(items, None)
    if first is None:
        return
    items = itertools.chain((first,), items)
    if not isinstance(first, Collection):
        raise TypeError(f"{caller}: edges must be (u, v, w), got {type(first).__name__}")
    if len(first) != 3:
        raise ValueError(f"{caller}: edges must be (u, v, w), got {len(first)} items")
    blocks: Iterator[Any] = items
    if np.ndim(next(iter(first))) == 0:
        batches = iter(lambda: list(itertools.islice(items, EDGES_PER_BLOCK)), [])
        blocks = (zip(*batch, strict=True) for batch in batches)
    for us, vs, ws in blocks:
        u, v, w = _integers(us, caller), _integers(vs, caller), _numbers(ws, caller)
        if not u.ndim == 1 or not u.shape == v.shape == w.shape:
            raise ValueError(
                f"{caller}: the arrays of a block must have the same length, got shapes "
                f"{u.shape}, {v.shape} and {w.shape}"
            )
        yield u, v, w


def _integers(values: Any, caller: str) -> Any:
    array = plain(caller, "vertices", values)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{caller}: vertices must be integers, got {array.dtype}")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{caller}: vertices must be below 2**63, got {int(array.max())}")
    return np.ascontiguousarray(array, np.int64)


def _numbers(values: Any, caller: str) -> Any:
    array = plain(caller, "weights", values)
    if array.dtype.kind not in "iufb":
        raise TypeError(f"{caller}: weights must be real numbers, got {array.dtype}")
    if array.dtype.kind in "iu" and array.size and int(array.max()) > LARGEST_EXACT:
        raise ValueError(
            f"{caller}: integer weights must be at most 2**53, got {int(array.max())}; "
            "pass them as floats to have them rounded"
        )
    return np.ascontiguousarray(array, np.float64)


def _check(u: Any, v: Any, w: Any, n: int | None, seen: int, caller: str) -> None:
    """Raise for the first wrong edge of a block; `seen` edges were read before the block."""
    if not u.size:
        return
    for ends in (u, v):
        wrong = ends < 0 if n is None else (ends < 0) | (ends >= n)
        if wrong.any():
            k = int(wrong.argmax())
            within = "at least 0" if n is None else f"within 0..{n - 1}"
            raise ValueError(
                f"{caller}: vertices must be {within}, got {ends[k]} at edge {seen + k}"
            )
    if n is None:
        require_vertices(caller, int(max(u.max(), v.max())) + 1)
    wrong = ~(np.isfinite(w) & (w >= 0))
    if wrong.any():
        k = int(wrong.argmax())
        raise ValueError(
            f"{caller}: weights must be finite and not negative, got {w[k]} at edge {seen + k}"
        )
