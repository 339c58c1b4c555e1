"""Minimum spanning forests on CPU threads against SciPy, NetworKit and igraph; random weights.

The bar, five times the fastest of the three, is shown as a ratio to SciPy like the others; the
last line of each comparison says what it is to the fastest.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

import matchwood
from bench import harness
from bench.harness import peers

BAR = 5.0  # times the fastest peer, on two threads
PEERS = ("scipy", "networkit", "igraph")


def peer_functions(A: sp.csr_array) -> dict[str, Callable[[], Any]]:
    """The peers that are installed, on graphs of their own."""
    functions: dict[str, Callable[[], Any]] = {
        "scipy": lambda: csgraph.minimum_spanning_tree(A),
    }
    kit = peers.networkit_graph(A, weighted=True)
    if kit is not None:
        import networkit

        functions["networkit"] = lambda: networkit.graph.KruskalMSF(kit).run()
    tree = peers.igraph_graph(A)
    if tree is not None:
        weights = np.asarray(sp.triu(A, k=1).tocoo().data, np.float64).tolist()
        functions["igraph"] = lambda: tree.spanning_tree(weights=weights, return_tree=False)
    return functions


def run() -> list[harness.Result]:
    results = []
    for name, pattern in harness.standard_graphs().items():
        A = matchwood.generators.random_weights(pattern)
        G = matchwood.graph(A)

        def verify(who: str, answer: Any, G: Any = G) -> None:
            if who.startswith("matchwood"):
                matchwood.check.check_spanning_forest(G, answer)

        def ours(method: str, threads: int | None = None, G: Any = G) -> Callable[[], Any]:
            return lambda: matchwood.minimum_spanning_forest(G, method=method, threads=threads)

        functions = {
            **peer_functions(A),
            "matchwood": ours("auto"),
            "matchwood, 1 thread": ours("auto", 1),
            "matchwood, raw matrix": lambda A=A: matchwood.minimum_spanning_forest(A),
            "matchwood, filter_kruskal": ours("filter_kruskal"),
            "matchwood, kruskal": ours("kruskal"),
            "matchwood, awerbuch_shiloach": ours("awerbuch_shiloach"),
        }
        result = harness.compare(
            f"minimum spanning forest, {name}", functions, verify=verify, bars={"matchwood": BAR}
        )
        rows = result["rows"]
        fastest = min((rows[peer]["median"], peer) for peer in PEERS if peer in rows)
        ratio = fastest[0] / rows["matchwood"]["median"]
        result["to_fastest_peer"] = {"peer": fastest[1], "ratio": ratio, "bar": BAR}
        result["bytes_per_edge"] = memory(G)
        print(
            f"{ratio:.1f} times as fast as {fastest[1]}, the fastest peer (bar {BAR}); "
            + ", ".join(f"{who} {each:.1f}" for who, each in result["bytes_per_edge"].items())
            + " bytes an edge beside the graph and the forest"
        )
        results.append(result)
    return results


def memory(G: Any) -> dict[str, float]:
    """Peak of what a method asks for beside the graph, in bytes for each edge.

    Boruvka asks for a list of all edges and touches only as much of it as the list grows.
    """
    found = {}
    for method in ("boruvka", "awerbuch_shiloach", "kruskal", "filter_kruskal"):
        tracemalloc.start()
        answer = matchwood.minimum_spanning_forest(G, method=method)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        kept = answer.edges.nbytes + answer.weights.nbytes
        found[method] = (peak - kept) / (G.nnz / 2)
    return found


if __name__ == "__main__":
    harness.main(run)
