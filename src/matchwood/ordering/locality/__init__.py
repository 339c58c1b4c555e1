"""Orders that keep neighbours together: any of them by its name, with measures before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood import calls, engines
from matchwood.arguments import count, one_of, seed
from matchwood.gate.graph import graph
from matchwood.ordering.degree import METHODS as HUBS
from matchwood.ordering.degree import degree_order, hub_order
from matchwood.ordering.gap import Gaps, gaps
from matchwood.ordering.llp import GAMMAS, Layers, find_layers
from matchwood.ordering.rabbit import JoinTree, find_order, rabbit_order
from matchwood.ordering.refine import METRICS, PARTNERS, exact_fraction, refine_order
from matchwood.ordering.shingle import shingle_order
from matchwood.stopwatch import Stopwatch
from matchwood.traversal import bfs

CHEAP = ("rabbit", "natural", "shingle", "hub", "degree")  # that "auto" tries; the first of equals
METHODS = ("auto", "natural", "rabbit", "shingle", "llp", "degree", "hub")
SAMPLE = 1 << 15  # vertices that "auto" tries them on


@dataclass(frozen=True)
class LocalityOrdering:
    """An order of the vertices, how near neighbours lie in it, and how it was found.

    Attributes
    ----------
    perm : (n,) integer array
        ``perm[new] = old``.
    before, after : Gaps
        In the given order and in the new one.
    counters : dict
        ``method``; of "auto" ``tried``, the log gap of each method on the sample; of rabbit orders
        ``rounds`` and ``communities``; of layers ``layers`` and ``rounds``; after refinement
        ``proposed``, ``kept`` and ``sweeps``.
    seconds : dict
        ``order``, ``refine`` and ``measure``.
    tree : JoinTree or None
        Which community joined which; of a rabbit order that was not refined.
    layers : Layers or None
        Labels; of an order by layered label propagation that was not refined.
    """

    perm: Any
    before: Gaps
    after: Gaps
    counters: Mapping[str, Any]
    seconds: Mapping[str, float]
    tree: JoinTree | None = None
    layers: Layers | None = None


def locality_ordering(
    A: Any,
    method: str = "rabbit",
    *,
    hub: str = "sort",
    refine: str | None = None,
    fraction: float = 0.01,
    sweeps: int | None = 1,
    partners: str = "neighbours",
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> LocalityOrdering:
    """An order that keeps neighbours together, how good it is, and how it was found.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read.
    method : {"auto", "natural", "rabbit", "shingle", "llp", "degree", "hub"}
        See `rabbit_order`, `shingle_order`, `layered_label_propagation_order`, `degree_order` and
        `hub_order`; "natural" is the order as it is.  "auto" takes the one with the smallest log
        gap on a sample, of all but "llp", which takes much longer.
    hub : {"sort", "cluster", "group"}
        The method of `hub_order`, where that is the method.
    refine : {None, "log_gap", "linear_gap"}
        The metric by which the order is refined afterwards, if any: see `refine_order`.
    fraction, sweeps, partners
        Of refinement: the part of the vertices that it tries to move, how often, and with which.
    rng : int, Generator or None
        Seed of methods that need one.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads.

    Returns
    -------
    LocalityOrdering

    Raises
    ------
    TypeError, ValueError
        As the functions above.

    Notes
    -----
    The sample of "auto" are the 32,768 vertices that a breadth-first search from the vertex of
    largest degree reaches first, with the edges between them; graphs that are not larger are taken
    whole.  The pattern of a larger one on a GPU is copied to the host.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.permute(matchwood.generators.path(9), [0, 3, 6, 1, 4, 7, 2, 5, 8])
    >>> found = matchwood.locality_ordering(A, "rabbit")
    >>> found.before.linear_gap, found.after.linear_gap
    (26, 20)
    """
    caller = "locality_ordering"
    one_of(caller, "method", method, METHODS)
    one_of(caller, "hub", hub, HUBS)
    one_of(caller, "refine", refine, (None, *METRICS))
    exact_fraction(caller, fraction)
    one_of(caller, "partners", partners, PARTNERS)
    if sweeps is not None:
        count(caller, "sweeps", sweeps, 1)
    rng = seed(caller, rng)
    watch = Stopwatch()
    call = calls.enter(A, caller, engine, threads)
    G = call.given
    how: dict[str, Any] = {"engine": engine, "threads": threads}
    counters: dict[str, Any] = {}
    if method == "auto":
        tried = _tried(call, hub, rng, engine, threads)
        method = min(tried, key=lambda name: tried[name])
        counters["tried"] = tried
    counters["method"] = method
    tree = layers = None
    if method == "rabbit":
        perm, tree, counted = find_order(call, threads)
        counters |= counted
    elif method == "llp":
        perm, layers = find_layers(caller, G, GAMMAS, rng, engine, threads)
        counters |= {"layers": len(layers.gammas), "rounds": sum(layers.rounds)}
    else:
        perm = _simple_order(G, method, hub, rng, how)
    watch.lap("order")
    if refine is not None:
        refined = refine_order(
            G, perm, metric=refine, fraction=fraction, sweeps=sweeps, partners=partners, **how
        )
        perm, tree, layers = refined.perm, None, None
        counters |= {name: getattr(refined, name) for name in ("proposed", "kept", "sweeps")}
        watch.lap("refine")
    before, after = gaps(G, **how), gaps(G, perm, **how)
    watch.lap("measure")
    return LocalityOrdering(perm, before, after, counters, watch.seconds, tree, layers)


def _simple_order(G: Any, method: str, hub: str, rng: Any, how: dict[str, Any]) -> Any:
    if method == "natural":
        view = G.undirected_pattern()
        return engines.xp(view.indptr).arange(view.n, dtype=view.indptr.dtype)
    if method == "shingle":
        return shingle_order(G, rng=rng, **how)
    if method == "hub":
        return hub_order(G, method=hub, **how)
    return {"degree": degree_order, "rabbit": rabbit_order}[method](G, **how)


def _tried(
    call: calls.Call, hub: str, rng: int, engine: str | None, threads: int | None
) -> dict[str, float]:
    """The log gap of a sample in each of the cheap orders."""
    how: dict[str, Any] = {"engine": engine, "threads": threads}
    G = call.given
    if call.graph.n > SAMPLE:  # a small one, which is tried on the host
        how["engine"] = engine if engine == "reference" else "cpu"
        G = _sample(call, engine, threads)
    return {name: gaps(G, _simple_order(G, name, hub, rng, how), **how).log_gap for name in CHEAP}


def _sample(call: calls.Call, engine: str | None, threads: int | None) -> Any:
    """The SAMPLE vertices that are nearest to the first one of largest degree, as a graph."""
    view = call.graph.undirected_pattern()
    indptr, indices = (engines.moved(x, "cpu") for x in (view.indptr, view.indices))
    start = int(np.argmax(np.diff(indptr)))
    ones = np.ones(indices.size, np.int8)
    A = sp.csr_array((ones, indices, indptr), shape=(view.n, view.n))
    found = bfs(A, start, engine=engine if engine == "reference" else "cpu", threads=threads)
    level = np.where(found.level < 0, view.n, found.level)
    nearest = np.sort(np.argsort(level, kind="stable")[:SAMPLE])
    return graph(A[nearest][:, nearest])
