"""From which size on the backend is faster than NetworkX, conversion included.

The constants of matchwood/networkx_backend/interface.py come from here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from bench import harness
from matchwood import EngineUnavailable

SIZES = (100, 300, 1_000, 3_000, 10_000)  # nodes; five times as many edges
CALLS = {
    "connected_components": lambda nx, G, k: list(nx.connected_components(G, **k)),
    "bfs_edges": lambda nx, G, k: list(nx.bfs_edges(G, 0, **k)),
    "minimum_spanning_edges": lambda nx, G, k: list(nx.minimum_spanning_edges(G, **k)),
    "maximal_matching": lambda nx, G, k: nx.maximal_matching(G, **k),
    "maximal_independent_set": lambda nx, G, k: nx.maximal_independent_set(G, seed=1, **k),
}


def run() -> list[harness.Result]:
    nx = harness.peer("networkx")
    if nx is None:
        raise EngineUnavailable("networkx is not installed")
    from matchwood.networkx_backend import register

    register()
    warnings.filterwarnings("ignore", message="Note: conversions to backend graphs")
    results = []
    for name, call in CALLS.items():
        for n in SIZES:
            G = nx.gnm_random_graph(n, 5 * n, seed=1)

            def each_time(G: Any = G, call: Callable[..., Any] = call) -> Any:
                G.__networkx_cache__.clear()
                return call(nx, G, {"backend": "matchwood"})

            results.append(
                harness.compare(
                    f"{name}, {n} nodes, {5 * n} edges",
                    {
                        "networkx": lambda G=G, call=call: call(nx, G, {"backend": "networkx"}),
                        "matchwood, converted each time": each_time,
                        "matchwood, again": lambda G=G, call=call: call(
                            nx, G, {"backend": "matchwood"}
                        ),
                    },
                    baseline="networkx",
                )
            )
    return results


if __name__ == "__main__":
    harness.main(run)
