"""Degree factors: subgraphs in which every vertex has at most n neighbours.

    degree_factor        a heavy one: a [0,n]-factor, or simple b-matching with b = n
    coverage_of_order    how much weight the order of the vertices has beside the diagonal

    is_factor            has every vertex at most n neighbours, each an edge, seen from both ends?
    is_maximal_factor    ... and could no edge be added?
    check_factor, check_maximal_factor     the same, raising an error that names the vertices

A [0,1]-factor is a matching; a [0,2]-factor is a set of paths and cycles.

    method       folder     how
    "parallel"   rounds/    rounds of proposals; edges that both ends propose are confirmed
    "greedy"     greedy/    the edges by decreasing weight, each if both ends have room
    "auto"                  "parallel"

C. Klein, R. Strzodka. Highly parallel linear forest extraction from a weighted graph on GPUs.
ICPP 2022: Algorithm 2 is "parallel", Algorithm 1 is "greedy".

Shared by both methods: plan.py (the arguments, checked), reference.py, check.py, result.py.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from matchwood import calls, engines
from matchwood.factors.check import check_factor, check_maximal_factor, is_factor, is_maximal_factor
from matchwood.factors.plan import directed_magnitudes, in_words, make_plan
from matchwood.factors.result import Factor, FactorArrays, sealed
from matchwood.gate import graph as csr
from matchwood.memory import require_memory
from matchwood.primitives.wide_sums import SCALE, total

if TYPE_CHECKING:
    from matchwood.engines.devices import Devices

__all__ = [
    "Factor",
    "check_factor",
    "check_maximal_factor",
    "coverage_of_order",
    "degree_factor",
    "factor",
    "is_factor",
    "is_maximal_factor",
]

ENTRIES_PER_STEP = 1 << 24  # entries whose row numbers are made at a time, to save memory


def degree_factor(
    A: Any,
    n: int,
    *,
    method: str = "auto",
    rounds: int | None = 5,
    period: int = 5,
    uncharged: int = 0,
    charge_probability: float = 0.5,
    rng: Any = 0,
    ties: str = "hash",
    directed: bool = False,
    engine: str | Devices | None = None,
    threads: int | None = None,
    **letters: Any,
) -> Factor:
    """Find a heavy subgraph in which every vertex has at most `n` neighbours.

    In the literature on graph factors, those that are given by the degrees of their vertices are
    degree factors [2]_.  This one is a [0,n]-factor: degrees are between 0 and n.  It is also known
    as a simple b-matching with b = n.

    Parameters
    ----------
    A : (N, N) sparse matrix, or anything `graph` takes
        Edge {i, j} weighs ``|a_ij|``, or ``|a_ij| + |a_ji|`` where the values are not symmetric.
    n : int
        The most neighbours of a vertex, at least 1; on the GPU at most 8.
    method : {"auto", "parallel", "greedy"}
        ``"parallel"`` is Algorithm 2 of Klein and Strzodka [1]_, below.  ``"greedy"`` takes the
        edges by decreasing weight, each if both ends have room (their Algorithm 1).  ``"auto"``
        is ``"parallel"``.
    rounds : int or None
        The most rounds, the paper's M; None goes on until the factor is maximal.
    period, uncharged : int
        The paper's m and k_m.  Vertices have charges in all rounds but one of each `period`: they
        have none in round k = 0, 1, ... when ``k % period == uncharged``.  ``period=1`` never uses
        charges.
    charge_probability : float
        Probability of a positive charge, the paper's p.
    rng : int, numpy Generator or None
        Seed of the charges, and of ties by hash.  None is 0.
    ties : {"hash", "index"}
        Which of two equally heavy edges of a vertex it prefers: that with the larger hash of its
        ends, or that to the neighbour with the smaller index, as in the paper.  Where many weights
        are equal, all vertices of a neighbourhood want the same few by index, and factors stay
        small.
    directed : bool
        Propose along the stored entries, by ``|a_ij|``, instead of along undirected edges; an
        edge then needs both directions.  An edge weighs the mean of its two entries.
    engine : {None, "reference", "cpu", "gpu"} or Devices
        None takes the engine where `A` already lives.  Nothing is ever moved silently.  A
        `Devices` is for graphs larger than a GPU, by the method ``"parallel"`` (or ``"auto"``).
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.
    **letters
        ``M``, ``m``, ``k_m`` and ``p``: the names of `rounds`, `period`, `uncharged` and
        `charge_probability` in version 0.1.  Deprecated.

    Returns
    -------
    Factor
        With `neighbours`, `weights`, `weight`, `coverage`, `rounds`, `maximal` and ``edges()``;
        arrays live where `A` lives.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, a weight is not finite, or an argument is out of range.

    Notes
    -----
    In a round every vertex with c < n confirmed neighbours proposes to the n - c it prefers, of
    those that are not full, not confirmed yet, and of the other charge where charges are on.
    Edges that both ends propose are confirmed.  A round without charges in which no vertex proposes
    ends the search: the factor is maximal.

    Equal weights, or weights that grow in one direction, make long chains of vertices in which each
    proposes to the next, and only the last proposal is answered.  Random charges cut such chains.

    Deterministic: charges are hashes of vertex, round and `rng`, preferences have no ties, and
    the neighbours of a vertex are listed by them.  Every engine, at any number of threads,
    returns the same arrays.  Without charges and with ``rounds=None`` the parallel method gives
    the greedy factor, and so the GPU finds that one.

    With ``directed=True`` and a matrix that is not symmetric, some proposals are never answered.
    So ``rounds=None`` also ends after `period` rounds in a row that confirm nothing.

    Work: a pass over the matrix in the first round, later over the rows that have room left.
    Memory besides the graph: the result (on a GPU twice: for later calls, and a copy for the user),
    and 5 or 9 bytes a vertex on the CPU, 1.3 on the GPU; the greedy method sorts all edges, 3 times
    their weights and positions.

    References
    ----------
    .. [1] C. Klein, R. Strzodka. Highly parallel linear forest extraction from a weighted graph
       on GPUs. ICPP 2022. doi:10.1145/3545008.3545035
    .. [2] M. D. Plummer. Graph factors and factorization: 1985-2003: a survey. Discrete
       Mathematics 307, 2007. doi:10.1016/j.disc.2005.11.059

    Examples
    --------
    Of each vertex the two heaviest edges, where the other end agrees:

    >>> import scipy.sparse as sp
    >>> from matchwood.factors import degree_factor
    >>> A = sp.csr_array([[0, 1, 5, 4], [1, 0, 0, 2], [5, 0, 0, 3], [4, 2, 3, 0]])
    >>> found = degree_factor(A, 2, rounds=None)
    >>> found.neighbours.tolist()
    [[2, 3], [-1, -1], [0, 3], [0, 2]]
    >>> found.weight, round(found.coverage, 2), found.rounds, found.maximal
    (12.0, 0.8, 6, True)
    """
    caller = "degree_factor"
    words = in_words(caller, letters, {
        "rounds": rounds, "period": period, "uncharged": uncharged,
        "charge_probability": charge_probability,
    })  # fmt: skip
    plan = make_plan(caller, n, method=method, rng=rng, ties=ties, directed=directed, **words)
    call = calls.enter(A, caller, engine, threads)
    graph = call.graph
    view = directed_magnitudes(graph, caller) if directed else graph.undirected_weights(caller)
    if plan.n > view.n:  # more neighbours than any vertex has
        require_memory(caller, 12 * view.n * plan.n, f"{plan.n} neighbours of each vertex")
    both = call.engine == "reference"  # one file has both methods
    engine_of_method = call.load(__name__ if both else f"{__name__}.{plan.method}")
    options = {"keep": graph.keep, **call.options}
    found: FactorArrays = engine_of_method.find(view, plan, threads=threads, **options)
    arrays = call.back(found.neighbours, found.weights)
    graph.watched()  # the factor keeps the view, so changes of the graph must be noticed
    view = view if directed else graph.undirected_weights(caller)
    return sealed(arrays, found.rounds, found.maximal, directed, view, plan, graph, found.stats)


def factor(A: Any, n: int, **options: Any) -> Factor:
    """Old name of `degree_factor`, to which it passes all arguments.

    .. deprecated:: 0.2
       SciPy's users read "factor" as a factorization.

    Parameters
    ----------
    A, n, **options : as in `degree_factor`

    Returns
    -------
    Factor

    Examples
    --------
    >>> import warnings
    >>> import matchwood
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DeprecationWarning)
    ...     matchwood.factor(matchwood.generators.cycle(4), 2).cardinality
    4
    """
    warnings.warn(
        "matchwood.factor is called degree_factor now, and the old name will go with the next "
        "release",
        DeprecationWarning,
        stacklevel=2,
    )
    return degree_factor(A, n, **options)


def coverage_of_order(A: Any) -> float:
    """The fraction of the weight that lies beside the diagonal, in the order as given.

    That is the sum of ``|a_ij|`` with ``|i - j| = 1`` divided by the sum with ``i != j``: the
    fraction that a tridiagonal preconditioner in this order contains.  A [0,2]-factor with a larger
    coverage promises a better preconditioner.  0 for a matrix without entries off the diagonal.

    Parameters
    ----------
    A : (N, N) sparse matrix, or anything `graph` takes

    Returns
    -------
    coverage : float
        The paper's c_id.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or a weight is not finite.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.factors import coverage_of_order
    >>> coverage_of_order(matchwood.generators.path(5))
    1.0
    >>> round(coverage_of_order(matchwood.generators.grid((50, 50))), 2)
    0.5
    """
    caller = "coverage_of_order"
    view = calls.enter(A, caller).graph.undirected_weights(caller)
    beside, whole = _beside_and_all(view, 1.0)
    if not math.isfinite(whole):
        beside, whole = _beside_and_all(view, SCALE)
    return min(1.0, beside / whole) if whole > 0 else 0.0


def _beside_and_all(view: csr.View, scale: float) -> tuple[float, float]:
    """The weight beside the diagonal and all weight, times `scale`."""
    xp = engines.xp(view.indices)
    beside = whole = 0.0
    for start in range(0, view.nnz, ENTRIES_PER_STEP):
        end = min(start + ENTRIES_PER_STEP, view.nnz)
        entries = xp.arange(start, end, dtype=view.indptr.dtype)
        rows = xp.searchsorted(view.indptr, entries, side="right") - 1
        columns, data = view.indices[start:end], view.data[start:end]
        if scale != 1.0:
            data = data.astype(np.float64) * scale
        whole += total(data)
        beside += total(data[abs(rows - columns) == 1])
    return beside, whole
