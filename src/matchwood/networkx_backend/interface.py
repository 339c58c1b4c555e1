"""The object that NetworkX loads: conversions, rules, and one function for each name.

The functions are those that algorithms/ marks as dispatched.  They take the backend's `Graph` and
otherwise NetworkX's arguments; its documentation describes them, and info.py adds what differs.
"""

from __future__ import annotations

import functools
import inspect
from itertools import islice
from typing import Any

from matchwood.gate.networkx import own_access
from matchwood.networkx_backend.algorithms import (
    communities,
    components,
    ranking,
    sets,
    spanning,
    traversal,
)
from matchwood.networkx_backend.convert import convert_from_nx, convert_to_nx
from matchwood.networkx_backend.info import FUNCTIONS, settings
from matchwood.networkx_backend.names import DISPATCHED
from matchwood.networkx_backend.testing import on_start_tests

FAMILIES = (communities, components, ranking, sets, spanning, traversal)  # they fill DISPATCHED

# Which calls this backend takes: `can_run` by the arguments, `should_run` by the size.

# NetworkX answers these from a part of the graph, before a conversion has seen all of it.
PARTIAL = frozenset({"has_path", "descendants_at_distance"})
# The least number of nodes and edges together for which another call is taken; below it the gain is
# smaller than the cost of loading compiled code, once in a process.
# bench/networkx_backend/thresholds.py, 2 cores.
LEAST = 20_000
LEAST_WHERE_NETWORKX_IS_SLOW = 6_000
SLOW = frozenset({
    "louvain_communities", "louvain_partitions", "label_propagation_communities",
    "asyn_lpa_communities", "maximal_independent_set", "max_weight_matching",
    "minimum_spanning_edges", "maximum_spanning_edges", "minimum_spanning_tree",
    "maximum_spanning_tree",
})  # fmt: skip
LEAST_CONVERTED = 3_000
SAMPLE = 64  # rows from which the number of edges is estimated; NetworkX counts them too slowly


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """True, or the reason why not."""
    if name not in FUNCTIONS:
        return "not implemented"
    try:
        given = _signature(name).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    given.apply_defaults()
    asked = given.arguments
    G = asked["G"]
    if own := own_access(type(G)):
        return f"its class has its own {own}"
    if asked.get("sort_neighbors") is not None:
        return "neighbours are visited in the order of the graph"
    if asked.get("neighbors") is not None:
        return "neighbours are those of the graph"
    if asked.get("reverse") and G.is_directed():
        return "the order of predecessors is not kept"
    if name == "kosaraju_strongly_connected_components" and asked["source"] is not None:
        return "components of the whole graph"
    if name == "has_path" and (asked["source"] is None or asked["target"] is None):
        return "None stands for all nodes, which is no path"
    if name.endswith(("spanning_edges", "spanning_tree")):
        if asked["algorithm"] != "kruskal":
            return "edges are chosen as Kruskal's algorithm does"
        if G.is_directed():
            return "spanning trees are of undirected graphs"
    if DISPATCHED[name].__module__ == communities.__name__ and G.is_directed():
        return "communities are of undirected graphs"
    if name == "hopcroft_karp_matching" and G.is_directed():
        return "matchings are of undirected graphs"
    if name == "kernighan_lin_bisection":
        if not settings().other_bisections:
            return "another bisection; allow it by nx.config.backends.matchwood.other_bisections"
        if asked["max_iter"] != 10 or callable(asked["weight"]):
            return "rounds are NetworkX's own, and so are edges hidden by a function"
    if name == "max_weight_matching":
        if not settings().approximate_matching:
            return "approximate; allow it by nx.config.backends.matchwood.approximate_matching"
        if asked["maxcardinality"]:
            return "maxcardinality needs the exact algorithm"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """True, or the reason why NetworkX is the better choice."""
    if settings().small_graphs or name.startswith("leiden_"):  # NetworkX has no Leiden itself
        return True
    G = args[0] if args else kwargs["G"]
    if _is_converted(G):
        least = LEAST_CONVERTED
    elif name in PARTIAL:
        return "NetworkX looks at a part of the graph, and this one is not converted"
    else:
        least = LEAST_WHERE_NETWORKX_IS_SLOW if name in SLOW else LEAST
    # a view counts its nodes one by one, and is slow in NetworkX itself
    adjacency = G._adj
    n = len(adjacency)
    if n >= least:
        return True
    rows = list(islice(adjacency.values(), SAMPLE))
    entries = sum(map(len, rows)) * n // max(1, len(rows))
    size = n + (entries if G.is_directed() else entries // 2)
    return True if size >= least else f"NetworkX is quick enough below {least} nodes and edges"


def _is_converted(G: Any) -> bool:
    cache = getattr(G, "__networkx_cache__", None) or {}
    return bool(cache.get("backends", {}).get("matchwood"))


@functools.cache
def _signature(name: str) -> inspect.Signature:
    return inspect.signature(DISPATCHED[name])


globals().update(DISPATCHED)
__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "on_start_tests", "should_run"]
__all__ += DISPATCHED  # type: ignore[arg-type]
