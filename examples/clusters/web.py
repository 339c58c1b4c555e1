"""
A graph on ranks, and back on one machine
=========================================

Reads a graph, finds its largest component and the PageRank of its vertices, saves both, and goes on
with one machine.  Started alone it has one rank; nothing else changes::

    python examples/clusters/web.py web.txt results
    mpiexec -n 16 python examples/clusters/web.py web.txt results
"""

import sys
from pathlib import Path

import numpy as np

import matchwood as mw


def on_ranks(path: str, folder: Path) -> bool:
    """What all ranks do together; whether this is the first of them."""
    with mw.dist.world() as comm:
        G = mw.io.read(path, comm=comm)  # each rank parses a part of the file
        found = mw.connected_components(G)
        sizes = np.bincount(found.labels.local, minlength=found.count)
        sizes = comm.allreduce(sizes)  # of all components, on every rank
        H, ids = G.subgraph(found.labels, int(sizes.argmax()))
        ranking = mw.pagerank(H)
        H.save(folder / "graph")
        ids.save(folder / "ids.npy")
        ranking.scores.save(folder / "scores.npy")
        if comm.rank == 0:
            print(f"{comm.size} ranks: {G.n} vertices, {found.count} components, "
                  f"the largest has {H.n}")  # fmt: skip
        return comm.rank == 0


def on_one_machine(folder: Path) -> None:
    """What needs the graph as a whole: no communicator, an ordinary `Graph`."""
    H = mw.io.read(folder / "graph")
    ids, scores = np.load(folder / "ids.npy"), np.load(folder / "scores.npy")
    found = mw.louvain(H)
    print(f"{found.count} communities, modularity {found.modularity:.3f}")
    for v in scores.argsort()[::-1][:3]:
        print(f"vertex {ids[v]}: score {scores[v]:.5f}, community {found.labels[v]}")


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    folder.mkdir(exist_ok=True)
    if on_ranks(sys.argv[1], folder):
        on_one_machine(folder)
