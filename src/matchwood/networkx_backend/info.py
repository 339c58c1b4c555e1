"""The description of this backend, read when NetworkX is imported: so it imports nothing heavy."""

from __future__ import annotations

import sys
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

SUMMARY = (
    "Components, communities, spanning trees, matchings, independent sets, PageRank and searches "
    "on all cores"
)

DEFAULTS: dict[str, Any] = {
    "threads": None,  # CPU threads of a call; None takes MATCHWOOD_NUM_THREADS or all CPUs
    "engine": None,  # "gpu" does the work there; the graphs themselves stay in memory
    "approximate_matching": False,  # may max_weight_matching be answered with a lighter one?
    "other_bisections": False,  # may kernighan_lin_bisection be answered by `partition`?
    "small_graphs": False,  # run also where NetworkX itself is quicker
}

_SAME_ORDER = "The same edges, in the order that NetworkX gives them."
_SETS = "Components come in NetworkX's order: by their first node."
_KRUSKAL = (
    "Only ``algorithm='kruskal'``: the edges are those that NetworkX's Kruskal takes, also where "
    "weights are equal, and in its order."
)
_NO_SORT = "``sort_neighbors`` is left to NetworkX."

_COMMUNITIES = (
    "Other communities than NetworkX finds for the same seed, as good on most graphs, and the same "
    "ones at every run and with any number of threads."
)
_UNDIRECTED = (
    "Of undirected graphs with weights that are finite and not negative; others are left to "
    "NetworkX."
)

FUNCTIONS: dict[str, dict[str, Any]] = {
    "connected_components": {"additional_docs": _SETS},
    "number_connected_components": {},
    "is_connected": {},
    "node_connected_component": {},
    "weakly_connected_components": {"additional_docs": _SETS},
    "number_weakly_connected_components": {},
    "is_weakly_connected": {},
    "strongly_connected_components": {
        "additional_docs": "Components come in reverse topological order, as NetworkX's do; "
        "where that leaves a choice it may be another one."
    },
    "kosaraju_strongly_connected_components": {
        "additional_docs": "As `strongly_connected_components`.  ``source`` is left to NetworkX."
    },
    "number_strongly_connected_components": {},
    "is_strongly_connected": {},
    "condensation": {
        "additional_docs": "Without ``scc``, components are numbered in reverse topological "
        "order, as NetworkX does; where that leaves a choice it may be another one."
    },
    **{
        name: {"additional_docs": f"{_COMMUNITIES}  {_UNDIRECTED}"}
        for name in (
            "louvain_communities",
            "louvain_partitions",
            "leiden_communities",
            "leiden_partitions",
            "label_propagation_communities",
            "asyn_lpa_communities",
            "fast_label_propagation_communities",
        )
    },
    "modularity": {"additional_docs": _UNDIRECTED},
    "kernighan_lin_bisection": {
        "additional_docs": "Only when asked for, since it is another bisection, with as many nodes "
        "on both sides.  Set "
        "``nx.config.backends.matchwood.other_bisections = True``.  Other values of ``max_iter`` "
        f"and weights by a function are left to NetworkX.  {_UNDIRECTED}"
    },
    "maximal_independent_set": {
        "additional_docs": "Another set than NetworkX finds for the same seed, with more nodes "
        "on most graphs: those with few neighbours are tried first."
    },
    "maximal_matching": {"additional_docs": "Another matching than NetworkX's, also maximal."},
    "hopcroft_karp_matching": {
        "additional_docs": "As many edges as NetworkX finds, maybe others.  Also as "
        "``bipartite.maximum_matching``.  Directed graphs are left to NetworkX."
    },
    "max_weight_matching": {
        "additional_docs": "Only when asked for, since it is approximate: at least half the "
        "weight of the best, 0.82 to 0.94 on most graphs.  Set "
        "``nx.config.backends.matchwood.approximate_matching = True``.  "
        "``maxcardinality=True`` is left to NetworkX."
    },
    "minimum_spanning_edges": {"additional_docs": _KRUSKAL},
    "maximum_spanning_edges": {"additional_docs": _KRUSKAL},
    "minimum_spanning_tree": {"additional_docs": _KRUSKAL},
    "maximum_spanning_tree": {"additional_docs": _KRUSKAL},
    "pagerank": {
        "additional_docs": "The same numbers, to rounding.  Negative weights or probabilities and "
        "``alpha=1`` are left to NetworkX."
    },
    "bfs_edges": {
        "additional_docs": f"{_SAME_ORDER}  {_NO_SORT}  ``reverse`` of a directed graph too."
    },
    "bfs_tree": {
        "additional_docs": f"{_SAME_ORDER}  {_NO_SORT}  ``reverse`` of a directed graph too."
    },
    "bfs_predecessors": {"additional_docs": f"{_SAME_ORDER}  {_NO_SORT}"},
    "bfs_successors": {"additional_docs": f"{_SAME_ORDER}  {_NO_SORT}"},
    "bfs_layers": {"additional_docs": "The same lists, in the order that NetworkX gives them."},
    "generic_bfs_edges": {"additional_docs": f"{_SAME_ORDER}  ``neighbors`` is left to NetworkX."},
    "descendants_at_distance": {},
    "descendants": {},
    "ancestors": {},
    "has_path": {},
    "single_source_shortest_path": {"additional_docs": "The same paths, in the same order."},
    "single_source_shortest_path_length": {},
    "single_target_shortest_path_length": {},
}


def get_info() -> dict[str, Any]:
    """The description that NetworkX reads."""
    return {
        "backend_name": "matchwood",
        "project": "matchwood",
        "package": "matchwood",
        "short_summary": SUMMARY,
        "default_config": dict(DEFAULTS),
        "functions": {name: dict(entry) for name, entry in FUNCTIONS.items()},
    }


def settings() -> Any:
    """``nx.config.backends.matchwood``, or its defaults where the backend is not installed."""
    networkx = sys.modules["networkx"]
    found = getattr(networkx.config.backends, "matchwood", None)
    return SimpleNamespace(**DEFAULTS) if found is None else found


def how() -> dict[str, Any]:
    """Engine and threads, as the settings ask for them."""
    asked = settings()
    return {"engine": asked.engine, "threads": asked.threads}


def networkx_version() -> tuple[int, int]:
    """Major and minor version of the NetworkX at work; some answers differ between them."""
    major, minor = sys.modules["networkx"].__version__.split(".")[:2]
    return int(major), int("".join(takewhile(str.isdigit, minor)))
