"""The table of Mlakar et al. (IPDPS 2021) for the matrices at hand: sizes, bandwidths, times.

python -m bench.ordering.table1 [--data FOLDER] [--most-entries N]

Rows: the matrices of the data folder, the grid of ecology1 (1000^2), Delaunay triangulations of
2^10 to 2^20 points, Mycielski graphs, and a KKT-like mesh.  Times are for the order from a given
start, in milliseconds; SciPy's includes its own choice of a start, which is the least degree.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

import matchwood
from bench import harness
from matchwood.ordering import bandwidth, check_rcm_order, rcm_ordering, reverse_cuthill_mckee

METHODS = ("serial", "leveled", "unordered", "batch_basic", "batch", "auto")
DATA = Path(os.environ.get("MATCHWOOD_DATA", harness.ROOT.parent / "shared" / "data"))
PAPER = {"bcspwr10": 285, "grid 1000^2": 1000}  # bandwidths after, where the matrix is the same


def mycielskian(k: int) -> sp.csr_array:
    """The k-th Mycielski graph: no triangles, chromatic number k; 3 * 2^(k-2) - 1 vertices."""
    u, v, n = np.array([0]), np.array([1]), 2
    for _ in range(k - 2):
        # each vertex i gets a copy n + i with the neighbours of i; a new vertex joins the copies
        copies = np.arange(n, 2 * n)
        u, v = np.r_[u, u, v, copies], np.r_[v, v + n, u + n, np.full(n, 2 * n)]
        n = 2 * n + 1
    return harness.undirected(n, u, v)


def matrices(data: Path, most: int) -> Iterator[tuple[str, Any]]:
    """Names and matrices, the files first."""
    for folder in ("matrices", "graphs"):
        for file in sorted((data / folder).glob("*.mtx.gz")):
            A = matchwood.io.read(file)
            if A.shape[0] == A.shape[1] and A.nnz <= most:
                yield file.name.removesuffix(".mtx.gz"), A
    made: list[tuple[str, Callable[[], Any]]] = [("grid 1000^2", lambda: harness.grid(1000))]
    made += [(f"delaunay 2^{k}", lambda k=k: harness.delaunay(1 << k)) for k in range(10, 21, 2)]
    made += [(f"mycielskian{k}", lambda k=k: mycielskian(k)) for k in range(8, 16)]
    made += [("mesh 64^3", lambda: harness.mesh(64))]
    for name, make in made:
        A = make()
        if A.nnz <= most:
            yield name, A


def _seconds(function: Callable[[], Any], rounds: int = 3) -> float:
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        function()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def row(name: str, A: Any) -> dict[str, Any]:
    G = matchwood.graph(A)
    view = G.undirected_pattern()
    pattern = sp.csr_array(
        (np.ones(view.nnz, np.float32), view.indices, view.indptr), shape=A.shape
    )
    found = rcm_ordering(G)
    check_rcm_order(G, found)
    start = int(found.perm[-1]) if found.counters["components"] == 1 else None
    theirs = csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=True)
    times = {"scipy": _seconds(lambda: csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=True))}
    for method in METHODS:
        times[method] = _seconds(lambda m=method: reverse_cuthill_mckee(G, start=start, method=m))
    return {
        "title": name,
        "n": G.n,
        "entries": view.nnz,
        "largest degree": int(np.diff(view.indptr).max(initial=0)),
        "front": found.counters["front"],
        "before": found.before.bandwidth,
        "after": found.after.bandwidth,
        "scipy": bandwidth(pattern, theirs),
        "times": times,
    }


def run(data: Path = DATA, most: int = 12_000_000) -> list[harness.Result]:
    heads = ("n", "entries", "largest degree", "front", "before", "after", "scipy")
    print(f"{'matrix':26}" + "".join(f"{h:>15}" for h in heads), *("scipy ms", *METHODS), sep="  ")
    results = []
    for name, A in matrices(data, most):
        found = row(name, A)
        numbers = "".join(f"{found[h]:>15,.0f}" for h in heads)
        times = "  ".join(f"{1e3 * t:8.2f}" for t in found["times"].values())
        note = f"  (paper: {PAPER[name]})" if name in PAPER else ""
        print(f"{name:26}{numbers}  {times}{note}", flush=True)
        results.append(found)
    ours, scipys = (sum(r[key] for r in results) for key in ("after", "scipy"))
    worse = [r["title"] for r in results if r["after"] > 1.05 * r["scipy"]]
    print(f"sum of the bandwidths: {ours:,}; of SciPy's: {scipys:,}")
    print(f"more than 5 % above SciPy's: {', '.join(worse) or 'none'}")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--most-entries", type=int, default=12_000_000)
    options = parser.parse_args()
    run(options.data, options.most_entries)
