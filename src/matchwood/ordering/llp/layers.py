"""The layers of an order: labels for each gamma, sorted by what they are worth, put together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import calls, engines
from matchwood.communities.propagation import layer as propagate
from matchwood.ordering.gap import log_gap
from matchwood.primitives.sort import radix_sort

MAX_ROUNDS = 100
STILL = 0.001  # of the vertices; a round that moves no more ends a layer


class Layer(NamedTuple):
    """Labels of one resolution."""

    gamma: float
    labels: Any
    rounds: int
    log_gap: float  # of the order by these labels alone


def propagated(
    call: calls.Call, gammas: tuple[float, ...], seed: int, threads: int | None
) -> list[Layer]:
    """A layer for each gamma, from the largest log_gap to the least; equal ones as they came."""
    found = []
    for gamma in gammas:
        labels, rounds = propagate(
            call.graph, gamma, caller=call.caller, max_rounds=MAX_ROUNDS, tol=STILL, seed=seed,
            engine=call.engine, threads=threads,
        )  # fmt: skip
        perm = combined([labels], call.graph, threads)
        worth = log_gap(call.graph, perm, engine=call.engine, threads=threads)
        found.append(Layer(gamma, labels, rounds, worth))
    return sorted(found, key=lambda layer: -layer.log_gap)


def combined(layers: list[Any], graph: Any, threads: int | None) -> Any:
    """The order that the layers give one after the other: stable sorts by the labels' places."""
    xp, n, kind = engines.xp(graph.indptr), graph.n, graph.indptr.dtype
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    perm = xp.arange(n, dtype=kind)
    for labels in layers:
        place = xp.empty(n, kind)
        place[perm] = xp.arange(n, dtype=kind)
        keys = place[labels[perm]].view(unsigned)
        perm = radix_sort(keys, perm, threads=threads)[1]
    return perm
