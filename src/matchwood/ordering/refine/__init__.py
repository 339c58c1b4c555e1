"""Refinement of an order by swaps.  Read on in reference.py, check.py, cpu.py, gpu.py."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from matchwood import calls, engines
from matchwood.arguments import count, one_of, real
from matchwood.ordering.gap import linear_gap, log_gap
from matchwood.ordering.permutation import as_permutation, inverse
from matchwood.primitives.sort import radix_sort
from matchwood.stopwatch import Stopwatch

METRICS = ("log_gap", "linear_gap")
PARTNERS = ("neighbours", "median")
AROUND = (-2, -1, 1, 2)  # places beside the median that are tried


@dataclass(frozen=True)
class Refinement:
    """An order after refinement, its metric before and after, and the swaps made.

    Attributes
    ----------
    perm : (n,) integer array
        ``perm[new] = old``.
    before, after : int or float
        The metric of the order given and of `perm`.
    proposed, kept : int
        Swaps that vertices asked for, and those of them that were done; over all sweeps.
    sweeps : int
        Sweeps that were run; with ``sweeps=None`` the last one found nothing to gain.
    seconds : dict
        ``prepare``, ``refine`` and ``measure``.
    """

    perm: Any
    before: Any
    after: Any
    proposed: int
    kept: int
    sweeps: int
    seconds: dict[str, float]


def refine_order(
    A: Any,
    order: Any = None,
    *,
    metric: str = "log_gap",
    fraction: float = 0.01,
    sweeps: int | None = 1,
    partners: str = "neighbours",
    engine: str | None = None,
    threads: int | None = None,
) -> Refinement:
    """Make an order better by swapping vertices of small degree with their neighbours [1]_.

    S holds the vertices with neighbours, by (degree, vertex).  The first ``ceil(fraction |S|)`` of
    them are chosen.  A sweep has two steps::

        desire     each u finds the neighbour v whose swap with u lowers the metric most, from the
                   places that the sweep began with; of equal gains the smaller v
        complete   in the order of S, each swap is done if it still gains

    Gains are over the rows that hold one of the two: all others stay as they are.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read: i and j are neighbours when ``A[i, j]`` or ``A[j, i]`` is
        stored, zero or not, and i != j.
    order : (n,) integer array, an order's result or None
        ``order[new] = old``, to begin with; None for the order as it is.
    metric : {"log_gap", "linear_gap"}
        What is lowered: see `gaps`.
    fraction : float
        The part of S that is chosen, above 0 and at most 1; read as the decimal number that
        Python prints.
    sweeps : int or None
        None sweeps until nothing gains.
    partners : {"neighbours", "median"}
        ``"median"`` also tries the vertices on the four places around the median of u's
        neighbours: two on either side.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads.

    Returns
    -------
    Refinement
        Never worse than the order given.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, `order` no permutation, or an option is none of the above.

    Notes
    -----
    Algorithm 2.1 of the thesis compares swaps by the metric after them, over neighbourhoods of
    different size; here they are compared by what they gain.

    Deterministic: integers throughout, and the completed swaps are those of the sequence.  Several
    threads complete it by reservations [2]_: each swap claims the rows and the ends that it
    touches, by an atomic minimum of its number, and runs when it holds them all.

    With the places of each row kept sorted, a swap of u and v costs O((d_u + d_v) log d), so a
    sweep costs the sum of that over the edges of the chosen vertices: with ``fraction=1`` hubs cost
    the square of their degree.  With ``sweeps=None`` there may be as many sweeps as paths have
    edges: a vertex moves by one swap in each.  Memory: a place for each entry, seven arrays of n.

    References
    ----------
    .. [1] M. Mandulak, R. Hu, G. Slota. Explicit ordering refinement for accelerating irregular
       graph analysis. HPEC 2022. doi:10.1109/HPEC55821.2022.9926313
    .. [2] G. E. Blelloch, J. T. Fineman, P. B. Gibbons, J. Shun. Internally deterministic parallel
       algorithms can be fast. PPoPP 2012. doi:10.1145/2145816.2145840

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.grid((8, 8))
    >>> found = matchwood.refine_order(A, fraction=1.0)
    >>> found.after < found.before, found.kept <= found.proposed
    (True, True)
    >>> found.after == matchwood.log_gap(A, found.perm)
    True
    """
    caller = "refine_order"
    watch = Stopwatch()
    one_of(caller, "metric", metric, METRICS)
    one_of(caller, "partners", partners, PARTNERS)
    part = exact_fraction(caller, fraction)
    limit = None if sweeps is None else count(caller, "sweeps", sweeps, 1)
    call = calls.enter(A, caller, engine, threads)
    view = call.graph.undirected_pattern()
    kind = view.indptr.dtype
    perm = None if order is None else as_permutation(order, view.n, caller, call.graph.engine)
    xp = engines.xp(view.indptr)
    place = xp.arange(view.n, dtype=kind) if perm is None else inverse(perm).astype(kind)
    chosen = chosen_vertices(view, part, threads)
    watch.lap("prepare")
    place, proposed, kept, done = call.load(__name__).refine(
        view, place, chosen, metric, partners == "median", limit, threads=threads
    )
    found = inverse(place).astype(kind, copy=False)
    watch.lap("refine")
    measured = {"log_gap": log_gap, "linear_gap": linear_gap}[metric]
    before, after = (
        measured(call.graph, x, engine=call.engine, threads=threads) for x in (perm, found)
    )
    watch.lap("measure")
    return Refinement(call.back(found), before, after, proposed, kept, done, watch.seconds)


def exact_fraction(function: str, value: Any) -> Fraction:
    """`value` as the decimal number that Python prints: a tenth of 30 is 3, and not 4."""
    number = real(function, "fraction", value, 0, 1)
    if number == 0:
        raise ValueError(f"{function}: fraction must be above 0 and at most 1, got {value}")
    return Fraction(repr(number))


def chosen_vertices(view: Any, fraction: Fraction, threads: int | None) -> Any:
    """The first ceil(fraction |S|) of S: vertices with neighbours by (degree, vertex)."""
    xp = engines.xp(view.indptr)
    degree = xp.diff(view.indptr)
    holders = xp.flatnonzero(degree).astype(view.indptr.dtype)
    unsigned = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    keys = degree[holders].view(unsigned)
    size = -(-fraction.numerator * int(holders.size) // fraction.denominator)
    return radix_sort(keys, holders, threads=threads)[1][:size].copy()
