"""Minimum spanning forests on a grid of ranks: Boruvka's method.  Order of edges: order.py.

The first round takes whole rows: each rank finds the first edge of every row of its block, and the
owners take the first of those of their row group.  From then on a rank has a list of the edges
between different components, each edge at one rank, sorted once.  Of these it keeps those that
close no cycle with those before; that is at most one fewer than the components it sees.  Rounds:
spread/rounds.py, loops: spread/cpu.py, and spread/gpu.py for ranks with a GPU.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines.ranks.agreement import any_of, same
from matchwood.errors import EngineUnavailable
from matchwood.spanning.forest import LARGEST_FLOAT, Forest, total_overflows
from matchwood.spanning.forest.costs.ranks import undirected_costs
from matchwood.spanning.forest.cpu_order import rows_of
from matchwood.spanning.forest.order import codes
from matchwood.spanning.forest.ranks.keepers import at_keepers
from matchwood.spanning.forest.ranks.rounds import Edges, Rounds, in_order, order_of

CALLER = "minimum_spanning_forest"
METHODS = ("auto", "boruvka")
SCALE = 2.0**-64  # with it a sum of at most 2^63 weights does not overflow


def minimum_spanning_forest(
    G: Any, *, method: str, maximum: bool, threads: int | None = None
) -> Forest:
    """See matchwood.spanning.minimum_spanning_forest.  Called by all ranks."""
    same(G.comm, CALLER, method=method, maximum=maximum)
    if method not in METHODS:
        raise EngineUnavailable(
            f"{CALLER}: method {method!r} is for one machine; 'boruvka' finds the same forest"
        )
    threads = G.threads if threads is None else threads
    costs = undirected_costs(G, CALLER, maximum)
    if G.grid.p == 1 and G.order is None:  # the block is the graph
        engine = engines.load(__package__, G.engine)
        edges, weights, rounds = engine.span(costs, method, maximum, threads=threads)
    else:
        entries, rounds = _forest_entries(G, costs, maximum, threads)
        host = G.on("cpu")  # from here on there are fewer edges than vertices
        costs = undirected_costs(host, CALLER, maximum)
        edges, weights = _at_owners(host, costs, engines.moved(entries, "cpu"))
        edges, weights = (engines.moved(array, G.engine) for array in (edges, weights))
    total = added(G.comm, engines.moved(weights, "cpu"))
    count = np.array([weights.shape[0]], np.int64)
    trees = G.n - int(G.comm.allreduce(count)[0])
    return Forest(edges, weights, total, trees, G.n, rounds)


def _forest_entries(G: Any, costs: Any, maximum: bool, threads: int | None) -> tuple[Any, int]:
    """The entries of this rank's block that are edges of the forest, each edge once; rounds."""
    rows, order = rows_of(costs), order_of(costs.data.dtype, maximum)
    grid, rounds = G.grid, Rounds(G, threads)
    loops, xp = rounds.loops, rounds.xp
    names, to_local = (
        engines.moved(array, G.engine) for array in (G.original_local, grid.columns_to_local)
    )
    first = loops.first_entries(rows, order, grid.n_rows, threads)
    full = xp.flatnonzero(first >= 0)
    entry = first[full]
    u, v = names[full], names[costs.indices[entry]]
    code = codes(costs.data[entry], order, xp)
    new, taken = rounds.choose(u, code, xp.minimum(u, v), xp.maximum(u, v), v)
    found = [entry[taken]]
    labels = names.astype(np.int64)
    labels[full] = new
    own = rounds.parent.astype(G.index_dtype)
    labels[to_local] = G.exchange.expand(own)
    by_name = xp.arange(grid.n_rows) if G.order is None else xp.argsort(names[: grid.n_rows])
    entry, tail, code = loops.list_edges(rows, order, names, labels, by_name, threads)
    head = costs.indices[entry].astype(np.int64)
    edges = Edges(tail, head, code, tail, head, entry)
    found.extend(rounds.rest(in_order(edges, threads), labels))
    any_edge = int(G.comm.allreduce(np.array([full.size], np.int64), "max")[0]) > 0
    return xp.concatenate(found), rounds.count if any_edge else 0


def _at_owners(G: Any, costs: Any, entries: Any) -> tuple[Any, Any]:
    """(edges, weights): those whose smaller end this rank owns, ascending."""
    names = G.original_local
    u = names[np.searchsorted(costs.indptr, entries, "right") - 1]
    v = names[costs.indices[entries]]
    low, high, weights = np.minimum(u, v), np.maximum(u, v), costs.data[entries]
    if weights.dtype.kind == "f":
        # of 0.0 and -0.0 the one in the upper triangle counts; all other weights are symmetric
        away = (u > v) & (weights == 0)
        if any_of(G.comm, bool(away.any())):
            found, more_low, more_high, _ = at_keepers(G, costs, low[away], high[away])
            low = np.concatenate((low[~away], more_low))
            high = np.concatenate((high[~away], more_high))
            weights = np.concatenate((weights[~away], costs.data[found]))
    kind = costs.indices.dtype
    places, high, weights = G.exchange.packets(low, high.astype(kind), weights)
    low = G.ids[places].astype(kind)
    order = np.lexsort((high, low))
    return np.stack((low[order], high[order]), axis=1), weights[order]


def added(comm: Any, weights: Any) -> Any:
    """The sum of the weights of all ranks: of floats in float64, of integers exactly."""
    if weights.dtype.kind != "f":
        parts = np.array([(weights >> 32).sum(), (weights & 0xFFFF_FFFF).sum()], np.int64)
        high, low = (int(part) for part in comm.allreduce(parts))
        return (high << 32) + low
    wide = weights.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        parts = np.array([wide.sum(), (wide * SCALE).sum()])
        total, scaled = (float(part) for part in comm.allreduce(parts))
    if math.isfinite(total):
        return total
    if abs(scaled) <= LARGEST_FLOAT * SCALE:
        return scaled / SCALE
    raise total_overflows()
