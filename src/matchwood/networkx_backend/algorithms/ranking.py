"""PageRank, by NetworkX's rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import ranking
from matchwood.gate import graph as csr
from matchwood.networkx_backend.convert import convert_to_nx
from matchwood.networkx_backend.graph import Graph
from matchwood.networkx_backend.info import how
from matchwood.networkx_backend.names import dispatched


@dispatched
def pagerank(
    G: Graph,
    alpha: float = 0.85,
    personalization: Any = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Any = None,
    weight: Any = "weight",
    dangling: Any = None,
) -> dict[Any, float]:
    import networkx as nx

    if len(G) == 0:
        return {}
    options = (alpha, personalization, max_iter, tol, nstart, weight, dangling)
    matrix = _arcs(G, weight)
    jumps = [_numbers(G, given) for given in (personalization, nstart, dangling)]
    if personalization is not None and jumps[0] is not None and jumps[0].sum() == 0:
        raise ZeroDivisionError
    sound = all(
        given is None or (x is not None and bool((x >= 0).all()) and 0 < x.sum() < np.inf)
        for given, x in zip((personalization, nstart, dangling), jumps, strict=True)
    )
    if matrix is None or not sound or not 0 <= alpha < 1 or not tol >= 0:
        # negative probabilities and the like, on which NetworkX computes as well
        return dict(nx.pagerank.orig_func(convert_to_nx(G), *options))
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    p, start, q = jumps
    limit = len(G) * tol  # NetworkX's
    given = (alpha, limit, max_iter, p, q, start, matrix.weighted, np.float64)
    found, _ = ranking.ranked(matrix, given, **how())
    if not found.converged:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return dict(zip(G.nodes, found.scores.tolist(), strict=True))


def _arcs(G: Graph, weight: Any) -> csr.Graph | None:
    """The arcs with their weights, parallel ones added up; None where a weight is not supported."""
    if not G.is_multigraph() and (weight is None or not G.has_edge_data):
        return G.structure

    def make() -> csr.Graph | None:
        edges = G.edges
        values = np.ones(edges.u.size) if weight is None else G.edge_values(weight)
        try:
            w = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            return None
        if w.ndim != 1 or not bool((w >= 0).all()) or not bool(np.isfinite(w.sum())):
            return None
        u, v = edges.u, edges.v
        if not G.is_directed():
            both = u != v  # a loop is one arc
            u, v, w = (np.concatenate(x) for x in ((u, v[both]), (v, u[both]), (w, w[both])))
        pairs = np.stack((u, v), axis=1)
        return csr.graph((len(G), pairs, w), duplicates="sum")

    return G.keep(("arcs", weight), make)


def _numbers(G: Graph, given: Any) -> Any:
    """A number for each node, 0 where `given` has none; None where values are not supported."""
    if given is None:
        return None
    try:
        return np.fromiter((given.get(node, 0) for node in G.nodes), np.float64, len(G))
    except (TypeError, ValueError, OverflowError):
        return None
