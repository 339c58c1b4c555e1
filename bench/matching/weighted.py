"""Weighted matching on CPU threads against NetworKit, and against sorting with NumPy.

NetworKit's suitor matcher is timed on its own prepared graph: as it came, and with its rows sorted
by weight beforehand, which its faster variant needs and which is not counted.  The bars are for
the faster of the two.  Greedy is compared with the textbook: ``np.argsort`` of the weights and a
compiled loop over the edges, from the same matrix.  FOM, the figure of merit of Mandulak et al.
(SC 2024), is matched edges per second, in millions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness
from matchwood.engines.cpu import available_cpus
from matchwood.matching import matching_bound, weighted_matching
from matchwood.matching.check import check_locally_dominant

EXACT = 5000  # vertices of the small graphs on which the best matching is found


def with_random_weights(A: sp.csr_array) -> sp.csr_array:
    """Uniform weights in (0, 1], the same for both directions."""
    upper = sp.triu(A, k=1).tocsr()
    upper.data = 1.0 - np.random.default_rng(harness.SEED).random(upper.nnz)
    B = sp.csr_array(upper + upper.T)
    B.sort_indices()
    return B


def networkit_graph(A: sp.csr_array) -> Any | None:
    """The graph of a symmetric matrix in NetworKit, with weights."""
    kit = harness.peer("networkit")
    if kit is None:
        return None
    upper = sp.triu(A, k=1).tocoo()
    u, v = (ends.astype(np.uint64) for ends in upper.coords)  # others end in a segmentation fault
    return kit.GraphFromCoo((upper.data, (u, v)), n=A.shape[0], weighted=True, directed=False)


def suitor_of_networkit(graph: Any, *, sorted_rows: bool) -> Callable[[], Any]:
    kit = harness.peer("networkit")
    assert kit is not None
    if sorted_rows:
        kit.graphtools.sortEdgesByWeight(graph, True)
    return lambda: kit.matching.SuitorMatcher(graph, sorted_rows).run()


@numba.njit
def _take(order: Any, u: Any, v: Any, mate: Any) -> None:
    for e in order:
        if mate[u[e]] < 0 and mate[v[e]] < 0:
            mate[u[e]], mate[v[e]] = v[e], u[e]


def sort_and_take(A: sp.csr_array) -> Any:
    """Greedy as one would write it."""
    upper = sp.triu(A, k=1).tocoo()
    u, v = upper.coords
    mate = np.full(A.shape[0], -1, np.int32)
    _take(np.argsort(-upper.data), u, v, mate)
    return mate


def against_networkit(name: str, A: sp.csr_array) -> harness.Result:
    G = matchwood.graph(A)
    unsorted, by_weight = networkit_graph(A), networkit_graph(A)
    functions: dict[str, Callable[[], Any]] = {}
    if unsorted is not None:
        functions["networkit, sorted rows"] = suitor_of_networkit(by_weight, sorted_rows=True)
        functions["networkit"] = suitor_of_networkit(unsorted, sorted_rows=False)
    teams = [1, 2] if available_cpus() > 1 else [1]
    for method in ("suitor", "dominant", "greedy"):
        for threads in teams:
            functions[f"{method}, {threads} thread{'s' * (threads > 1)}"] = (
                lambda m=method, t=threads: weighted_matching(G, method=m, threads=t)
            )
    functions["suitor, raw matrix"] = lambda: weighted_matching(A, method="suitor")

    def verify(who: str, answer: Any) -> None:
        if not who.startswith("networkit"):
            check_locally_dominant(G, answer)

    result = harness.compare(
        f"weighted matching, {name}",
        functions,
        verify=verify,
        baseline="networkit, sorted rows",
        bars={"suitor, 1 thread": 1.0, "suitor, 2 threads": 1.6},
    )
    edges = weighted_matching(G).cardinality
    for row in result["rows"].values():
        row["fom"] = edges / row["median"] / 1e6
    rows = result["rows"]
    print("FOM, million edges a second:", {who: round(row["fom"], 1) for who, row in rows.items()})
    for threads in teams:
        end = f", {threads} thread{'s' * (threads > 1)}"
        factor = rows["dominant" + end]["median"] / rows["suitor" + end]["median"]
        print(f"dominant / suitor{end}: {factor:.2f} (bar: at most 2)")
    return result


def against_argsort(name: str, A: sp.csr_array) -> harness.Result:
    G = matchwood.graph(A)

    def verify(who: str, answer: Any) -> None:
        check_locally_dominant(G, answer)

    functions = {
        "np.argsort and a loop": lambda: sort_and_take(A),
        "greedy": lambda: weighted_matching(G, method="greedy"),
        "greedy, 1 thread": lambda: weighted_matching(G, method="greedy", threads=1),
    }
    return harness.compare(
        f"greedy matching, {name}",
        functions,
        verify=verify,
        baseline="np.argsort and a loop",
        bars={"greedy": 2.0},
    )


def quality(name: str, A: sp.csr_array) -> harness.Result:
    """How heavy the methods' matchings are, as parts of the greedy one, the bound and the best."""
    G = matchwood.graph(A)
    greedy = weighted_matching(G)
    rows: dict[str, Any] = {}
    for method in ("suitor", "streaming", "random_weighted"):
        found = weighted_matching(G, method=method)
        rows[method] = {"weight": found.weight, "of greedy": found.weight / greedy.weight}
    rows["bound"] = {"weight": greedy.bound, "of greedy": greedy.bound / greedy.weight}
    if G.n <= EXACT:
        try:
            best = weighted_matching(G, method="exact").weight
            rows["exact"] = {"weight": best, "of greedy": best / greedy.weight}
        except matchwood.EngineUnavailable as error:
            print(error)
    print(f"weights, {name}:", {who: round(row["of greedy"], 4) for who, row in rows.items()})
    return {"title": f"weights of matchings, {name}", "baseline": "suitor", "rows": rows}


def bound_time(name: str, A: sp.csr_array) -> harness.Result:
    G = matchwood.graph(A)
    found = weighted_matching(G)
    functions = {
        "suitor": lambda: weighted_matching(G, method="suitor"),
        "matching_bound": lambda: matching_bound(G, found),
    }
    return harness.compare(f"upper bound, {name}", functions, baseline="suitor")


def run() -> list[harness.Result]:
    results = []
    for name, A in harness.standard_graphs().items():
        B = with_random_weights(A)
        results.append(against_networkit(name, B))
        results.append(against_argsort(name, B))
        results.append(bound_time(name, B))
        results.append(quality(name, B))
    small = {
        "grid 60^2": harness.grid(60),
        "mesh 12^3": harness.mesh(12),
        "Delaunay 2000": harness.delaunay(2000),
        "R-MAT 11": harness.rmat(11, 8),
    }
    for name, A in small.items():
        results.append(quality(name, with_random_weights(A)))
    return results


if __name__ == "__main__":
    harness.main(run)
