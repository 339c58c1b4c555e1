"""From NetworkX graphs to matchwood's, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.gate.networkx import Wanted, own_access, read
from matchwood.networkx_backend.graph import Graph


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
    wants to convert once itself calls it with ``preserve_all_attrs=True``.  The result is the
    graph at one moment: changes that follow do not reach it.

    Parameters
    ----------
    G : networkx.Graph, DiGraph, MultiGraph, MultiDiGraph or a view of one
        Not changed.
    edge_attrs, node_attrs : dict or None
        Attributes that will be needed, as keys.
    preserve_edge_attrs, preserve_node_attrs, preserve_graph_attrs, preserve_all_attrs : bool
        Keep all attributes.
    name, graph_name : str or None
        What NetworkX is about to call, and with which argument; not used.

    Returns
    -------
    Graph

    Raises
    ------
    TypeError
        If `G` is no graph of NetworkX, or is not made of mappings of mappings.
    RuntimeError
        If `G` was seen to change meanwhile, or a neighbour is none of its nodes.

    Examples
    --------
    >>> import networkx as nx
    >>> from matchwood.networkx_backend import convert_from_nx
    >>> G = convert_from_nx(nx.Graph([("a", "b"), ("b", "c")]))
    >>> G
    <matchwood Graph: 3 nodes, 2 edges>
    >>> G.nodes, G.indices.tolist()
    (('a', 'b', 'c'), [1, 0, 2, 1])
    """
    import networkx as nx

    if isinstance(G, Graph):
        return G
    if not isinstance(G, nx.Graph):
        kind = type(G).__name__
        raise TypeError(f"convert_from_nx: G must be a graph of NetworkX, got {kind}")
    if own := own_access(type(G)):
        kind = type(G).__name__
        raise TypeError(
            f"convert_from_nx: G must read as its dictionaries, {kind} has its own {own}"
        )
    for name, given in (("edge_attrs", edge_attrs), ("node_attrs", node_attrs)):
        if given is not None and not isinstance(given, dict):
            raise TypeError(f"convert_from_nx: {name} must be None or a dict, got {given!r}")
    columns = tuple(edge_attrs or ())
    wanted = Wanted(
        columns,
        # to look up another name could run code of its own
        edge_data=preserve_all_attrs or preserve_edge_attrs or not set(map(type, columns)) <= {str},
        node_data=preserve_all_attrs or preserve_node_attrs or bool(node_attrs),
        attributes=preserve_all_attrs or preserve_graph_attrs,
    )
    if wanted.edge_data:
        wanted = wanted._replace(columns=())
    return Graph(
        read(G, wanted),
        directed=G.is_directed(),
        multigraph=G.is_multigraph(),
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
    """The NetworkX class that `G` was converted from."""
    import networkx as nx

    if G.nx_class is not None:
        return G.nx_class
    if G.is_directed():
        return nx.MultiDiGraph if G.is_multigraph() else nx.DiGraph
    return nx.MultiGraph if G.is_multigraph() else nx.Graph
