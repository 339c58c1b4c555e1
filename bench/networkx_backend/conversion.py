"""What it costs to read a NetworkX graph: in memory, in Python, and what a search needs."""

from __future__ import annotations

from typing import Any

from bench import harness
from matchwood import EngineUnavailable

NODES, EDGES = 100_000, 500_000


def run() -> list[harness.Result]:
    nx = harness.peer("networkx")
    if nx is None:
        raise EngineUnavailable("networkx is not installed")
    from matchwood.networkx_backend import reading

    G = nx.gnm_random_graph(NODES, EDGES, seed=1)
    shuffled = nx.Graph(G.edges)
    graphs = {
        "numbers in order": G,
        "numbers": shuffled,
        "names": nx.relabel_nodes(G, {i: f"node {i}" for i in G}),
        "pairs": nx.relabel_nodes(G, {i: (i, 2 * i) for i in G}),
    }
    results = []
    for name, graph in graphs.items():
        adjacency = graph._adj

        def verify(who: str, rows: Any, adjacency: Any = adjacency) -> None:
            plain = reading.read_rows(adjacency, quick=False)
            if who != "a search in networkx":
                assert (plain.indices == rows.indices).all()

        results.append(
            harness.compare(
                f"reading {NODES} nodes and {EDGES} edges, nodes are {name}",
                {
                    "a search in networkx": lambda graph=graph: list(
                        nx.connected_components(graph, backend="networkx")
                    ),
                    "in Python": lambda rows=adjacency: reading.read_rows(rows, quick=False),
                    "in memory": lambda rows=adjacency: reading.read_rows(rows),
                },
                verify=verify,
                baseline="a search in networkx",
            )
        )
    return results


if __name__ == "__main__":
    harness.main(run)
