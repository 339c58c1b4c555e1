"""What a team costs: an empty call at 1 and 2 threads, and where a second thread begins to pay.

And what a public call costs on a graph so small that its work counts for little: "best" is to be
below 60 us beside that work, for a prepared Graph and for a raw matrix.

The constants INLINE_WORK and SECOND_THREAD_WORK of matchwood/engines/cpu/crew.py come from here.  A
step is one entry of a sparse matrix-vector product whose vectors are in the cache: about the
cheapest thing a kernel does for an edge, so dearer kernels gain from a second thread earlier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness
from matchwood.engines.cpu import Crew, barrier, crew, kernel, share_rows

DEGREE = 16  # entries of a row
SMALL = 1000  # vertices of a small graph
CALLS: dict[str, Callable[[Any], Any]] = {
    "connected_components": matchwood.connected_components,
    "strongly_connected_components": matchwood.strongly_connected_components,
    "bfs": lambda A: matchwood.bfs(A, 0),
    "maximal_independent_set": matchwood.maximal_independent_set,
    "minimum_spanning_forest": matchwood.minimum_spanning_forest,
    "weighted_matching": matchwood.weighted_matching,
    "reverse_cuthill_mckee": matchwood.reverse_cuthill_mckee,
    "order_measures": matchwood.order_measures,
    "degree_order": matchwood.degree_order,
    "permute": lambda A: matchwood.permute(A, np.arange(SMALL)[::-1]),
    "pagerank": matchwood.pagerank,
    "label_propagation": matchwood.label_propagation,
}


@kernel
def _nothing(team: Any) -> None:
    pass


@kernel
def _meet(team: Any) -> None:
    if barrier(team):
        return


@kernel
def _multiply(team: Any, indptr: Any, indices: Any, data: Any, x: Any, y: Any) -> None:
    lo, hi = share_rows(team, indptr)
    for i in range(lo, hi):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * x[indices[k]]
        y[i] = total
    if barrier(team):
        return


def run() -> list[harness.Result]:
    inline, one, two = Crew(1, inline=True), crew(1, work=10**9), crew(2, work=10**9)
    results = [
        harness.compare(
            "an empty call",
            {
                "in the calling thread": lambda: inline.run(_nothing),
                "1 thread": lambda: one.run(_nothing),
                "2 threads": lambda: two.run(_nothing),
                "2 threads and a barrier": lambda: two.run(_meet),
            },
            baseline="in the calling thread",
            rounds=301,
        )
    ]
    for steps in (5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000):
        args = _matrix(steps)
        results.append(
            harness.compare(
                f"{steps:,} steps",
                {
                    "in the calling thread": lambda args=args: inline.run(_multiply, *args),
                    "1 thread": lambda args=args: one.run(_multiply, *args),
                    "2 threads": lambda args=args: two.run(_multiply, *args),
                },
                baseline="in the calling thread",
                rounds=101,
            )
        )
    return results + _small_calls()


def _small_calls() -> list[harness.Result]:
    """Every function on vertices without entries, and on a path with random weights."""
    weights = np.random.default_rng(harness.SEED).random(SMALL - 1)
    path = sp.diags_array([weights, weights], offsets=[1, -1]).tocsr()
    results = []
    for kind, A in (("no entries", sp.csr_array((SMALL, SMALL))), ("a path", path)):
        G = matchwood.graph(A)
        for name, call in CALLS.items():
            functions = {
                "Graph": lambda call=call, G=G: call(G),
                "raw matrix": lambda call=call, A=A: call(A),
            }
            title = f"{name}, {SMALL:,} vertices, {kind}"
            results.append(harness.compare(title, functions, baseline="Graph", rounds=301))
    return results


def _matrix(steps: int) -> tuple[Any, ...]:
    n = steps // DEGREE
    rng = np.random.default_rng(harness.SEED)
    indptr = np.arange(0, steps + 1, DEGREE, dtype=np.int32)
    indices = rng.integers(0, n, n * DEGREE, dtype=np.int32)
    return indptr, indices, rng.random(indices.size), rng.random(n), np.zeros(n)


if __name__ == "__main__":
    harness.main(run)
