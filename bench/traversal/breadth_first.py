"""Breadth-first search on CPU threads against SciPy, NetworKit and igraph."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csgraph

import matchwood
from bench import harness
from bench.harness import peers

# times as fast as SciPy, at least
BARS = {"R-MAT 18": 9.0, "grid 1000^2": 1.3, "mesh 64^3": 1.1, "Delaunay 300k": 1.6}


def run() -> list[harness.Result]:
    results = []
    for name, A in harness.standard_graphs().items():
        G = matchwood.graph(A)
        source = int(np.flatnonzero(np.diff(A.indptr))[0])

        def verify(who: str, answer: Any, G: Any = G, source: int = source) -> None:
            if who.startswith("matchwood"):
                matchwood.check.check_bfs(G, source, answer)

        functions = {
            "scipy": lambda A=A, s=source: csgraph.breadth_first_order(A, s),
            "matchwood": lambda G=G, s=source: matchwood.bfs(G, s),
            "matchwood, 1 thread": lambda G=G, s=source: matchwood.bfs(G, s, threads=1),
            "matchwood, raw matrix": lambda A=A, s=source: matchwood.bfs(A, s),
        }
        kit = peers.networkit_graph(A)
        if kit is not None:
            import networkit

            functions["networkit"] = lambda kit=kit, s=source: networkit.distance.BFS(kit, s).run()
        tree = peers.igraph_graph(A)
        if tree is not None:
            functions["igraph"] = lambda tree=tree, s=source: tree.bfs(s)
        bars = {"matchwood": BARS[name], "matchwood, raw matrix": 1.0}
        results.append(
            harness.compare(f"breadth-first search, {name}", functions, verify=verify, bars=bars)
        )
    return results


if __name__ == "__main__":
    harness.main(run)
