"""Breadth-first searches, in the order in which NetworkX visits the nodes.

NetworkX looks at neighbours in the order in which edges were added, and shows it: in the order of
edges, layers and dictionaries, and in the parents.  matchwood's own search has other parents (the
smallest), so the order is found by a queue of its own, in compiled code (cpu.py).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood.networkx_backend.graph import Graph
from matchwood.networkx_backend.info import networkx_version
from matchwood.networkx_backend.names import dispatched


class Search(NamedTuple):
    """Vertices in the order of the queue; layer d is ``order[ends[d - 1] : ends[d]]``."""

    order: Any
    parent: Any
    ends: list[int]


def _search(pattern: Any, sources: list[int], limit: float | None) -> Search:
    from matchwood.engines.cpu import crew
    from matchwood.networkx_backend.algorithms import cpu

    indptr, indices = pattern
    n, kind = indptr.size - 1, indices.dtype
    order, parent = np.empty(n, kind), np.full(n, -1, kind)
    layers = np.zeros(n + 2, np.int64)
    order[: len(sources)] = sources
    parent[sources] = sources
    layers[0] = len(sources)
    depth = n if limit is None or limit >= n else max(0, math.ceil(limit))
    crew(1, work=indices.size + n).run(
        cpu.queue_order, indptr, indices, order, parent, layers, depth
    )
    ends = layers[: layers[-1]].tolist()
    return Search(order[: ends[-1]], parent, ends)


def _number(G: Graph, node: Any, message: str, error: str = "NetworkXError") -> int:
    """The vertex of a node; that error of NetworkX where there is none."""
    import networkx as nx

    v = G.number_of(node)
    if v is None:
        raise getattr(nx, error)(message)
    return v


def _from_node(G: Graph, source: Any, limit: float | None) -> Search:
    kind = "digraph" if G.is_directed() else "graph"
    v = _number(G, source, f"The node {source} is not in the {kind}.")
    return _search((G.indptr, G.indices), [v], limit)


def _parents_and_children(G: Graph, source: Any, limit: float | None) -> tuple[list[Any], ...]:
    found = _from_node(G, source, limit)
    children = found.order[1:]
    return G.names(found.parent[children]), G.names(children)


@dispatched
def bfs_edges(
    G: Graph,
    source: Any,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: Any = None,
) -> Iterator[tuple[Any, Any]]:
    yield from zip(*_parents_and_children(G, source, depth_limit), strict=True)


@dispatched
def generic_bfs_edges(
    G: Graph, source: Any, neighbors: Any = None, depth_limit: float | None = None
) -> Iterator[tuple[Any, Any]]:
    yield from zip(*_parents_and_children(G, source, depth_limit), strict=True)


@dispatched
def bfs_predecessors(
    G: Graph, source: Any, depth_limit: float | None = None, sort_neighbors: Any = None
) -> Iterator[tuple[Any, Any]]:
    if networkx_version() >= (3, 7):
        warnings.warn(
            "\n\nbfs_predecessors is deprecated and will be removed in NetworkX 3.9\n"
            "Use ``(t, s) for (s, t) in bfs_edges`` instead",
            DeprecationWarning,
            stacklevel=2,
        )
    parents, children = _parents_and_children(G, source, depth_limit)
    yield from zip(children, parents, strict=True)


@dispatched
def bfs_successors(
    G: Graph, source: Any, depth_limit: float | None = None, sort_neighbors: Any = None
) -> Iterator[tuple[Any, list[Any]]]:
    found = _from_node(G, source, depth_limit)
    children = found.order[1:]
    if children.size == 0:
        yield source, []
        return
    parents = found.parent[children]
    starts = np.flatnonzero(np.r_[True, parents[1:] != parents[:-1]])
    ends = [*starts[1:].tolist(), children.size]
    names = G.names(children)
    for parent, start, end in zip(G.names(parents[starts]), starts.tolist(), ends, strict=True):
        if parent == parent:
            yield parent, names[start:end]
            continue
        if start == 0:  # NetworkX compares parents, and NaN is not even equal to itself
            yield source, []
        for child in names[start:end]:
            yield parent, [child]


@dispatched
def bfs_tree(
    G: Graph,
    source: Any,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: Any = None,
) -> Any:
    import networkx as nx

    T = nx.DiGraph()
    parents, children = _parents_and_children(G, source, depth_limit)
    names = [source, *children]
    T._node.update((node, {}) for node in names)
    successors, predecessors = T._succ, T._pred
    successors.update((node, {}) for node in names)
    predecessors.update((node, {}) for node in names)
    for u, v in zip(parents, children, strict=True):
        successors[u][v] = predecessors[v][u] = {}
    return T


@dispatched
def bfs_layers(G: Graph, sources: Any) -> Iterator[list[Any]]:
    if sources in G:
        sources = [sources]
    # NetworkX's own order of the first layer
    first = list(set(sources) if networkx_version() >= (3, 5) else dict.fromkeys(sources))
    numbers = [_number(G, v, f"The node {v} is not in the graph.") for v in first]
    if not first:
        return
    found = _search((G.indptr, G.indices), numbers, None)
    names = G.names(found.order)
    start = 0
    for end in found.ends:
        yield names[start:end]
        start = end


@dispatched
def descendants_at_distance(G: Graph, source: Any, distance: Any) -> set[Any]:
    if source not in G:
        import networkx as nx

        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    found = _from_node(G, source, distance if distance == distance else None)
    layers = range(len(found.ends))
    if distance not in layers:
        return set()
    d = layers.index(distance)
    start = found.ends[d - 1] if d else 0
    return set(G.names(found.order[start : found.ends[d]]))


def _lengths(G: Graph, pattern: Any, v: int, cutoff: float | None) -> dict[Any, int]:
    found = _search(pattern, [v], cutoff)
    levels = np.repeat(np.arange(len(found.ends)), np.diff([0, *found.ends]))
    return dict(zip(G.names(found.order), levels.tolist(), strict=True))


@dispatched
def single_source_shortest_path_length(
    G: Graph, source: Any, cutoff: float | None = None
) -> dict[Any, int]:
    v = _number(G, source, f"Source {source} is not in G", "NodeNotFound")
    return _lengths(G, (G.indptr, G.indices), v, cutoff)


@dispatched
def single_target_shortest_path_length(G: Graph, target: Any, cutoff: float | None = None) -> Any:
    v = _number(G, target, f"Target {target} is not in G", "NodeNotFound")
    found = _lengths(G, _backwards(G), v, cutoff)
    return found if networkx_version() >= (3, 5) else iter(found.items())


def _backwards(G: Graph) -> Any:
    """The pattern with every arc turned round."""
    if not G.is_directed():
        return G.indptr, G.indices
    return G.structure.transposed_pattern()[:2]


@dispatched
def single_source_shortest_path(
    G: Graph, source: Any, cutoff: float | None = None
) -> dict[Any, list[Any]]:
    v = _number(G, source, f"Source {source} not in G", "NodeNotFound")
    found = _search((G.indptr, G.indices), [v], cutoff)
    rest = found.order[1:]
    paths = {source: [source]}
    for parent, node in zip(G.names(found.parent[rest]), G.names(rest), strict=True):
        paths[node] = [*paths[parent], node]
    return paths


@dispatched
def descendants(G: Graph, source: Any) -> set[Any]:
    return set(G.names(_from_node(G, source, None).order[1:]))


@dispatched
def ancestors(G: Graph, source: Any) -> set[Any]:
    v = G.number_of(source)
    if v is None:
        return descendants(G, source)  # which says that there is no such node
    return set(G.names(_search(_backwards(G), [v], None).order[1:]))


@dispatched
def has_path(G: Graph, source: Any, target: Any) -> bool:
    for role, node in (("Source", source), ("Target", target)):
        end = _number(G, node, f"{role} {node} is not in G", "NodeNotFound")
    return bool(_from_node(G, source, None).parent[end] >= 0)
