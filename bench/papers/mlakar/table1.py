"""Table I and figures 2 to 6 of Mlakar et al. (IPDPS 2021) for the matrices at hand.

python -m bench.papers.mlakar.table1 [--data DIR] [--all] [A.mtx ...] [--json FILE] [--out FOLDER]

Without more it counts: sizes, average levels, bandwidths before and after, and SciPy's.  Rows are
the paper's matrices that DIR has, a grid in place of ecology1, Delaunay triangulations and
Mycielski graphs of several sizes, a mesh, and files; ``--all`` takes every square matrix of DIR.

--times              seconds: SciPy's, each method with the start given at each number of threads,
                     the search for a start, the default call, the default call on the raw matrix
--engine gpu --times     the GPU's methods instead, the search and the default call there, copies to
                     and fro, and SciPy's on the same machine
--stages             what batches did, and the shares of time of their stages (figures 3 and 6)
--threads 1 2        numbers of threads of both
--draw FILE          measure nothing; with --out write tables and pictures of what the file has

A run adds to the file of --json, so times of the CPU and the GPU may come one after the other.
SciPy's time includes its own choice of a start, which is the least degree.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

import matchwood
from bench import harness, papers
from bench.harness.gpu import device_ms
from bench.papers.mlakar import figures as rcm_figures
from bench.papers.mlakar.printed import PAPER
from matchwood import generators
from matchwood.ordering import (
    bandwidth,
    check_rcm_order,
    pseudo_peripheral_vertex,
    rcm_ordering,
    reverse_cuthill_mckee,
)

METHODS = ("serial", "leveled", "unordered", "batch_basic", "batch", "auto")
GPU_METHODS = ("leveled", "batch")
STAGES = ("discover", "sort", "rediscover", "signal", "output", "stall")
BATCHES = ("generated", "dequeued", "executed", "empty", "rediscoveries", "removed")
REAL = (
    "1138_bus", "add32", "fe_4elt2", "bcsstk33", "delaunay_n16", "rgg_n_2_15_s0", "copter2", "wing",
    "as-22july06", "astro-ph", "luxembourg_osm", "usroads",
)  # fmt: skip
ROUNDS = 5  # of which the median counts


def mycielskian(k: int) -> sp.csr_array:
    """The k-th Mycielski graph: no triangles, chromatic number k; 3 * 2^(k-2) - 1 vertices."""
    u, v, n = np.array([0]), np.array([1]), 2
    for _ in range(k - 2):
        # each vertex i gets a copy n + i with the neighbours of i; a new vertex joins the copies
        copies = np.arange(n, 2 * n)
        u, v = np.r_[u, u, v, copies], np.r_[v, v + n, u + n, np.full(n, 2 * n)]
        n = 2 * n + 1
    return harness.undirected(n, u, v)


def matrices(given: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """Makers, by name: the paper's, relatives of those, and files."""
    made: dict[str, Callable[[], Any]] = {
        "ecology1": lambda: generators.stencil(
            np.array([[0, -1, 0], [-1, 4, -1], [0, -1, 0]]), (given.grid, given.grid)
        )
    }
    for k in range(10, given.largest_delaunay + 1, 2):
        made[f"delaunay 2^{k}"] = lambda k=k: harness.delaunay(1 << k)
    for k in range(9, given.largest_mycielskian + 1, 2):
        made[f"mycielskian{k}"] = lambda k=k: mycielskian(k)
    made["mesh 64^3"] = lambda: harness.mesh(64)
    there = papers.files(given.data)
    further = tuple(there) if given.all else REAL
    names = dict.fromkeys((*PAPER, *made, *further))
    return papers.matrices(given, names, made)


def counts(G: Any, pattern: Any) -> dict[str, Any]:
    """What does not depend on the machine; the order is checked."""
    found = rcm_ordering(G)
    check_rcm_order(G, found)
    theirs = csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=True)
    return {
        "rows": G.n,
        "entries": int(pattern.nnz),
        "largest degree": int(np.diff(pattern.indptr).max(initial=0)),
        "components": found.counters["components"],
        "front": found.counters["front"],
        "before": found.before.bandwidth,
        "after": found.after.bandwidth,
        "scipy": bandwidth(pattern, theirs),
    }


def cpu_seconds(A: Any, G: Any, pattern: Any, threads: list[int]) -> dict[str, float]:
    """Medians of calls in turn."""
    start = _start(G)
    calls: dict[str, Callable[[], Any]] = {
        "scipy": lambda: csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=True),
        "default": lambda: reverse_cuthill_mckee(G),
        "raw": lambda: reverse_cuthill_mckee(A),
        "search": lambda: pseudo_peripheral_vertex(G, start),
    }
    for method in METHODS:
        for count in threads if method != "serial" else [1]:
            calls[f"{method}, {count}"] = lambda m=method, c=count: reverse_cuthill_mckee(
                G, start=start, method=m, threads=c
            )
    for call in calls.values():
        call()
    return _medians(calls)


def _medians(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of calls in turn."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - begun)
    return {name: statistics.median(times) for name, times in taken.items()}


def gpu_seconds(G: Any, pattern: Any) -> dict[str, float]:
    """The methods from a given start, the default call, the search, copies, and SciPy's.

    The copies are of the graph to the other side, and of the order back.
    """
    from matchwood import engines

    cupy = engines.cupy()
    start, view = _start(G), G.undirected_pattern()
    H = G.on("gpu")
    H.undirected_pattern()
    perm = reverse_cuthill_mckee(H, start=start)

    def to_cpu() -> None:
        cupy.asnumpy(H.undirected_pattern().indptr)
        cupy.asnumpy(H.undirected_pattern().indices)
        cupy.asarray(host)

    def to_gpu() -> None:
        cupy.asarray(view.indptr)
        cupy.asarray(view.indices)
        cupy.asnumpy(perm)

    host = cupy.asnumpy(perm)
    assert view.nnz == H.undirected_pattern().nnz
    taken = {
        f"gpu {method}": device_ms(
            lambda m=method: reverse_cuthill_mckee(H, start=start, method=m), calls=1
        )
        for method in GPU_METHODS
    }
    taken["gpu default"] = device_ms(lambda: reverse_cuthill_mckee(H), calls=1)
    taken["gpu search"] = device_ms(lambda: pseudo_peripheral_vertex(H, start), calls=1)
    taken["copies to the CPU"] = device_ms(to_cpu, calls=1)
    taken["copies to the GPU"] = device_ms(to_gpu, calls=1)
    theirs = {"scipy": lambda: csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=True)}
    return {name: ms / 1e3 for name, ms in taken.items()} | _medians(theirs)


def stages(G: Any, threads: list[int]) -> dict[str, Any]:
    """For each number of threads what ``batch`` counted; without levels there are no batches."""
    found = {}
    for count in threads:
        counted = rcm_ordering(G, start=_start(G), method="batch", threads=count).counters
        if "generated" in counted:
            found[str(count)] = {name: counted[name] for name in (*BATCHES, *STAGES)}
    return found


def _start(G: Any) -> int:
    """A start in the component of the vertex of largest degree."""
    return pseudo_peripheral_vertex(G, int(np.argmax(G.degrees)))


def measure(A: Any, given: argparse.Namespace) -> dict[str, Any]:
    """Everything that was asked for, of one matrix."""
    G = matchwood.graph(A)
    view = G.undirected_pattern()
    ones = np.ones(view.nnz, np.float32)
    pattern = sp.csr_array((ones, view.indices, view.indptr), shape=A.shape)
    found = counts(G, pattern)
    if given.times and given.engine == "cpu":
        found["seconds, cpu"] = cpu_seconds(A, G, pattern, given.threads)
    if given.times and given.engine == "gpu":
        found["seconds, gpu"] = gpu_seconds(G, pattern)
    if given.stages:
        found["stages"] = stages(G, given.threads)
    return found


def show(name: str, row: dict[str, Any]) -> None:
    paper = PAPER.get(name)
    note = f" (paper: {paper.before:,} -> {paper.after:,})" if paper else ""
    print(
        f"{name:20} {row['rows']:>10,} rows {row['entries']:>12,} entries, "
        f"front {row['front']:9,.0f}, bandwidth {row['before']:>9,} -> {row['after']:>8,}, "
        f"SciPy {row['scipy']:>8,}{note}",
        flush=True,
    )
    for key in ("seconds, cpu", "seconds, gpu"):
        if key in row:
            print("    ms " + "  ".join(f"{k}: {1e3 * s:.2f}" for k, s in row[key].items()))


def run() -> list[harness.Result]:
    """Smaller graphs, for `bench.run`."""
    found = main(["--times", "--largest-delaunay", "16", "--largest-mycielskian", "13"])
    return [{"title": f"reverse Cuthill-McKee, {name}", **row} for name, row in found.items()]


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    papers.options(parser)
    parser.add_argument("--all", action="store_true", help="every matrix of the folder")
    parser.add_argument("--engine", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--grid", type=int, default=1000, help="side of the 5-point grid")
    parser.add_argument("--largest-delaunay", type=int, default=20, help="log of the points")
    parser.add_argument("--largest-mycielskian", type=int, default=15)
    given = parser.parse_args(arguments)
    results: dict[str, Any] = papers.load(given.draw) if given.draw else {}
    label = given.engine if given.times or given.stages else "counts"
    for name, make in {} if given.draw else matrices(given).items():
        try:
            A = make()
        except ValueError as error:  # --all finds rectangular ones, too
            print(f"left out: {error}")
            continue
        results[name] = measure(A, given)
        show(name, results[name])
        if given.json:  # after each, so that a run that is cut off is not lost
            papers.add(given.json, {name: results[name]}, label)
    if given.json and not given.draw:
        results = papers.load(given.json)
    ours, scipys = (sum(row[key] for row in results.values()) for key in ("after", "scipy"))
    less, more = (
        sum(sign * row["after"] < sign * row["scipy"] for row in results.values())
        for sign in (1, -1)
    )
    print(
        f"{len(results)} matrices; sum of the bandwidths {ours:,}, of SciPy's {scipys:,}; "
        f"less on {less}, more on {more}"
    )
    if given.out:
        rcm_figures.write(results, given.out, given.draw or given.json)
    return results


if __name__ == "__main__":
    main()
