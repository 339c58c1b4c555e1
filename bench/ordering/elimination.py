"""Orders for elimination: entries of L, operations and time against METIS and SuperLU's MMD.

``python -m bench.ordering.elimination [--json FILE]``.  METIS is asked through pymetis, where it is
installed.  MMD is what SciPy has: SuperLU orders, then factorises with nothing kept, so its time is
an upper bound.  Of a number above 1, ours is larger.  `fill` is compared with products A x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

import matchwood
from bench import harness
from bench.harness import DATA

MESHES = ("4elt", "wing", "copter2", "delaunay_n15", "bcsstk33", "crack", "whitaker3", "fe_4elt2")
NETS = ("luxembourg_osm", "usroads", "power_case13659pegase", "bcspwr10", "rgg_n_2_15_s0")
BARS = {"dissection": 1 / 5, "dissection, tries=1": 1 / 2}  # of the speed of METIS
PRODUCTS = 40  # that `fill` may take


def graphs() -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {}
    for name in (*MESHES, *NETS):
        for path in DATA.glob(f"*/{name}.mtx.gz"):
            found[name] = lambda path=path: sp.csr_array(matchwood.io.read(path))
    return {**found, "grid 300^2": lambda: harness.grid(300), "mesh 24^3": lambda: harness.mesh(24)}


def by_metis(G: Any) -> Callable[[], Any] | None:
    pymetis = harness.peer("pymetis")
    if pymetis is None:
        return None
    view = G.undirected_pattern()
    adjacency = pymetis.CSRAdjacency(view.indptr, view.indices)
    return lambda: np.asarray(pymetis.nested_dissection(adjacency)[0])


def by_mmd(G: Any) -> Callable[[], Any]:
    view = G.undirected_pattern()
    pattern = sp.csc_array((np.ones(view.nnz), view.indices, view.indptr), (G.n, G.n))
    A = sp.csc_matrix(pattern + 1e6 * sp.eye_array(G.n))
    options: dict[str, Any] = {"permc_spec": "MMD_AT_PLUS_A", "drop_tol": 1, "fill_factor": 1}
    return lambda: np.argsort(scipy.sparse.linalg.spilu(A, **options).perm_c)


def run() -> list[harness.Result]:
    results = []
    ratios: dict[str, list[tuple[float, float]]] = {}
    for name, make in graphs().items():
        A = make()
        G = matchwood.graph(A)
        costs: dict[str, Any] = {}

        def verify(who: str, answer: Any, G: Any = G, costs: Any = costs) -> None:
            if who == "product A x":
                return
            if who.startswith("dissection"):
                matchwood.check.check_dissection(G, answer)
            costs[who] = answer if who == "fill" else matchwood.fill(G, answer)

        perm, x = matchwood.minimum_degree(G), np.ones(G.n)
        functions: dict[str, Callable[[], Any]] = {
            "mmd": by_mmd(G),
            "dissection": lambda G=G: matchwood.nested_dissection(G, threads=1),
            "dissection, tries=1": lambda G=G: matchwood.nested_dissection(G, tries=1, threads=1),
            "minimum_degree": lambda G=G: matchwood.minimum_degree(G),
            "fill": lambda G=G, perm=perm: matchwood.fill(G, perm),
            "product A x": lambda A=A, x=x: A @ x,
        }
        metis = by_metis(G)
        if metis is not None:
            functions = {"metis": metis, **functions}
        timed = harness.compare(
            f"elimination, {name}", functions, verify=verify,
            baseline="metis" if metis else "mmd", bars=BARS if metis else None,
        )  # fmt: skip
        times = {who: row["median"] for who, row in timed["rows"].items()}
        print(f"{name}: fill takes {times['fill'] / times['product A x']:.1f} products A x, "
              f"bar {PRODUCTS}")  # fmt: skip
        for ours in ("dissection", "dissection, tries=1", "minimum_degree"):
            for theirs in ("metis", "mmd", "minimum_degree"):
                if theirs in costs and theirs != ours:
                    entries, operations = (
                        getattr(costs[ours], field) / getattr(costs[theirs], field)
                        for field in ("entries", "operations")
                    )
                    ratios.setdefault(f"{ours} / {theirs}", []).append((entries, operations))
                    print(
                        f"  {ours} / {theirs}: {entries:.3f} entries, {operations:.3f} operations"
                    )
        timed["fill"] = {who: [found.entries, found.operations] for who, found in costs.items()}
        results.append(timed)
    for what, found in ratios.items():
        entries, operations = (
            math.exp(sum(math.log(pair[k]) for pair in found) / len(found)) for k in (0, 1)
        )
        print(f"{what}, {len(found)} graphs: {entries:.3f} entries, {operations:.3f} operations")
    return results


if __name__ == "__main__":
    harness.main(run)
