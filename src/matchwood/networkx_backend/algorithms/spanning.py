"""Minimum and maximum spanning trees: those that NetworkX's Kruskal finds, in its order.

NetworkX sorts the edges by weight, equal ones by their place in ``G.edges``.  Here every edge gets
its place in that order as its weight.  No two are equal then, so the forest is unique, whichever
way it is found; and the weights of the forest identify its edges.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import setitem
from typing import Any

import numpy as np

from matchwood.gate.networkx import collector_paused
from matchwood.networkx_backend.convert import empty_like, nx_class
from matchwood.networkx_backend.graph import Graph
from matchwood.networkx_backend.info import how
from matchwood.networkx_backend.names import dispatched
from matchwood.primitives.assemble import trusted_assemble as assemble
from matchwood.primitives.sort import radix_sort
from matchwood.spanning import minimum_spanning_forest

EXACT = {np.float32: 1 << 24, np.float64: 1 << 53}  # integers up to this are exact


def as_numbers(values: Any) -> Any | None:
    """Values as an int64 or float64 array; None where that would lose something."""
    try:
        array = np.array(values) if values else np.empty(0)
    except (ValueError, OverflowError):  # lists of several lengths, say
        return None
    if array.ndim != 1 or array.dtype.kind not in "bif" or array.dtype.itemsize > 8:
        return None
    if array.dtype.kind != "f":
        return array.astype(np.int64)
    array = array.astype(np.float64)
    large = np.abs(array) >= EXACT[np.float64]
    mixed = large.any() and any(isinstance(values[i], int) for i in np.flatnonzero(large))
    return None if mixed else array


def _kruskal_order(G: Graph, weight: Any, minimum: bool, ignore_nan: bool) -> Any:
    """The edges, by their numbers, in Kruskal's order."""
    values = G.edge_values(weight)
    weights = as_numbers(values)
    if weights is None:  # fractions, huge integers, whatever can be compared
        missing = np.zeros(len(values), bool)
        for i, value in enumerate(values):  # the first fault is the one that NetworkX names
            missing[i] = math.isnan(value)
            if missing[i] and not ignore_nan:
                break
    else:
        missing = np.isnan(weights) if weights.dtype.kind == "f" else np.zeros(weights.size, bool)
    if missing.any() and not ignore_nan:
        raise ValueError(f"NaN found as an edge weight. Edge {_edge(G, int(missing.argmax()))}")
    sound = np.flatnonzero(~missing)
    if weights is None:
        chosen = [values[i] for i in sound.tolist()]
        places = sorted(range(len(chosen)), key=chosen.__getitem__, reverse=not minimum)
        return sound[np.array(places, np.int64)]
    weights = weights[sound]
    if weights.size == 0 or weights.min() == weights.max():
        return sound
    if not minimum:  # equal ones still in their own order
        weights = ~weights if weights.dtype.kind == "i" else -weights
    if weights.dtype.kind == "f":
        weights += 0.0  # -0.0 is 0.0
    return sound[radix_sort(weights)[1]]


def _edge(G: Graph, i: int) -> tuple[Any, ...]:
    edges = G.edges
    keys = () if edges.keys is None else (edges.keys[i],)
    return (G.nodes[edges.u[i]], G.nodes[edges.v[i]], *keys, *G.edge_data([i]))


def _entries(G: Graph) -> tuple[Any, Any, Any]:
    """Both directions of every edge as CSR arrays, sorted, with the number of the edge."""
    edges, n = G.edges, len(G)
    numbers = np.arange(edges.u.size, dtype=_exact(edges.u.size))
    indptr, indices, number = assemble(n, n, edges.u, edges.v, numbers, symmetric=True, loops=False)
    return indptr, indices, number.astype(edges.u.dtype)


def _exact(count: int) -> Any:
    """The float type in which the integers up to `count` are exact; the smaller is the faster."""
    return np.float32 if count <= EXACT[np.float32] else np.float64


def _pattern(G: Graph, order: Any) -> tuple[Any, Any, Any]:
    """The graph as CSR arrays whose values are the places of its edges in the order."""
    edges, n = G.edges, len(G)
    kind = _exact(order.size)
    if order.size == edges.u.size and not G.is_multigraph():
        indptr, indices, number = G.keep("entries", lambda: _entries(G))
        rank = np.empty(order.size, kind)
        rank[order] = np.arange(order.size, dtype=kind)
        return indptr, indices, rank[number]
    # of parallel edges the first counts
    ends = edges.u[order], edges.v[order]
    places = np.arange(order.size, dtype=kind)
    return assemble(n, n, *ends, places, symmetric=True, loops=False, reduce="first")


def _forest(G: Graph, weight: Any, minimum: bool, ignore_nan: bool) -> Any:
    """The edges of the forest, by their numbers, in the order in which Kruskal takes them."""
    which = (weight, minimum, ignore_nan)

    def find() -> Any:
        order = _kruskal_order(G, *which)
        found = minimum_spanning_forest(_pattern(G, order), **how())
        return order[np.sort(found.weights).astype(np.int64)]

    return G.keep(("forest", *which), find)


def _spanning_edges(
    G: Graph, minimum: bool, weight: Any, keys: bool, data: Any, ignore_nan: bool, own: bool = True
) -> list[tuple[Any, ...]]:
    edges = G.edges
    chosen = _forest(G, weight, minimum, ignore_nan)
    columns = [G.names(edges.u[chosen]), G.names(edges.v[chosen])]
    if keys and edges.keys is not None:
        columns.append(list(map(edges.keys.__getitem__, chosen.tolist())))
    if data:
        columns.append(G.edge_data(chosen, own=own))
    return list(zip(*columns, strict=True))


@dispatched
def minimum_spanning_edges(
    G: Graph,
    algorithm: str = "kruskal",
    weight: Any = "weight",
    keys: bool = True,
    data: Any = True,
    ignore_nan: bool = False,
) -> Iterator[tuple[Any, ...]]:
    with collector_paused():
        found = _spanning_edges(G, True, weight, keys, data, ignore_nan)
    yield from found


@dispatched
def maximum_spanning_edges(
    G: Graph,
    algorithm: str = "kruskal",
    weight: Any = "weight",
    keys: bool = True,
    data: Any = True,
    ignore_nan: bool = False,
) -> Iterator[tuple[Any, ...]]:
    with collector_paused():
        found = _spanning_edges(G, False, weight, keys, data, ignore_nan)
    yield from found


@dispatched
def minimum_spanning_tree(
    G: Graph, weight: Any = "weight", algorithm: str = "kruskal", ignore_nan: bool = False
) -> Any:
    return _tree(G, True, weight, ignore_nan)


@dispatched
def maximum_spanning_tree(
    G: Graph, weight: Any = "weight", algorithm: str = "kruskal", ignore_nan: bool = False
) -> Any:
    return _tree(G, False, weight, ignore_nan)


def _tree(G: Graph, minimum: bool, weight: Any, ignore_nan: bool) -> Any:
    """A NetworkX graph of the edges and all nodes, with copies of their attributes."""
    import networkx as nx

    if nx_class(G) is not nx.Graph:
        T = empty_like(G)
        T.add_edges_from(_spanning_edges(G, minimum, weight, True, True, ignore_nan, own=False))
        return T
    chosen = _forest(G, weight, minimum, ignore_nan)
    with collector_paused():
        # what add_nodes_from and add_edges_from would do, without asking each time what is there
        T = nx.Graph()
        T.graph.update(G.graph)
        if G.node_data is None:
            T._node.update(zip(G.nodes, [{} for _ in G.nodes], strict=True))
        else:
            T._node.update(zip(G.node_data, map(dict.copy, G.node_data.values()), strict=True))
        ends = G.edges.u[chosen], G.edges.v[chosen]
        rows = joined_rows(G.nodes, *ends, G.edge_data(chosen))
        T._adj.update(zip(G.nodes, rows, strict=True))
    return T


def joined_rows(
    names: Sequence[Any], u: Any, v: Any, data: list[dict[Any, Any]]
) -> list[dict[Any, Any]]:
    """The row of each node in an undirected adjacency with these edges, in their order.

    `u` and `v` are places in `names`.  Both ends of an edge share its dictionary.
    """
    rows: list[dict[Any, Any]] = [{} for _ in names]
    ends, others = (np.stack(pair, axis=1).ravel().tolist() for pair in ((u, v), (v, u)))
    twice = chain.from_iterable(zip(data, data, strict=True))
    entered = map(setitem, map(rows.__getitem__, ends), map(names.__getitem__, others), twice)
    deque(entered, maxlen=0)
    return rows
