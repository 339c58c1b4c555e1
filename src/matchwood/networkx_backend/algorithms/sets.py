"""Independent sets and matchings."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import matching
from matchwood.independent import maximal_independent_set as independent_set
from matchwood.networkx_backend.algorithms.spanning import as_numbers
from matchwood.networkx_backend.graph import Graph
from matchwood.networkx_backend.info import how, networkx_version
from matchwood.networkx_backend.names import dispatched
from matchwood.traversal import bfs


@dispatched
def maximal_independent_set(G: Graph, nodes: Any = None, seed: Any = None) -> Any:
    import networkx as nx

    random = nx.utils.create_py_random_state(seed)
    if len(G) == 0:
        return [random.choice(G.nodes)]  # the error that NetworkX gives
    pattern: Any = G.structure
    chosen = list(set(nodes)) if nodes else []
    loops = G.indices[G.sources == G.indices]
    if loops.size and not chosen:
        # NetworkX draws the first node before it looks for loops, so its error depends on the seed
        first = random.choice(G.nodes)
        if G.number_of(first) in loops:
            raise nx.NetworkXUnfeasible(f"{ {first} } is not an independent set of G")
    free = np.arange(len(G))
    if chosen:
        free = _free_beside(G, chosen)
        pattern = _induced(G, free)
    mask = independent_set(pattern, rng=random.randrange(1 << 31), **how())
    found = chosen + G.names(free[mask])
    return set(found) if networkx_version() >= (3, 7) else found


def _free_beside(G: Graph, chosen: list[Any]) -> Any:
    """Vertices that may be added to these nodes; an error unless they are independent."""
    import networkx as nx

    numbers: list[Any] = [G.number_of(node) for node in chosen]
    if None in numbers:
        raise nx.NetworkXUnfeasible(f"{set(chosen)} is not a subset of the nodes of G")
    inside = np.zeros(len(G), bool)
    inside[numbers] = True
    beside = np.zeros(len(G), bool)
    beside[G.indices[inside[G.sources]]] = True
    if (inside & beside).any():
        raise nx.NetworkXUnfeasible(f"{set(chosen)} is not an independent set of G")
    return np.flatnonzero(~(inside | beside))


def _induced(G: Graph, vertices: Any) -> tuple[Any, Any]:
    """The pattern among these vertices, which are renumbered 0, 1, ..."""
    place = np.full(len(G), -1, G.indices.dtype)
    place[vertices] = np.arange(vertices.size)
    u, v = place[G.sources], place[G.indices]
    both = (u >= 0) & (v >= 0)
    indptr = np.zeros(vertices.size + 1, G.indptr.dtype)
    np.cumsum(np.bincount(u[both], minlength=vertices.size), out=indptr[1:])
    return indptr, v[both]


def _pairs(G: Graph, found: Any) -> set[tuple[Any, Any]]:
    """The edges of a matching, each from its first node in the order of ``G.edges``."""
    u, v = found.edges().T
    return set(zip(G.names(u), G.names(v), strict=True))


@dispatched
def maximal_matching(G: Graph) -> set[tuple[Any, Any]]:
    return _pairs(G, matching.maximal_matching(G.structure, **how()))


@dispatched
def max_weight_matching(
    G: Graph, maxcardinality: bool = False, weight: Any = "weight"
) -> set[tuple[Any, Any]]:
    """Approximate: interface.py takes such calls only with the setting `approximate_matching`."""
    edges = G.edges
    weights = as_numbers(G.edge_values(weight))
    # on this error NetworkX tries another backend, or its own function
    if weights is None:
        raise NotImplementedError("weights must be integers or floats")
    if np.isnan(weights).any() or np.isinf(weights).any():
        raise NotImplementedError("weights must be finite")
    useful = np.flatnonzero(weights > 0)  # the others make no matching heavier
    u, v = edges.u[useful], edges.v[useful]
    found = matching.weighted_matching(
        (len(G), np.stack((u, v), axis=1), weights[useful].astype(np.float64)), **how()
    )
    return _pairs(G, found)


@dispatched
def hopcroft_karp_matching(G: Graph, top_nodes: Any = None) -> dict[Any, Any]:
    """A largest matching of a bipartite graph; also ``nx.bipartite.maximum_matching``."""
    _require_two_sides(G, top_nodes)
    mate = matching.maximum_matching(G.structure).mate
    matched = np.flatnonzero(mate >= 0)
    return dict(zip(G.names(matched), G.names(mate[matched]), strict=True))


def _require_two_sides(G: Graph, top_nodes: Any) -> None:
    """Raise NetworkX's error unless two sides are given, or follow from the graph."""
    import networkx as nx

    if top_nodes is not None:
        side = np.zeros(len(G), bool)
        side[[v for v in map(G.number_of, top_nodes) if v is not None]] = True
    else:
        if len(G) == 0:
            raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
        level = bfs(G.structure, 0, directed=False).level
        if (level < 0).any():
            raise nx.AmbiguousSolution("Disconnected graph: Ambiguous solution for bipartite sets.")
        side = level % 2 == 1
    if (side[G.sources] == side[G.indices]).any():
        if top_nodes is not None:  # NetworkX does not check, and returns some answer
            raise NotImplementedError("edges must join nodes of both sides")
        raise nx.NetworkXError("Graph is not bipartite.")
