"""From NetworkX graphs to ours, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.networkx_backend.graph import Graph
from matchwood.networkx_backend.info import settings
from matchwood.networkx_backend.reading import plain_adjacency, read_rows


def convert_from_nx(
    G: Any,
    *,
    edge_attrs: dict[str, Any] | None = None,
    node_attrs: dict[str, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    preserve_all_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> Graph:
    """Convert a NetworkX graph.

    NetworkX calls this, and keeps the result while the graph does not change.  A program that
    wants to convert once itself calls it with ``preserve_all_attrs=True``, and does not change
    the graph while it uses the result.

    Parameters
    ----------
    G : networkx.Graph, DiGraph, MultiGraph, MultiDiGraph or a view of one
        Not changed.
    edge_attrs, node_attrs : dict or None
        Attributes that will be asked for.  The result then shares the dictionaries of `G`, and
        reads them when a function needs what they hold.
    preserve_edge_attrs, preserve_node_attrs, preserve_graph_attrs, preserve_all_attrs : bool
        Keep all attributes.
    name, graph_name : str or None
        What NetworkX is about to call, and with which argument; not used.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import networkx as nx
    >>> from matchwood.networkx_backend import convert_from_nx
    >>> G = convert_from_nx(nx.Graph([("a", "b"), ("b", "c")]))
    >>> G
    <matchwood Graph: 3 nodes, 2 edges>
    >>> G.nodes, G.indices.tolist()
    (['a', 'b', 'c'], [1, 0, 2, 1])
    """
    if isinstance(G, Graph):
        return G
    directed, multi = G.is_directed(), G.is_multigraph()
    adjacency = plain_adjacency(G)
    rows = read_rows(adjacency, quick=settings().read_memory)
    edge_data = preserve_all_attrs or preserve_edge_attrs or bool(edge_attrs)
    node_data = preserve_all_attrs or preserve_node_attrs or bool(node_attrs)
    graph_data = preserve_all_attrs or preserve_graph_attrs
    return Graph(
        rows,
        directed=directed,
        multigraph=multi,
        adjacency=adjacency if edge_data or multi else None,
        node_data=G._node if node_data else None,
        attributes=dict(G.graph) if graph_data else None,
        nx_class=type(G),
    )


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """Convert a `Graph` to NetworkX; anything else is returned as it is."""
    if not isinstance(result, Graph):
        return result
    G = result
    T = empty_like(G)
    edges = G.edges
    columns = [G.names(edges.u), G.names(edges.v), *([] if edges.keys is None else [edges.keys])]
    T.add_edges_from(zip(*columns, G.edge_data(np.arange(edges.u.size)), strict=True))
    if not G.is_directed():  # neighbours in the order that they had
        ends, names = G.indptr.tolist(), G.names(G.indices)
        for i, node in enumerate(G.nodes):
            row = T._adj[node]
            T._adj[node] = {w: row[w] for w in names[ends[i] : ends[i + 1]]}
    return T


def empty_like(G: Graph) -> Any:
    """A NetworkX graph with the nodes and attributes of `G` and no edges."""
    T = nx_class(G)()
    T.graph.update(G.graph)
    T.add_nodes_from(G.nodes if G.node_data is None else G.node_data.items())
    return T


def nx_class(G: Graph) -> Any:
    """The NetworkX class that `G` came from."""
    import networkx as nx

    if G.nx_class is not None:
        return G.nx_class
    if G.is_directed():
        return nx.MultiDiGraph if G.is_multigraph() else nx.DiGraph
    return nx.MultiGraph if G.is_multigraph() else nx.Graph
