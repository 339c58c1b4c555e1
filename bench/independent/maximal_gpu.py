"""Maximal independent sets on the GPU, graph resident: time of a whole call.

``python -m bench.independent.maximal_gpu [--json FILE]``.  Sets are checked on the device, for the
whole graph, by the rules of check.py, the strict one included.  The bars are ECL-MIS's times on one
H200, and a tenth of what the thesis' code takes for its largest graph on a V100.
"""

from __future__ import annotations

from typing import Any

import matchwood
from bench import harness
from bench.harness.gpu import ROUNDS, graphs, made, row_of_entries, timed
from matchwood import engines, generators
from matchwood.independent import order
from matchwood.independent.order import METHODS
from matchwood.primitives import hashing

DENSE = "dense 8000, 0.65"
BARS = {"R-MAT 22": 1.07, "grid 2048^2": 0.45, "mesh 128^3": 3.79, DENSE: 1.64}  # milliseconds


def check_members(view: Any, members: Any, method: str) -> None:
    """Raise where this is not the set that the method gives; for sampling, no maximal one."""
    cupy = engines.cupy()
    u, v = row_of_entries(view), view.indices
    feeds = members[v]
    assert not bool((feeds & members[u]).any()), "two members are neighbours"
    if method == "luby":
        degree = cupy.diff(view.indptr)
        level = cupy.asarray(order.degree_class(cupy.maximum(degree, 1).get()).astype("uint8"))
        start = cupy.uint64(order.start_of(0))
        hashed = hashing.mix64(cupy.arange(view.n, dtype=cupy.uint64) ^ start)
        feeds &= (level[v] < level[u]) | ((level[v] == level[u]) & (hashed[v] < hashed[u]))
    elif method == "lexicographic":
        feeds &= v < u
    covered = members.copy()
    covered[u[feeds]] = True
    assert bool(covered.all()), "a vertex without a member before it among its neighbours"


def run() -> list[harness.Result]:
    results: list[harness.Result] = []
    makers = graphs()
    makers[DENSE] = lambda: generators.dense_random(8000, 0.65, directed=True, engine="gpu")
    for name, A in made(makers):
        G = matchwood.graph((A.indptr, A.indices))
        view = G.undirected_pattern()
        rows: dict[str, Any] = {}
        for method in METHODS:
            members = matchwood.maximal_independent_set(G, method=method)
            check_members(view, members, method)
            count = int(members.sum())
            rows[method] = timed(
                f"{name}, {method}",
                lambda G=G, m=method: matchwood.maximal_independent_set(G, method=m),
                BARS[name] if method == "luby" else None,
                note=f"{count:,} members", members=count,
            )  # fmt: skip
        title = f"maximal independent set, {name}, GPU"
        results.append({"title": title, "baseline": "bar", "rounds": ROUNDS, "rows": rows})
        del A, G, view, members
    return results


if __name__ == "__main__":
    harness.main(run)
