"""Minimum spanning forests on the GPU, graph resident: time of a whole call.

``python -m bench.spanning.forest_gpu [--json FILE]``.  Weights are random, float32.  All methods
must find the same edges, and those of the first are checked on the CPU.  The bars are ECL-MST's
times on one H200.
"""

from __future__ import annotations

from typing import Any

import matchwood
from bench import harness
from bench.harness.gpu import ROUNDS, graphs, made, timed
from matchwood import generators

BARS = {"R-MAT 22": 24.4, "grid 2048^2": 6.05, "mesh 128^3": 5.07}  # milliseconds
METHODS = ("boruvka", "filter_kruskal", "kruskal", "awerbuch_shiloach")
SLOW_ROUNDS = 3  # of the methods that are no bar's


def run(*, check: bool = True, methods: tuple[str, ...] = METHODS) -> list[harness.Result]:
    results: list[harness.Result] = []
    for name, A in made(graphs()):
        A = generators.random_weights(A, kind="uniform")
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
            rows[method] = timed(
                f"{name}, {method}",
                lambda G=G, method=method: matchwood.minimum_spanning_forest(G, method=method),
                BARS[name] if method == "boruvka" else None,
                calls=ROUNDS if method == methods[0] else SLOW_ROUNDS,
                note=f"{found.rounds} rounds", rounds=found.rounds,
            )  # fmt: skip
        results.append({"title": f"spanning forest on the GPU, {name}", "rows": rows})
        del A, G, first, found
    return results


if __name__ == "__main__":
    harness.main(run)
