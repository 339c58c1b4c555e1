"""As many edges as possible, no two of which share an end.  See reference.py, check.py, cpu/."""

from __future__ import annotations

from typing import Any

from matchwood import calls
from matchwood.arguments import one_of
from matchwood.matching.methods import Origin
from matchwood.matching.result import Matching
from matchwood.stopwatch import Stopwatch

METHODS = ("auto", "hopcroft_karp", "blossom")


def maximum_matching(
    A: Any, *, method: str = "auto", engine: str | None = None, threads: int | None = None
) -> Matching:
    """Find a matching with as many edges as there can be, whatever their weights.

    A path that begins and ends at free vertices, and whose every second edge is in the matching,
    can be turned round: the matching then has one edge more.  A matching without such a path is
    a largest one (Berge).  At the start each vertex takes its first free neighbour.  Where that
    leaves many vertices free, the start follows Karp and Sipser [1]_: a vertex with one free
    neighbour is matched with it, which is never wrong.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        i and j are joined when ``A[i, j]`` or ``A[j, i]`` is stored and ``i != j``.  For a
        bipartite graph given as a rectangle B, pass ``[[0, B], [B.T, 0]]``.
    method : {"auto", "hopcroft_karp", "blossom"}
        ``"hopcroft_karp"`` turns round many paths in each of a few phases [2]_, for bipartite
        graphs.  They are found in trees that grow at once, and are kept and grafted from phase to
        phase [5]_.
        ``"blossom"`` is Edmonds' search [3]_ [4]_, which contracts odd cycles, for all graphs.
        ``"auto"`` begins with the second; where its searches read much and the graph is
        bipartite, the first goes on.
    engine : {None, "reference", "cpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        The number of threads.  None means all where a second one pays.  They share the phases
        of ``"hopcroft_karp"``; the start and ``"blossom"`` are the work of one.

    Returns
    -------
    Matching
        With `mate`, `weight` (the number of edges), `edges()` and `check(A)`, which proves that
        no matching has more edges.  `rounds` is the number of phases of ``"hopcroft_karp"``, or
        of searches of ``"blossom"`` that found a path.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix or the method is unknown; if ``"hopcroft_karp"`` is asked of a
        graph that is not bipartite.
    EngineUnavailable
        On the GPU.

    Notes
    -----
    Deterministic: vertices are visited in the order of their indices and rows in that of their
    columns; where several trees claim a vertex at once, a hash decides.  So the mates are the same
    for any number of threads.  The reference follows other paths: of largest matchings it may find
    another one.

    Work O(n m) at worst; on the graphs we tried there were at most 20 phases.  A search of
    ``"blossom"`` that found no path is never repeated, as its vertices are left out from then on.
    Memory besides the graph: some ten arrays of n.

    The start is sequential: by the rule of Karp and Sipser each choice may leave the next vertex
    with one neighbour.  On random graphs with two sides of 200,000 vertices it takes more than half
    of the time.

    References
    ----------
    .. [1] R. M. Karp, M. Sipser. Maximum matchings in sparse random graphs. FOCS 1981.
       doi:10.1109/SFCS.1981.21
    .. [2] J. E. Hopcroft, R. M. Karp. An n^(5/2) algorithm for maximum matchings in bipartite
       graphs. SIAM J. Comput. 2, 1973. doi:10.1137/0202019
    .. [3] J. Edmonds. Paths, trees, and flowers. Canadian J. Math. 17, 1965.
       doi:10.4153/CJM-1965-045-4
    .. [4] H. N. Gabow. An efficient implementation of Edmonds' algorithm for maximum matching on
       graphs. J. ACM 23, 1976. doi:10.1145/321941.321942
    .. [5] A. Azad, A. Buluc, A. Pothen. A parallel tree grafting algorithm for maximum cardinality
       matching in bipartite graphs. IPDPS 2015. doi:10.1109/IPDPS.2015.68

    Examples
    --------
    Two triangles joined by an edge: the three edges are found across odd cycles.

    >>> import matchwood
    >>> from matchwood.matching import maximum_matching
    >>> edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
    >>> found = maximum_matching(matchwood.graph((6, edges)))
    >>> found.cardinality, found.method
    (3, 'blossom')
    >>> maximum_matching(matchwood.generators.path(5)).cardinality
    2
    """
    caller = "maximum_matching"
    one_of(caller, "method", method, METHODS)
    call = calls.enter(A, caller, engine, threads)
    finder = call.load(__name__)
    clock = Stopwatch()
    view = call.graph.undirected_pattern()
    clock.lap("prepare")
    mate, rounds, method = finder.match(view, method, threads)
    clock.lap("match")
    size = float(int((mate >= 0).sum()) // 2)
    origin = Origin(None, size, False, 0)
    return Matching(call.back(mate), size, rounds, method, clock.seconds, _origin=origin)
