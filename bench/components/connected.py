"""Connected components on CPU threads against SciPy, NetworKit and igraph."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csgraph

import matchwood
from bench import harness
from bench.harness import peers

# times as fast as SciPy, at least
BARS = {"R-MAT 18": 25.0, "grid 1000^2": 4.5, "mesh 64^3": 18.0, "Delaunay 300k": 14.0}


def run() -> list[harness.Result]:
    results = []
    for name, A in harness.standard_graphs().items():
        G = matchwood.graph(A)

        def verify(who: str, answer: Any, G: Any = G) -> None:
            if who.startswith("matchwood"):
                matchwood.check.check_connected_components(G, answer)

        functions = {
            "scipy": lambda A=A: csgraph.connected_components(A),
            "scipy, directed=False": lambda A=A: csgraph.connected_components(A, directed=False),
            "matchwood": lambda G=G: matchwood.connected_components(G),
            "matchwood, 1 thread": lambda G=G: matchwood.connected_components(G, threads=1),
            "matchwood, raw matrix": lambda A=A: matchwood.connected_components(A),
            "matchwood, fastsv": lambda G=G: matchwood.connected_components(G, method="fastsv"),
            "matchwood, bfs": lambda G=G: matchwood.connected_components(G, method="bfs"),
        }
        kit = peers.networkit_graph(A)
        if kit is not None:
            import networkit

            method = networkit.components.ParallelConnectedComponents
            functions["networkit"] = lambda kit=kit, method=method: method(kit).run()
        tree = peers.igraph_graph(A)
        if tree is not None:
            functions["igraph"] = lambda tree=tree: tree.connected_components()
        bars = {"matchwood": BARS[name], "matchwood, raw matrix": BARS[name] / 2}
        if name == "R-MAT 18":
            bars["matchwood, fastsv"] = 5.0
        results.append(
            harness.compare(f"connected components, {name}", functions, verify=verify, bars=bars)
        )
    return results


if __name__ == "__main__":
    harness.main(run)
