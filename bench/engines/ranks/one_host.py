"""Functions on several ranks of one host over one rank: no function should take longer.

    python -m bench.engines.ranks.one_host [ranks ...]

Starts itself under mpiexec, one thread a rank, in turns, and prints milliseconds, the best of all
calls, and where the function ran.  Each answer is compared with the one of one machine first.
Graphs: with many levels and locality, with few levels and none, and paths, on which the rounds of a
matching are as many as the edges where weights rise.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import Delaunay

import matchwood

RANKS = (1, 2, 4)
TURNS = 3
REPEATS = 5
LONG = 100_000  # vertices of paths

GRAPHS: dict[str, Callable[[], Any]] = {
    "grid 500^2": lambda: matchwood.generators.grid((500, 500)),
    "grid 1000^2": lambda: matchwood.generators.grid((1000, 1000)),
    "R-MAT 16": lambda: matchwood.generators.rmat(16, 8, rng=1),
    "Delaunay 10^5": lambda: delaunay(LONG),
    "path 10^5": lambda: matchwood.generators.path(LONG),
}
CALLS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "bfs": (lambda G: matchwood.bfs(G, 0), lambda found: found.parent),
    "components": (matchwood.connected_components, lambda found: found.labels),
    "label propagation": (matchwood.label_propagation, lambda found: found.labels),
    "matching": (matchwood.weighted_matching, lambda found: found.mate),
    "pagerank": (matchwood.pagerank, lambda found: found.scores),
    "spanning forest": (matchwood.minimum_spanning_forest, lambda found: found.components),
}
FUNCTIONS = {
    "bfs": "bfs", "components": "connected_components", "label propagation": "label_propagation",
    "matching": "weighted_matching", "pagerank": "pagerank",
    "spanning forest": "minimum_spanning_forest",
}  # fmt: skip


def delaunay(n: int) -> Any:
    """The triangles of random points, which are sorted along lines of a coarse grid."""
    points = np.random.default_rng(5).random((n, 2))
    points = points[np.lexsort((points[:, 1], (points[:, 0] * n**0.5 / 2).astype(int)))]
    corners = Delaunay(points).simplices
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    A = sp.coo_array((np.ones(edges.shape[0]), edges.T), (n, n)).tocsr()
    return sp.csr_array(A.maximum(A.T))


def rising() -> Any:
    weights = np.arange(1.0, LONG)
    return sp.csr_array(sp.diags_array([weights, weights], offsets=[1, -1]))


def weighted_graphs() -> Iterator[tuple[str, Any]]:
    for name, make in GRAPHS.items():
        yield name, matchwood.generators.random_weights(make(), rng=3)
    yield "rising path 10^5", rising()


def measured(comm: Any) -> dict[str, dict[str, list[Any]]]:
    """Milliseconds of each function on each graph, and where it ran; all ranks call it."""
    rows: dict[str, dict[str, list[Any]]] = {}
    for name, A in weighted_graphs():
        G = matchwood.distribute(A if comm.rank == 0 else None, comm=comm)
        rows[name] = {}
        for what, (call, part) in CALLS.items():
            found, right = part(call(G)), part(call(A))
            found = found.gather(None) if hasattr(found, "gather") else found
            assert np.allclose(found, right, rtol=0, atol=1e-9), (what, name)
            best = 1e3 * min(_seconds(comm, call, G) for _ in range(REPEATS))
            where = [told for function, told in G.stats.items() if FUNCTIONS[what] == function]
            rows[name][what] = [best, *where]
    return rows


def _seconds(comm: Any, call: Callable[[Any], Any], G: Any) -> float:
    comm.barrier()
    start = time.perf_counter()
    call(G)
    return time.perf_counter() - start


def run(counts: tuple[int, ...] = RANKS) -> list[dict[str, Any]]:
    """A row for each graph, function and number of ranks, with the ratio to the first number."""
    launcher = Path(sys.executable).parent / "mpiexec"
    best: dict[tuple[str, str, int], list[Any]] = {}
    for _ in range(TURNS):
        for ranks in counts:
            command = [str(launcher), "-n", str(ranks), sys.executable, "-m", __spec__.name]
            done = subprocess.run([*command, "--rank"], check=True, capture_output=True, text=True)
            for graph, times in json.loads(done.stdout).items():
                for what, found in times.items():
                    key = graph, what, ranks
                    best[key] = min(best.get(key, found), found)
    return [
        {"graph": graph, "function": what, "ranks": ranks, "ms": round(found[0], 2),
         "ratio": round(found[0] / best[graph, what, counts[0]][0], 2), "ran": found[1:]}
        for (graph, what, ranks), found in best.items()
    ]  # fmt: skip


def main() -> None:
    if sys.argv[1:] == ["--rank"]:
        with matchwood.dist.world(threads=1) as comm:
            rows = measured(comm)
            if comm.rank == 0:
                print(json.dumps(rows))
        return
    for row in run(tuple(map(int, sys.argv[1:])) or RANKS):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
