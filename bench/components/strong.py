"""Strongly connected components on CPU threads against SciPy, NetworKit and igraph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

import matchwood
from bench import harness
from matchwood import generators

DATA = harness.DATA / "graphs"
BARS = {"R-MAT 18": 2.0, "cnr-2000": 2.0}  # times as fast as SciPy; others: not slower
SIZE = 1_000_000  # vertices


def _arcs(n: int, u: Any, v: Any) -> sp.csr_array:
    return sp.csr_array((np.ones(u.size, np.float32), (u, v)), shape=(n, n))


def chain_of_cycles(cycles: int = 10_000, each: int = 10) -> sp.csr_array:
    """Cycles of `each` vertices, every one leading to the next."""
    v = np.arange(cycles * each)
    turn = v // each * each + (v + 1) % each
    first = np.arange(0, v.size, each)
    return _arcs(v.size, np.append(v, first[:-1]), np.append(turn, first[1:]))


def graphs() -> dict[str, Callable[[], sp.csr_array]]:
    """Makers of the graphs; cnr-2000 where the data folder is there."""
    n = np.arange(SIZE)
    found: dict[str, Callable[[], sp.csr_array]] = {
        "R-MAT 18": lambda: generators.rmat(18, directed=True),
        "path": lambda: _arcs(SIZE, n[:-1], n[1:]),
        "cycle": lambda: _arcs(SIZE, n, (n + 1) % SIZE),
        "chain of cycles": chain_of_cycles,
        "mesh 64^3, oriented": lambda: sp.csr_array(sp.triu(generators.mesh((64, 64, 64)), 1)),
        "dense, n = 4000": lambda: generators.dense_random(4000, 0.45, directed=True),
    }
    cnr = Path(DATA, "cnr-2000.graph-txt.gz")
    if cnr.exists():
        found["cnr-2000"] = lambda: matchwood.io.read(cnr)
    return found


def others(A: sp.csr_array) -> dict[str, Callable[[], Any]]:
    """The calls of the installed peers, on graphs of their own."""
    functions: dict[str, Callable[[], Any]] = {
        "scipy": lambda: csgraph.connected_components(A, directed=True, connection="strong")
    }
    arcs = A.tocoo()
    try:
        import networkit
    except ImportError:
        pass
    else:
        ends = arcs.row.astype(np.uint64), arcs.col.astype(np.uint64)
        kit = networkit.GraphFromCoo(ends, n=A.shape[0], directed=True)
        method = networkit.components.StronglyConnectedComponents
        functions["networkit"] = lambda: method(kit).run()
    try:
        import igraph
    except ImportError:
        pass
    else:
        ends = np.stack((arcs.row, arcs.col), axis=1)
        tree = igraph.Graph(n=A.shape[0], edges=ends, directed=True)
        functions["igraph"] = lambda: tree.connected_components(mode="strong")
    return functions


find = matchwood.strongly_connected_components


def run() -> list[harness.Result]:
    results = []
    for name, make in graphs().items():
        A = sp.csr_array(make())
        A.data = np.ones(A.nnz)  # SciPy leaves out stored zeros
        G = matchwood.graph(A)

        def verify(who: str, answer: Any, G: Any = G) -> None:
            if who.startswith("matchwood"):
                matchwood.check.check_strongly_connected_components(G, answer)

        functions = {
            **others(A),
            "matchwood": lambda G=G: find(G),
            "matchwood, 1 thread": lambda G=G: find(G, threads=1),
            "matchwood, raw matrix": lambda A=A: find(A),
        }
        for method in ("tarjan", "multistep", "forward_backward"):
            functions[f"matchwood, {method}"] = lambda G=G, m=method: find(G, method=m)
        bars = {"matchwood": BARS.get(name, 1.0)}
        results.append(
            harness.compare(f"strong components, {name}", functions, verify=verify, bars=bars)
        )
    return results


if __name__ == "__main__":
    harness.main(run)
