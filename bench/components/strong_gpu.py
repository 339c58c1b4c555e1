"""Strongly connected components on the GPU, graph resident: time of a whole call.

``python -m bench.components.strong_gpu [--json FILE]``.  The methods are compared with each other
here; tests compare them with the definition.  Bars: ECL-SCC's time on one H200 for R-MAT 22, and a
tenth of the thesis' time (V100) for its densest graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import matchwood
from bench import harness
from bench.components import strong
from bench.harness.gpu import ROUNDS, made, timed
from matchwood import engines, generators

BARS = {"R-MAT 22": 12.3, "dense, n = 8000": 3.45}  # milliseconds
METHODS = ("auto", "forward_backward", "propagation")


def graphs() -> dict[str, Callable[[], Any]]:
    """Makers of prepared graphs on the GPU."""
    cupy = engines.cupy()

    def moved(make: Callable[[], Any]) -> Any:
        A = make()
        return matchwood.graph((cupy.asarray(A.indptr), cupy.asarray(A.indices)))

    def prepared(A: Any) -> Any:
        return matchwood.graph((A.indptr, A.indices))

    hard = {
        name: lambda make=make: moved(make)
        for name, make in strong.graphs().items()
        if name not in ("R-MAT 18", "dense, n = 4000")
    }
    return {
        "R-MAT 22": lambda: prepared(generators.rmat(22, directed=True, engine="gpu")),
        "dense, n = 8000": lambda: prepared(
            generators.dense_random(8000, 0.65, directed=True, engine="gpu")
        ),
        **hard,
    }


def run() -> list[harness.Result]:
    results: list[harness.Result] = []
    for name, G in made(graphs()):
        G.transposed_pattern()
        rows: dict[str, Any] = {}
        first = None
        for method in METHODS:
            found = matchwood.strongly_connected_components(G, method=method)
            first = first or found
            assert found.count == first.count
            assert bool((found.labels == first.labels).all()), "methods differ"
            rows[method] = timed(
                f"{name}, {method}",
                lambda G=G, m=method: matchwood.strongly_connected_components(G, method=m),
                BARS.get(name) if method == "auto" else None,
                note=f"{found.count:,} components, {found.rounds} passes",
                count=found.count, rounds=found.rounds,
            )  # fmt: skip
        title = f"strong components, {name}, GPU"
        results.append({"title": title, "baseline": "bar", "rounds": ROUNDS, "rows": rows})
        if first is not None and name in ("R-MAT 22", "mesh 64^3, oriented"):
            labels = np.asarray(first.labels.get())
            matchwood.check.check_strongly_connected_components(G.on("cpu"), labels)
        del G, first, found
    return results


if __name__ == "__main__":
    harness.main(run)
