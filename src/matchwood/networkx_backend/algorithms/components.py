"""Connected, weak and strong components, and the graph of the strong ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import matchwood.components
from matchwood.networkx_backend.graph import Graph
from matchwood.networkx_backend.info import how
from matchwood.networkx_backend.names import dispatched


def _joined(G: Graph) -> Any:
    """Components whatever the direction of edges; worked out once for a converted graph."""

    def find() -> Any:
        # a directed pattern is passed as it is: a Graph would be tested for symmetry first
        pattern = (G.indptr, G.indices) if G.is_directed() else G.structure
        return matchwood.components.connected_components(pattern, **how())

    return G.keep("components", find)


def _not_empty(G: Graph) -> None:
    if len(G) == 0:
        import networkx as nx

        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")


@dispatched
def connected_components(G: Graph) -> Iterator[set[Any]]:
    yield from G.sets(*_joined(G))


@dispatched
def number_connected_components(G: Graph) -> int:
    return int(_joined(G).count)


@dispatched
def is_connected(G: Graph) -> bool:
    _not_empty(G)
    return int(_joined(G).count) == 1


@dispatched
def node_connected_component(G: Graph, n: Any) -> set[Any]:
    v = G.number_of(n)
    if v is None:
        raise KeyError(n)
    labels = _joined(G).labels
    return set(G.names(np.flatnonzero(labels == labels[v])))


@dispatched
def weakly_connected_components(G: Graph) -> Iterator[set[Any]]:
    yield from G.sets(*_joined(G))


@dispatched
def number_weakly_connected_components(G: Graph) -> int:
    return int(_joined(G).count)


@dispatched
def is_weakly_connected(G: Graph) -> bool:
    _not_empty(G)
    return int(_joined(G).count) == 1


# NetworkX's own order, Tarjan's, is reverse topological: a component follows those it leads to.


def _strong(G: Graph) -> tuple[int, Any]:
    """Number of strong components and labels, in reverse topological order; worked out once."""

    def find() -> tuple[int, Any]:
        found = matchwood.components.condensation((G.indptr, G.indices), **how())
        return found.count, found.count - 1 - found.labels

    return G.keep("strong", find)


@dispatched
def strongly_connected_components(G: Graph) -> Iterator[set[Any]]:
    yield from G.sets(*_strong(G))


@dispatched
def kosaraju_strongly_connected_components(G: Graph, source: Any = None) -> Iterator[set[Any]]:
    yield from G.sets(*_strong(G))


@dispatched
def number_strongly_connected_components(G: Graph) -> int:
    return int(_strong(G)[0])


@dispatched
def is_strongly_connected(G: Graph) -> bool:
    _not_empty(G)
    return int(_strong(G)[0]) == 1


@dispatched
def condensation(G: Graph, scc: Any = None) -> Any:
    import networkx as nx

    C = nx.DiGraph()
    mapping: dict[Any, int] = {}
    C.graph["mapping"] = mapping
    if len(G) == 0:
        return C
    if scc is None:
        count, labels = _strong(G)
        members = list(G.sets(count, labels))
        mapping.update(zip(G.nodes, labels.tolist(), strict=True))
    else:
        members = list(scc)
        for i, component in enumerate(members):
            mapping.update((node, i) for node in component)
        labels = np.fromiter(map(mapping.__getitem__, G.nodes), np.int64, len(G))
    C.add_nodes_from((i, {"members": component}) for i, component in enumerate(members))
    u, v = labels[G.sources].astype(np.int64), labels[G.indices]
    between = u != v
    arcs = np.unique(u[between] * len(members) + v[between])
    u, v = np.divmod(arcs, len(members))
    C.add_edges_from(zip(u.tolist(), v.tolist(), strict=True))
    return C
