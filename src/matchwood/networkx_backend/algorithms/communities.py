"""Communities and bisections of undirected graphs, and modularity."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from matchwood import communities, partitioning
from matchwood.communities.louvain_leiden import partitions
from matchwood.gate import graph as csr
from matchwood.networkx_backend.algorithms.spanning import as_numbers
from matchwood.networkx_backend.graph import Graph
from matchwood.networkx_backend.info import how
from matchwood.networkx_backend.names import dispatched

ITERATIONS = 2  # iterations of Leiden, the default of `matchwood.leiden`


def _weighted(G: Graph, weight: Any) -> csr.Graph:
    """The graph with that weight; parallel edges are added up, as NetworkX does."""

    def find() -> csr.Graph:
        edges = G.edges
        values = np.ones(edges.u.size) if weight is None else as_numbers(G.edge_values(weight))
        # on this error NetworkX tries another backend, or its own function
        if values is None:
            raise NotImplementedError("weights must be integers or floats")
        values = values.astype(np.float64)
        if not np.isfinite(values).all() or (values < 0).any():
            raise NotImplementedError("weights must be finite and not negative")
        # from the smaller to the larger end: the matrix is a triangle, whose sums are the weights
        ends = np.minimum(edges.u, edges.v), np.maximum(edges.u, edges.v)
        return csr.graph((len(G), np.stack(ends, axis=1), values), duplicates="sum")

    return G.keep(("weighted", weight), find)


def _seed(seed: Any) -> int:
    import networkx as nx

    return int(nx.utils.create_py_random_state(seed).randrange(1 << 31))


def _louvain(G: Graph, weight: Any, resolution: float, threshold: float, seed: Any) -> Any:
    """(count, labels) of each level, while modularity grows by more than the threshold."""
    graph = _weighted(G, weight)
    best = communities.modularity(graph, np.arange(len(G)), resolution=resolution, **how())
    options = {"resolution": resolution, "rng": _seed(seed), **how()}
    for count, labels in partitions(graph, **options):
        yield count, labels
        quality = communities.modularity(graph, labels, resolution=resolution, **how())
        if quality - best <= threshold:
            return
        best = quality


@dispatched
def louvain_partitions(
    G: Graph,
    weight: Any = "weight",
    resolution: float = 1,
    threshold: float = 0.0000001,
    seed: Any = None,
) -> Iterator[list[set[Any]]]:
    for found in _louvain(G, weight, resolution, threshold, seed):
        yield list(G.sets(*found))


@dispatched
def louvain_communities(
    G: Graph,
    weight: Any = "weight",
    resolution: float = 1,
    threshold: float = 0.0000001,
    max_level: int | None = None,
    seed: Any = None,
) -> list[set[Any]]:
    _at_least_one(max_level)
    return list(G.sets(*_last(_louvain(G, weight, resolution, threshold, seed), max_level)))


def _last(partitions: Iterator[Any], max_level: int | None) -> Any:
    """The last one, or number `max_level` where there are more; there is always one."""
    *_, found = islice(partitions, max_level)
    return found


def _at_least_one(max_level: int | None) -> None:
    if max_level is not None and max_level <= 0:
        raise ValueError("max_level argument must be a positive integer or None")


def _leiden(G: Graph, weight: Any, resolution: float, seed: Any) -> Iterator[Any]:
    """Communities after each iteration, while modularity grows."""
    graph = _weighted(G, weight)
    number, best = _seed(seed), -np.inf
    for iterations in range(1, ITERATIONS + 1):
        options = {"resolution": resolution, "iterations": iterations, "rng": number, **how()}
        found = communities.leiden(graph, **options)
        if found.modularity <= best:
            return
        best = found.modularity
        yield found


@dispatched
def leiden_partitions(
    G: Graph, weight: Any = "weight", resolution: float = 1, seed: Any = None
) -> Iterator[list[set[Any]]]:
    for found in _leiden(G, weight, resolution, seed):
        yield list(G.sets(*found))


@dispatched
def leiden_communities(
    G: Graph,
    weight: Any = "weight",
    resolution: float = 1,
    max_level: int | None = None,
    seed: Any = None,
) -> list[set[Any]]:
    _at_least_one(max_level)
    return list(G.sets(*_last(_leiden(G, weight, resolution, seed), max_level)))


def _labels(G: Graph, weight: Any, seed: int) -> list[set[Any]]:
    found = communities.label_propagation(_weighted(G, weight), rng=seed, **how())
    return list(G.sets(*found))


@dispatched
def label_propagation_communities(G: Graph) -> list[set[Any]]:
    return _labels(G, None, 0)


@dispatched
def asyn_lpa_communities(G: Graph, weight: Any = None, seed: Any = None) -> Iterator[set[Any]]:
    yield from _labels(G, weight, _seed(seed))


@dispatched
def fast_label_propagation_communities(
    G: Graph, *, weight: Any = None, seed: Any = None
) -> Iterator[set[Any]]:
    yield from _labels(G, weight, _seed(seed))


@dispatched
def modularity(G: Graph, communities: Any, weight: Any = "weight", resolution: float = 1) -> float:
    graph = _weighted(G, weight)
    if not (graph.data > 0).any():
        raise NotImplementedError("NetworkX has an error of its own for graphs without weight")
    return float(_modularity(G, graph, list(communities), resolution))


def _modularity(G: Graph, graph: csr.Graph, sets: list[Any], resolution: float) -> float:
    """The modularity of a partition of the nodes; NetworkX's error where it is none."""
    labels = _labels_of(G, sets)
    return communities.modularity(graph, labels, resolution=resolution, **how())


def _labels_of(G: Graph, sets: list[Any]) -> Any:
    """The number of the set of each node; NetworkX's error where they are no partition."""
    from networkx.algorithms.community.quality import NotAPartition

    labels = np.full(len(G), -1, np.int64)
    for number, nodes in enumerate(sets):
        for node in set(nodes):
            v = G.number_of(node)
            if v is None or labels[v] >= 0:
                raise NotAPartition(G, sets)
            labels[v] = number
    if (labels < 0).any():
        raise NotAPartition(G, sets)
    return labels


@dispatched
def kernighan_lin_bisection(
    G: Graph, partition: Any = None, max_iter: int = 10, weight: Any = "weight", seed: Any = None
) -> tuple[set[Any], set[Any]]:
    """Another bisection: interface.py takes such calls only with the setting `other_bisections`."""
    graph, half = _weighted(G, weight), len(G) // 2
    options = {"imbalance": 0, "rng": _seed(seed), **how()}
    if partition is None:
        if half == 0:
            raise NotImplementedError("one of both parts is empty")
        shares = np.array([len(G) - half, half])
        labels = partitioning.partition(graph, 2, block_weights=shares, **options).labels
    else:
        from networkx import NetworkXError

        try:
            first, second = partition
        except (TypeError, ValueError) as error:
            raise NetworkXError("partition must be two sets") from error
        given = _labels_of(G, [second, first])
        shares = np.bincount(given, minlength=2)
        if not shares.all():
            raise NotImplementedError("one of both parts is empty")
        options["block_weights"] = shares
        labels = partitioning.refine_partition(graph, given, k=2, **options).labels
    first, second = G.sets(2, labels)
    return first, second
