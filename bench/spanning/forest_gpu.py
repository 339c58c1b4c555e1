"""Minimum spanning forests on the GPU, graph resident: time of a whole call.

``python -m bench.spanning.forest_gpu [--json FILE]``.  Weights are random, float32.  All methods
must find the same edges, and those of the first are checked on the CPU.  The bars are ECL-MST's
times on one H200.
"""

from __future__ import annotations

import statistics
from typing import Any

import matchwood
from bench import harness
from bench.traversal.breadth_first_gpu import ROUNDS, graphs, milliseconds
from matchwood import engines, generators

BARS = {"R-MAT 22": 24.4, "grid 2048^2": 6.05, "mesh 128^3": 5.07}  # milliseconds
METHODS = ("boruvka", "filter_kruskal", "kruskal", "awerbuch_shiloach")
SLOW_ROUNDS = 3  # of the methods that are no bar's


def run(*, check: bool = True, methods: tuple[str, ...] = METHODS) -> list[harness.Result]:
    results: list[harness.Result] = []
    if not engines.gpu_available():
        print("no GPU here")
        return results
    for name, make in graphs().items():
        A = generators.random_weights(make(), kind="uniform")
        G = matchwood.graph((A.indptr, A.indices, A.data))
        rows: dict[str, Any] = {}
        first = None
        for method in methods:
            found = matchwood.minimum_spanning_forest(G, method=method)
            if first is None:
                first = found
                if check:
                    matchwood.check.check_spanning_forest(G, found)
            assert bool((found.edges == first.edges).all()), f"{method} finds another forest"
            rounds = ROUNDS if method == methods[0] else SLOW_ROUNDS
            times = milliseconds(
                lambda G=G, method=method: matchwood.minimum_spanning_forest(G, method=method),
                rounds,
            )
            median = statistics.median(times)
            rows[method] = {
                "median": median / 1e3, "best": min(times) / 1e3, "rounds": found.rounds,
                "times": [time / 1e3 for time in times],
            }  # fmt: skip
            bar = f" (bar {BARS[name]})" if method == "boruvka" else ""
            print(f"{name}: {method} {median:.3f} ms{bar}, {found.rounds} rounds", flush=True)
        results.append({"title": f"spanning forest on the GPU, {name}", "rows": rows})
        del A, G, first, found
    return results


if __name__ == "__main__":
    harness.main(run)
