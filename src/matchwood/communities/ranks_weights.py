"""Weights of a graph on a grid of ranks as integers; weights.py has the rule.

Each rank has the integers of its block.  The power of two is found by sums over all ranks, which
are exact, so it is the one of a single machine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.communities.weights import all_ones, scaled, strengths
from matchwood.engines.ranks.agreement import any_of


class Spread(NamedTuple):
    """The block of a rank with whole weights, and its own vertices by place.

    `data` is None where all weights of the graph are 1.  `inner` is twice the weight of loops, None
    where there are none.
    """

    indptr: Any
    indices: Any
    data: Any
    inner: Any
    strength: Any
    total: int  # of all ranks
    entries: int  # of all ranks


def spread_level(G: Any, caller: str) -> Spread:
    """The undirected weights of a distributed graph as integers; kept by the graph."""
    if G.weighted:  # at each call, since it may be another caller that is to be named
        G.undirected_weights(caller, negative="error")
    found: Spread = G.keep("whole_weights", lambda: _make(G, caller))
    return found


def _make(G: Any, caller: str) -> Spread:
    if G.weighted:
        view = G.undirected_weights(caller, negative="error")
    else:
        view = G.undirected_pattern()
    loops = G.diagonal(caller) if G.loops else None
    unit = not G.weighted
    if not unit and G.weight_range == (1.0, 1.0):
        unit = not any_of(G.comm, not all_ones(loops))
    if unit:
        data, inner = None, None if loops is None else 2 * loops.astype(np.int64)
    else:

        def joined(value: Any, op: str) -> Any:
            return G.comm.allreduce(np.array([value]), op)[0].item()

        data, inner = scaled(view.data, loops, joined)
    rows = strengths(view.indptr, data)[: G.grid.n_rows]
    strength = G.exchange.fold(engines.xp(rows).ascontiguousarray(rows), "sum")
    if inner is not None:
        strength = strength + inner
    sums = np.array([int(strength.sum()), int(view.indices.shape[0])])
    total, entries = G.comm.allreduce(sums, "sum").tolist()
    return Spread(view.indptr, view.indices, data, inner, strength, total, entries)
