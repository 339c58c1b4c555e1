"""Orders that keep neighbours together: any of them by its name, with measures before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matchwood import calls
from matchwood.arguments import one_of, real
from matchwood.ordering.degree import degree_order, hub_order
from matchwood.ordering.gap import Gaps, gaps
from matchwood.ordering.llp import GAMMAS, Layers, find_layers
from matchwood.ordering.rabbit import JoinTree, find_order
from matchwood.ordering.refine import METRICS, refine_order
from matchwood.ordering.shingle import shingle_order
from matchwood.stopwatch import Stopwatch

METHODS = ("rabbit", "shingle", "llp", "degree", "hub")


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
        ``method``; of rabbit orders ``rounds`` and ``communities``; of layers ``layers`` and
        ``rounds``; after refinement ``proposed``, ``kept`` and ``sweeps``.
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
    refine: str | None = None,
    fraction: float = 0.01,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> LocalityOrdering:
    """An order that keeps neighbours together, how good it is, and how it was found.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read.
    method : {"rabbit", "shingle", "llp", "degree", "hub"}
        See `rabbit_order`, `shingle_order`, `layered_label_propagation_order`, `degree_order` and
        `hub_order`.
    refine : {None, "log_gap", "linear_gap"}
        The metric by which the order is refined afterwards, if any: see `refine_order`.
    fraction : float
        The part of the vertices that refinement tries to move.
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
    one_of(caller, "refine", refine, (None, *METRICS))
    real(caller, "fraction", fraction, 0, 1)
    watch = Stopwatch()
    call = calls.enter(A, caller, engine, threads)
    G = call.given
    how: dict[str, Any] = {"engine": engine, "threads": threads}
    counters: dict[str, Any] = {"method": method}
    tree = layers = None
    if method == "rabbit":
        perm, tree, counted = find_order(call, threads)
        counters |= counted
    elif method == "llp":
        perm, layers = find_layers(caller, G, GAMMAS, rng, engine, threads)
        counters |= {"layers": len(layers.gammas), "rounds": sum(layers.rounds)}
    else:
        orders = {"degree": degree_order, "hub": hub_order, "shingle": shingle_order}
        perm = orders[method](G, **how, **({"rng": rng} if method == "shingle" else {}))
    watch.lap("order")
    if refine is not None:
        refined = refine_order(G, perm, metric=refine, fraction=fraction, **how)
        perm, tree, layers = refined.perm, None, None
        counters |= {name: getattr(refined, name) for name in ("proposed", "kept", "sweeps")}
        watch.lap("refine")
    before, after = gaps(G, **how), gaps(G, perm, **how)
    watch.lap("measure")
    return LocalityOrdering(perm, before, after, counters, watch.seconds, tree, layers)
