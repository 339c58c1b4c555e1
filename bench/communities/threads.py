"""Louvain, the order made of its joins, and PageRank on 1, 2, 4, ... threads, on a mesh.

``python -m bench.communities.threads [--json FILE]``.  Answers must be the same at any number of
threads.  The bars are for 16 cores against one.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import matchwood
from bench import harness
from matchwood import generators
from matchwood.engines.cpu import available_cpus

SIDE = 128  # of the mesh
COUNTS = (1, 2, 4, 8, 16)  # threads
ROUNDS = 5  # of which the median counts
ITERATIONS = 20
CALLS: dict[str, Callable[..., Any]] = {
    "louvain": matchwood.louvain,
    "rabbit_order": matchwood.rabbit_order,
    "pagerank": functools.partial(
        matchwood.pagerank, dtype=np.float32, tol=0, max_iterations=ITERATIONS
    ),
}
BARS = {"louvain": 5.0, "pagerank": 8.0}  # times as fast on 16 cores as on one


def answer(found: Any) -> Any:
    """The array that must be the same."""
    return getattr(found, "labels", getattr(found, "scores", found))


def seconds(call: Callable[..., Any], G: Any, threads: int) -> list[float]:
    taken = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        call(G, threads=threads)
        taken.append(time.perf_counter() - begun)
    return taken


def run(side: int = SIDE) -> list[harness.Result]:
    G = matchwood.graph(generators.mesh((side, side, side)))
    counts = [count for count in COUNTS if count <= available_cpus()]
    results: list[harness.Result] = []
    for name, call in CALLS.items():
        expected = answer(call(G, threads=1))
        rows = {}
        for count in counts:
            np.testing.assert_array_equal(answer(call(G, threads=count)), expected)
            times = seconds(call, G, count)
            median = statistics.median(times)
            rows[f"{count} threads"] = {"median": median, "best": min(times), "times": times}
            gain = rows["1 threads"]["median"] / median  # type: ignore[operator]
            bar = f" (bar {BARS[name]})" if count == COUNTS[-1] and name in BARS else ""
            print(f"{name}, {count} threads: {1e3 * median:.1f} ms, {gain:.2f}x{bar}", flush=True)
        results.append({"title": f"{name} on threads, mesh {side}^3", "rows": rows})
    return results


if __name__ == "__main__":
    harness.main(run)
