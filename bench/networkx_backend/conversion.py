"""What it costs to read a NetworkX graph, and what a search in NetworkX needs."""

from __future__ import annotations

import random
from functools import partial

from bench import harness
from matchwood import EngineUnavailable

NODES, EDGES = 100_000, 500_000


def run() -> list[harness.Result]:
    nx = harness.peer("networkx")
    if nx is None:
        raise EngineUnavailable("networkx is not installed")
    from matchwood.networkx_backend import convert_from_nx

    G = nx.gnm_random_graph(NODES, EDGES, seed=1)
    rnd = random.Random(1)
    for _, _, data in G.edges(data=True):
        data["weight"] = rnd.random()
    graphs = {
        "numbers in order": G,
        "numbers": nx.Graph(G.edges(data=True)),
        "names": nx.relabel_nodes(G, {i: f"node {i}" for i in G}),
        "pairs": nx.relabel_nodes(G, {i: (i, 2 * i) for i in G}),
    }
    return [
        harness.compare(
            f"reading {NODES} nodes and {EDGES} edges, nodes are {name}",
            {
                "a search in networkx": lambda graph=graph: list(
                    nx.connected_components(graph, backend="networkx")
                ),
                "nodes and neighbours": partial(convert_from_nx, graph),
                "and weights": partial(convert_from_nx, graph, edge_attrs={"weight": 1}),
                "and all attributes": partial(convert_from_nx, graph, preserve_all_attrs=True),
            },
            baseline="a search in networkx",
        )
        for name, graph in graphs.items()
    ]


if __name__ == "__main__":
    harness.main(run)
