"""Communities, the order made of them and PageRank on the GPU, graph resident.

``python -m bench.communities.moving_gpu [--json FILE]``.  Labels and orders must be those of the
CPU's threads before they are timed.  Times are medians between two events around a whole call; an
iteration of PageRank is the difference of two calls by the iterations that one does more.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

import matchwood
from bench import harness
from bench.communities.moving import TOLERANCE
from bench.harness.gpu import graphs, made, milliseconds, row
from matchwood import engines

ROUNDS = 7  # of which the median counts
FEW, MANY = 20, 120  # iterations of PageRank
CALLS: dict[str, Callable[..., Any]] = {
    "rabbit_order": matchwood.rabbit_order,
    "louvain": matchwood.louvain,
    "label_propagation": functools.partial(matchwood.label_propagation, tol=TOLERANCE),
}
BARS = {  # milliseconds, on an H200
    "R-MAT 22": {"pagerank": 0.8, "label_propagation": 30, "louvain": 180, "rabbit_order": 120},
    "grid 2048^2": {"pagerank": 0.07, "label_propagation": 15, "louvain": 45, "rabbit_order": 20},
    "mesh 128^3": {"pagerank": 0.12, "label_propagation": 60, "louvain": 60, "rabbit_order": 30},
}
CLOSE = 1e-5  # of a float32 score, relative to the largest


def answer(found: Any) -> Any:
    """The array that must be the same on both engines, on the host."""
    return engines.moved(getattr(found, "labels", found), "cpu")


def iteration(G: Any) -> list[float]:
    """Milliseconds of one iteration of PageRank in float32."""
    rank = functools.partial(matchwood.pagerank, G, dtype=np.float32, tol=0)
    few, many = (
        milliseconds(functools.partial(rank, max_iterations=count), ROUNDS)
        for count in (FEW, MANY)
    )  # fmt: skip
    base = statistics.median(few)
    return [(time - base) / (MANY - FEW) for time in many]


def compare(G: Any, H: Any) -> None:
    """Raise where the GPU answers otherwise than the CPU."""
    for name, call in CALLS.items():
        np.testing.assert_array_equal(answer(call(G)), answer(call(H)), err_msg=name)
    rank = functools.partial(matchwood.pagerank, dtype=np.float32, tol=0, max_iterations=FEW)
    ours, theirs = (engines.moved(rank(at).scores, "cpu") for at in (G, H))
    assert np.abs(ours - theirs).max() <= CLOSE * theirs.max(), "other ranks"


def run(makers: dict[str, Callable[[], Any]] | None = None) -> list[harness.Result]:
    results: list[harness.Result] = []
    for name, A in made(makers or graphs()):
        G = matchwood.graph(A)
        compare(G, G.on("cpu"))
        timed = {
            what: milliseconds(functools.partial(call, G), ROUNDS) for what, call in CALLS.items()
        }
        timed["pagerank"] = iteration(G)
        rows = {}
        for what, times in timed.items():
            rows[what], median = row(times), statistics.median(times)
            bar = BARS.get(name, {}).get(what)
            print(f"{name}: {what} {median:.3f} ms (bar {bar}), best {min(times):.3f}", flush=True)
        results.append({"title": f"communities on the GPU, {name}", "rows": rows})
        del A, G
    return results


if __name__ == "__main__":
    harness.main(run)
