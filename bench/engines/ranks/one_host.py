"""Six functions on 1 to 16 ranks of one host: graphs with few levels, and with very many.

    python -m bench.engines.ranks.one_host make /tmp/graphs             once: the graphs, as files
    mpiexec -n 16 python -m bench.engines.ranks.one_host run /tmp/graphs --json rows.json
    python -m bench.engines.ranks.one_host run /tmp/graphs --ranks 4    threads of one process

Each function is called on the first 1, 2, 4, 16 ranks, one thread each, and on `--teams`: "4x4" are
four ranks with four threads, "1x16" one process with 16.  The others wait.  Answers must be those
of one rank, integers the same, scores to rounding.  `first` is the first call, which may make the
whole graph; `seconds` the median of the others, `best` the least; `ran` says where it ran.  With
``MATCHWOOD_DIST_COPY=0`` all ranks work.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import Delaunay

import matchwood
from bench import harness
from bench.papers.mandulak.ranks import own_cpus
from matchwood.report import cluster as figures

LOAD = os.getloadavg()[0]  # before the run
COUNTS = (1, 16, 4, 2)
TEAMS = ("1x16", "4x4")
REPEATS = (3, 9)  # least and most calls that are timed ...
CALL_SECONDS = 0.4  # ... in about this time,
LONG_SECONDS = 1.0  # but one alone where it takes longer than this
PARTS = ("indptr", "indices", "data")

SIZES: dict[str, dict[str, Callable[[], Any]]] = {
    "full": {
        "grid 1024^2": lambda: matchwood.generators.grid((1024, 1024)),
        "Delaunay 10^6": lambda: delaunay(10**6),
        "R-MAT 18": lambda: matchwood.generators.rmat(18, rng=1),
        "R-MAT 20": lambda: matchwood.generators.rmat(20, rng=1),
        "mesh 80^3": lambda: matchwood.generators.mesh((80, 80, 80)),
        "path 10^5": lambda: matchwood.generators.path(10**5),
    },
    "small": {
        "grid 64^2": lambda: matchwood.generators.grid((64, 64)),
        "Delaunay 4000": lambda: delaunay(4000),
        "R-MAT 12": lambda: matchwood.generators.rmat(12, rng=1),
        "mesh 12^3": lambda: matchwood.generators.mesh((12, 12, 12)),
        "path 4000": lambda: matchwood.generators.path(4000),
    },
}
CALLS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "bfs": (lambda G, t: matchwood.bfs(G, 0, threads=t), lambda found: found.parent),
    "components": (
        lambda G, t: matchwood.connected_components(G, threads=t), lambda found: found.labels,
    ),
    "labels": (
        lambda G, t: matchwood.label_propagation(G, threads=t), lambda found: found.labels,
    ),
    "matching": (lambda G, t: matchwood.weighted_matching(G, threads=t), lambda found: found.mate),
    "pagerank": (lambda G, t: matchwood.pagerank(G, threads=t), lambda found: found.scores),
    "forest": (
        lambda G, t: matchwood.minimum_spanning_forest(G, threads=t),
        lambda found: edges_hashed(found),
    ),
}  # fmt: skip
FUNCTIONS = {
    "bfs": "bfs", "components": "connected_components", "labels": "label_propagation",
    "matching": "weighted_matching", "pagerank": "pagerank", "forest": "minimum_spanning_forest",
}  # fmt: skip


def edges_hashed(found: Any) -> Any:
    """A hash of the edges of a rank; those of all ranks are added up."""
    u, v = found.edges.astype(np.uint64).T
    return np.array([(mix64(u) ^ mix64(~v)).sum(), u.size], np.uint64)


def mix64(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)


def delaunay(n: int) -> Any:
    """The triangles of random points, which are sorted along lines of a coarse grid."""
    points = np.random.default_rng(5).random((n, 2))
    points = points[np.lexsort((points[:, 1], (points[:, 0] * n**0.5 / 2).astype(int)))]
    corners = Delaunay(points).simplices
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    A = sp.coo_array((np.ones(edges.shape[0], np.float32), edges.T), (n, n)).tocsr()
    return sp.csr_array(A.maximum(A.T))


def make(folder: Path, names: list[str], sizes: str) -> None:
    """Write the graphs, with random weights, as files that every rank reads a part of."""
    for name in names or SIZES[sizes]:
        A = matchwood.generators.random_weights(SIZES[sizes][name](), rng=3)
        (folder / name).mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            np.save(folder / name / f"{part}.npy", getattr(A, part))


def slab(folder: Path, name: str, rank: int, size: int) -> Any:
    """The rows of one rank, as a matrix of SciPy."""
    indptr, indices, data = (
        np.load(folder / name / f"{part}.npy", mmap_mode="r") for part in PARTS
    )
    n = indptr.size - 1
    lo, hi = n * rank // size, n * (rank + 1) // size
    begin, end = indptr[lo], indptr[hi]
    rows = indptr[lo : hi + 1] - begin
    return sp.csr_array(
        (np.array(data[begin:end]), np.array(indices[begin:end]), rows), (hi - lo, n)
    )


def measured(G: Any, call: Callable[..., Any], threads: int) -> tuple[dict[str, Any], Any]:
    """The row of a call, and its answer; all ranks call it."""
    comm = G.comm

    def timed() -> tuple[list[float], Any]:
        comm.barrier()
        comm.traffic.clear()
        with figures.communicating(comm, G.exchange.row, G.exchange.column) as talk:
            start = time.perf_counter()
            found = call(G, threads)
            seconds = time.perf_counter() - start
        row = [seconds, seconds - talk.seconds, comm.traffic.bytes_received, talk.steps]
        return comm.allreduce(np.array(row), "max").tolist(), found

    if comm.size == 1 and threads > 1:  # one process: by the engine of one machine
        call = partial(one_machine, call, G.keep("bench graph", G.gather))
    (first, *_), found = timed()
    rows = [timed()[0]]
    least, most = REPEATS
    count = min(max(int(CALL_SECONDS / rows[0][0]), least), most) - 1
    count = 0 if rows[0][0] > LONG_SECONDS else count
    rows = sorted([*rows, *(timed()[0] for _ in range(count))])
    seconds, computing, received, steps = rows[len(rows) // 2]
    entries = comm.allreduce(np.array([G.undirected_pattern().nnz], np.int64), "max")
    row = {
        "ranks": comm.size, "threads": threads, "grid": G.grid.name, "vertices": G.n,
        "seconds": seconds, "best": rows[0][0], "first": first, "computing": computing,
        "received": int(received), "steps": int(steps), "entries": int(entries[0]),
    }  # fmt: skip
    return row, found


def one_machine(call: Callable[..., Any], graph: Any, _: Any, threads: int) -> Any:
    return call(graph, threads)


class Run:
    """What one rank knows of a run; all ranks have one."""

    def __init__(self, comm: Any, folder: Path, limit: float) -> None:
        self.comm, self.folder = comm, folder
        self.rows: list[dict[str, Any]] = []
        self.right: dict[tuple[str, str], Any] = {}
        self.end = time.monotonic() + limit

    def goes_on(self) -> bool:
        left: bool = self.comm.objects(time.monotonic() < self.end)[0]
        return left

    def time(self, graph: str, ranks: int, threads: int, names: list[str]) -> None:
        """Rows of these functions on the first ranks; the others wait."""
        part = self.comm.split(0 if self.comm.rank < ranks else None, self.comm.rank)
        if part is not None:
            began = time.perf_counter()
            G = matchwood.distribute(slab(self.folder, graph, part.rank, ranks), comm=part)
            self.making = time.perf_counter() - began
            for name in names:
                self._call(G, graph, name, threads)
        self.comm.barrier()

    def _call(self, G: Any, graph: str, name: str, threads: int) -> None:
        call, part = CALLS[name]
        row, found = measured(G, call, threads)
        answer = part(found)
        if name == "forest":
            answer = G.comm.allreduce(answer)
        else:
            answer = answer.gather(0) if hasattr(answer, "gather") else answer
        if G.comm.rank == 0:
            right = self.right.setdefault((graph, name), answer)
            if name == "pagerank":
                row["right"] = bool(np.allclose(answer, right, rtol=0, atol=1e-9))
            else:
                row["right"] = bool(np.array_equal(answer, right))
            row |= {
                "making": self.making,
                "graph": graph,
                "algorithm": name,
                "ran": G.stats.get(FUNCTIONS[name], ""),
            }
            self.rows.append(row)
            print(json.dumps(row), flush=True)


def rows_by(comm: Any, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of all graphs; of rank 0."""
    job = Run(comm, options.folder, options.seconds)
    graphs = options.graphs.split(",") if options.graphs else sorted(
        each.name for each in options.folder.iterdir()
    )  # fmt: skip
    counts = [int(count) for count in options.counts.split(",")]
    for graph in graphs:
        names = options.calls.split(",") if options.calls else list(CALLS)
        if graph.startswith("path"):
            names = [name for name in names if name == "bfs"]
        for count in counts:
            if count <= comm.size and job.goes_on():
                job.time(graph, count, 1, names)
        for team in filter(None, options.teams.split(",")):
            ranks, threads = map(int, team.split("x"))
            if ranks <= comm.size and job.goes_on():
                job.time(graph, ranks, threads, names)
    return job.rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("make", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", choices=tuple(SIZES), default="full")
    parser.add_argument("--graphs", help="only these, separated by commas")
    parser.add_argument("--calls", help="only these of " + ", ".join(CALLS))
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)))
    parser.add_argument("--teams", default=",".join(TEAMS))
    parser.add_argument("--ranks", type=int, help="threads of this process as ranks")
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin nothing after that")
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args()
    if options.what == "make":
        make(options.folder, options.graphs.split(",") if options.graphs else [], options.sizes)
        return
    if options.ranks:
        rows = matchwood.dist.run(rows_by, options.ranks, options)[0]
        _finish(rows, options, len(own_cpus()))
        return
    with matchwood.dist.world() as comm:
        rows = rows_by(comm, options)
        cpus = set().union(*comm.objects(own_cpus()))
        if comm.rank == 0:
            _finish(rows, options, len(cpus))


def _finish(rows: list[dict[str, Any]], options: argparse.Namespace, cpus: int) -> None:
    if options.json is not None:
        name = "all_ranks" if os.environ.get("MATCHWOOD_DIST_COPY") == "0" else "one_host"
        content = {"environment": harness.environment(), "figures": {name: rows}}
        content["environment"]["machine"]["cpus"] = cpus
        content["environment"]["load_before"] = LOAD
        options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
