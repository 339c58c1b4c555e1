"""Layered label propagation.  Read on in check.py.

No engines of its own: `communities.propagation` finds the labels, `gaps` measures, and sorts
combine the layers; each runs on the engine of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from matchwood import calls, engines
from matchwood.arguments import real, seed, shown
from matchwood.communities.propagation import layer as propagate
from matchwood.gate import graph as csr
from matchwood.ordering.gap import log_gap
from matchwood.ordering.permutation import inverse
from matchwood.primitives.sort import radix_sort

MAX_ROUNDS = 100
STILL_SHARE = 0.001  # share of the vertices; a round that moves no more ends a layer


GAMMAS = (*(2.0**-k for k in range(11)), 0.0)


@dataclass(frozen=True)
class Layers:
    """Labels at several resolutions: the proof of an order of layers.

    Attributes
    ----------
    gammas : tuple of float
        In the order in which the layers are put together: from the largest log_gap to the least.
    labels : (layers, n) integer array
        The label of each vertex, which is a vertex too.
    rounds : tuple of int
        Rounds of propagation of each layer.
    """

    gammas: tuple[float, ...]
    labels: Any
    rounds: tuple[int, ...]


def layered_label_propagation_order(
    A: Any,
    *,
    gammas: Sequence[float] = GAMMAS,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> Any:
    """Order the vertices by labels of communities, at many resolutions at once [1]_.

    For each gamma g labels spread from neighbour to neighbour: a vertex takes the label with the
    largest

        (1 + g) K - g size,     K: neighbours with that label, size: all others with it

    so g = 0 gives large communities and g = 1 small ones.  The layers are put together one after
    the other, from the worst to the best log_gap that each gives alone: x comes before y if the
    label of x has a place before that of y's, and vertices with one label keep their order.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read: i and j are neighbours when ``A[i, j]`` or ``A[j, i]`` is
        stored, zero or not, and i != j.
    gammas : sequence of float
        One layer for each; at least 0.  By default 1, 1/2, 1/4, ..., 1/1024 and 0.
    rng : int, Generator or None
        Seed of the order in which labels spread; None is 0.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads.

    Returns
    -------
    perm : (n,) integer array, where `A` lives
        ``perm[new] = old``.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, a gamma is negative or no number, there is none, or `rng` is no
        seed.

    See Also
    --------
    locality_ordering : the same order, with measures before and after and the layers.

    Notes
    -----
    Deterministic: every engine, at any number of threads, returns the same order for a seed.  A
    layer ends after 100 rounds, or when a round changes the label of at most one vertex in 1000.
    Layers of equal log_gap keep the order of `gammas`.

    Work: that of label propagation for each gamma, many times that of `rabbit_order`.  Memory: an
    array of n for each gamma, and that of label propagation.

    References
    ----------
    .. [1] P. Boldi, M. Rosa, M. Santini, S. Vigna. Layered label propagation: a multiresolution
       coordinate-free ordering for compressing social networks. WWW 2011.
       doi:10.1145/1963405.1963488

    Examples
    --------
    >>> import matchwood
    >>> A = (6, [[0, 2], [2, 4], [4, 0], [1, 3], [3, 5], [5, 1]])
    >>> perm = matchwood.layered_label_propagation_order(A).tolist()
    >>> sorted(perm[:3]) in ([0, 2, 4], [1, 3, 5])
    True
    """
    caller = "layered_label_propagation_order"
    return find_layers(caller, A, gammas, rng, engine, threads)[0]


def find_layers(
    caller: str, A: Any, gammas: Any, rng: Any, engine: str | None, threads: int | None
) -> tuple[Any, Layers]:
    """The order and its layers, where the user's graph lives."""
    chosen = checked_gammas(caller, gammas)
    number = seed(caller, rng)
    call = calls.enter(csr.as_graph(A, caller, weight=None), caller, engine, threads)
    found = propagated(call, chosen, number, threads)
    each = [layer.labels for layer in found]
    perm, labels = combined(each, call.graph, threads), engines.xp(each[0]).stack(each)
    order, rounds = tuple(layer.gamma for layer in found), tuple(layer.rounds for layer in found)
    return call.back(perm), Layers(order, call.back(labels), rounds)


def checked_gammas(caller: str, gammas: Any) -> tuple[float, ...]:
    """The gammas as numbers that are not negative; at least one."""
    if (
        isinstance(gammas, (str, bytes))
        or getattr(gammas, "shape", None) == ()
        or (not hasattr(gammas, "__iter__"))
    ):
        raise TypeError(f"{caller}: gammas must be a sequence of numbers, got {shown(gammas)}")
    chosen = tuple(real(caller, "gammas", value, 0) for value in gammas)
    if not chosen:
        raise ValueError(f"{caller}: gammas must hold at least one number, got none")
    return chosen


class Layer(NamedTuple):
    gamma: float
    labels: Any
    rounds: int
    log_gap: float  # of the order by these labels alone


def propagated(
    call: calls.Call, gammas: tuple[float, ...], seed: int, threads: int | None
) -> list[Layer]:
    """A layer for each gamma, from the largest log_gap to the least; equal ones as given."""
    found = []
    for gamma in gammas:
        labels, rounds = propagate(
            call.graph, gamma, caller=call.caller, max_rounds=MAX_ROUNDS, tol=STILL_SHARE,
            seed=seed, engine=call.engine, threads=threads,
        )  # fmt: skip
        perm = combined([labels], call.graph, threads)
        worth = log_gap(call.graph, perm, engine=call.engine, threads=threads)
        found.append(Layer(gamma, labels, rounds, worth))
    return sorted(found, key=lambda layer: -layer.log_gap)


def combined(layers: list[Any], graph: Any, threads: int | None) -> Any:
    """The order that the layers give one after the other, by stable sorts by the labels' places."""
    xp, n, kind = engines.xp(graph.indptr), graph.n, graph.indptr.dtype
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    perm = xp.arange(n, dtype=kind)
    for labels in layers:
        keys = inverse(perm)[labels[perm]].view(unsigned)
        perm = radix_sort(keys, perm, threads=threads)[1]
    return perm
