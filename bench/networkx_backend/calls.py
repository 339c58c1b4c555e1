"""NetworkX's functions by themselves and through our backend: 100,000 nodes, 500,000 edges.

"converted each time" begins with the NetworkX graph, as the first call of a program does;
"converted" has the conversion at hand, but no answer that an earlier call found; "again" is a
second call on the same graph, which has both.  All run as programs do, with Python's garbage
collector on.
"""

from __future__ import annotations

import functools
import gc
import random
import warnings
from collections.abc import Callable
from typing import Any

from bench import harness
from matchwood import EngineUnavailable

NODES, EDGES = 100_000, 500_000
FIRST, AGAIN = "matchwood, converted each time", "matchwood, again"
# times as fast as NetworkX alone, at least
BARS = {
    "connected_components": {AGAIN: 20.0},
    "minimum_spanning_tree": {FIRST: 2.0, AGAIN: 10.0},
    "maximal_independent_set": {FIRST: 10.0, AGAIN: 50.0},
}
KEPT = ("structure", "edges", "sources", "names", "places", "entries")  # of conversions


def run(words: tuple[str, ...] = ()) -> list[harness.Result]:
    nx = harness.peer("networkx")
    if nx is None:
        raise EngineUnavailable("networkx is not installed")
    from matchwood.networkx_backend import register

    register()
    warnings.filterwarnings("ignore", message="Note: conversions to backend graphs")
    G = nx.gnm_random_graph(NODES, EDGES, seed=1)
    rnd = random.Random(1)
    for _, _, data in G.edges(data=True):
        data["weight"] = rnd.random()
    D = nx.gnm_random_graph(NODES, EDGES, seed=1, directed=True)
    names = [f"node {i}" for i in G]
    H = nx.relabel_nodes(G, dict(zip(G, names, strict=True)))
    calls: dict[str, tuple[Any, Callable[..., Any]]] = {
        "connected_components": (G, lambda **k: list(nx.connected_components(G, **k))),
        "connected_components, names": (H, lambda **k: list(nx.connected_components(H, **k))),
        "minimum_spanning_edges": (
            G,
            lambda **k: list(nx.minimum_spanning_edges(G, data=False, **k)),
        ),
        "minimum_spanning_tree": (G, lambda **k: nx.minimum_spanning_tree(G, **k)),
        "maximal_matching": (G, lambda **k: nx.maximal_matching(G, **k)),
        "bfs_edges": (G, lambda **k: list(nx.bfs_edges(G, 0, **k))),
        "single_source_shortest_path_length": (
            G,
            lambda **k: nx.single_source_shortest_path_length(G, 0, **k),
        ),
        "weakly_connected_components": (
            D,
            lambda **k: list(nx.weakly_connected_components(D, **k)),
        ),
        "strongly_connected_components": (
            D,
            lambda **k: list(nx.strongly_connected_components(D, **k)),
        ),
        "condensation": (D, lambda **k: nx.condensation(D, **k)),
        "maximal_independent_set": (G, lambda **k: nx.maximal_independent_set(G, seed=1, **k)),
    }
    return [
        _compare(name, graph, call)
        for name, (graph, call) in calls.items()
        if not words or any(word in name for word in words)
    ]


def _collecting(function: Callable[[], Any]) -> Any:
    """Run with the garbage collector on, which the harness turns off."""
    gc.enable()
    try:
        return function()
    finally:
        gc.disable()


def _compare(name: str, graph: Any, call: Callable[..., Any]) -> harness.Result:
    def each_time() -> Any:
        graph.__networkx_cache__.clear()
        return call(backend="matchwood")

    def converted() -> Any:
        for kept in graph.__networkx_cache__["backends"]["matchwood"].values():
            for key in [key for key in kept._kept if key not in KEPT and key[0] != "values"]:
                del kept._kept[key]
        return call(backend="matchwood")

    functions = {
        "networkx": lambda: call(backend="networkx"),
        FIRST: each_time,
        "matchwood, converted": converted,
        AGAIN: lambda: call(backend="matchwood"),
    }
    return harness.compare(
        f"{name}, {NODES} nodes, {EDGES} edges",
        {who: functools.partial(_collecting, function) for who, function in functions.items()},
        baseline="networkx",
        rounds=1 if name == "maximal_independent_set" else harness.ROUNDS,  # half a minute each
        bars=BARS.get(name),
    )


if __name__ == "__main__":
    harness.main(run)
