"""Which vertices matter most.

pagerank        where a random surfer spends the time
Ranking         what `pagerank` returns

check_pagerank  are these the scores?

Read on in problem.py (the arguments and the arrays that engines read), reference.py, check.py,
cpu.py, gpu.py + gpu.cu, ranks.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from matchwood import calls
from matchwood.ranking.check import check_pagerank, is_pagerank
from matchwood.ranking.problem import Options, options
from matchwood.ranking.result import Ranking
from matchwood.stopwatch import Stopwatch

__all__ = ["Ranking", "check_pagerank", "is_pagerank", "pagerank"]


def pagerank(
    A: Any,
    *,
    damping: float = 0.85,
    tol: float | None = None,
    max_iterations: int = 100,
    personalization: Any = None,
    dangling: Any = None,
    start: Any = None,
    weighted: bool = False,
    dtype: Any = np.float64,
    engine: str | None = None,
    threads: int | None = None,
) -> Ranking:
    """Score vertices by how often a random surfer visits them [1]_.

    In each step the surfer follows a random arc with probability d (`damping`), and jumps to a
    random vertex otherwise; at a vertex without arcs it jumps in any case.  With p and q the
    probabilities of those jumps, an iteration is

        x(j) <- d (sum over arcs (i, j) of x(i) a(i, j) / s(i)  +  D q(j))  +  (1 - d) p(j)

    where s(i) is the sum of row i, and D the sum of x over the vertices whose row is empty.  It
    ends when the sum of all changes is less than `tol`.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes; or a DistributedGraph
        Entry (i, j) is an arc from i to j; loops count.
    damping : float
        d, at least 0 and less than 1.
    tol : float or None
        The scores are within ``damping * tol / (1 - damping)`` of the right ones, added up over all
        vertices.  None for 1e-6, or 1e-5 in float32.  0 runs exactly `max_iterations`.
    max_iterations : int
        At least 1.
    personalization : (n,) array or None
        p up to a factor; None for the same everywhere.
    dangling : (n,) array or None
        q up to a factor; None for p.
    start : (n,) array or None
        The first x up to a factor; None for the same everywhere.  With a DistributedGraph these
        three are the same arrays on all ranks, or DistributedVectors.
    weighted : bool
        Read the values of `A` as weights; else all arcs of a vertex are equally likely.
    dtype : {float64, float32}
        Of the scores and of the arithmetic.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads.

    Returns
    -------
    Ranking
        The scores of a DistributedGraph are a DistributedVector.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix; a weight that is read is negative, infinite or NaN, or those of
        a row add up to infinity; damping is outside [0, 1); an array has another length, is all
        zero or holds something negative.

    Notes
    -----
    The rules are NetworkX's but for the end: NetworkX stops when the changes are less than
    ``n * tol``, on a million vertices after one iteration.  (``tol=n * 1e-6`` does the same.)

    Scores that have not converged are returned with a `RuntimeWarning`, and `converged` is False.
    In float32 a row of 100,000 entries may never settle to 1e-5: its sum is rounded that often.

    Deterministic: sums run over blocks of vertices that depend on the graph alone.  So the scores
    have the same bits at any number of threads; a GPU gives them within 1e-12 in float64, ranks of
    any grid within 1e-10, after the same number of iterations.

    Pull: every vertex adds up what it receives, so a graph whose pattern is not symmetric is
    transposed, once for a `Graph`.  Rows are visited by their length within windows of 4,096
    vertices: where rows of one length follow each other, the processor predicts their ends
    (usroads: 1.38 against 0.42 ms an iteration).  Work O(n + m) for each iteration; memory four
    arrays of n scores and two of n indices, and on the CPU, without weights, a copy of the entries
    in that order: 2 bytes each where a window's neighbours lie close together, else as many as
    the graph's own.  A GPU numbers the vertices by degree for itself, without weights, where few
    of them have a quarter of the arcs and lie far apart; the `Graph` keeps these rows, too, 4 bytes
    an entry.

    On a grid of R x C ranks an iteration is a fold of sums to the owners of vertices and an expand
    of what these give: (n / R)(C - 1) / C + (n / C)(R - 1) / R numbers that a rank receives.

    References
    ----------
    .. [1] L. Page, S. Brin, R. Motwani, T. Winograd. The PageRank citation ranking: bringing order
       to the web. Stanford InfoLab, 1999.

    Examples
    --------
    >>> import matchwood
    >>> found = matchwood.pagerank((4, [[1, 0], [2, 0], [3, 0], [0, 3]]))
    >>> [round(x, 3) for x in found.scores.tolist()]
    [0.48, 0.038, 0.038, 0.445]
    >>> found.converged
    True

    Vertices without arcs, and no edges at all, have an answer:

    >>> matchwood.pagerank((2, [])).scores.tolist()
    [0.5, 0.5]
    """
    given = (damping, tol, max_iterations, personalization, dangling, start, weighted, dtype)
    found, asked = ranked(A, given, engine, threads)
    if asked.tol > 0 and not found.converged:
        warnings.warn(
            f"pagerank: not converged: iteration {found.iterations}, the last, changed the scores "
            f"by {found.error:.3g}, and tol is {asked.tol:g}",
            RuntimeWarning,
            stacklevel=2,
        )
    return found


def ranked(
    A: Any, given: tuple[Any, ...], engine: str | None, threads: int | None
) -> tuple[Ranking, Options]:
    """`pagerank` without its warning; `given` are the arguments of `options`."""
    caller = "pagerank"
    watch = Stopwatch()
    asked = calls.agreed(A, lambda: options(caller, *given))
    call = calls.enter(A, caller, engine, threads)
    if call.engine == "ranks":
        return call.load(__name__).pagerank(A, asked, threads), asked
    problem = asked.on(call, caller)
    if call.given.n == 0:
        watch.lap("prepare")
        seconds = {**watch.seconds, "iterate": 0.0}
        return Ranking(call.back(problem.start), 0, 0.0, True, seconds), asked
    module = call.load(__name__)
    plan = module.prepare(call.graph, problem, threads=threads)
    watch.lap("prepare")
    scores, iterations, error = module.iterate(plan, problem, threads=threads)
    watch.lap("iterate")
    converged = error < asked.tol
    return Ranking(call.back(scores), iterations, error, converged, watch.seconds), asked
