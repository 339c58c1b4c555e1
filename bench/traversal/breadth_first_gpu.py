"""Breadth-first search on the GPU, graph resident: time of a whole call, parents included.

``python -m bench.traversal.breadth_first_gpu [--json FILE]``.  Answers are checked by the four
rules of check.py, on the device, for the whole graph.  Times are medians between two events around
one call; a call waits for its own end, so they hold what Python does as well.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import matchwood
from bench import harness
from matchwood import engines, generators

ROUNDS = 15  # of which the median counts
WARM_SECONDS = 0.2  # of calls before the first that is timed
BARS = {"R-MAT 22": 3.0, "grid 2048^2": 20.0, "mesh 128^3": 5.0}  # milliseconds, on an H200


def graphs() -> dict[str, Callable[[], Any]]:
    """Makers of the three graphs, on the GPU."""
    return {
        "R-MAT 22": lambda: generators.rmat(22, engine="gpu"),
        "grid 2048^2": lambda: generators.grid((2048, 2048), engine="gpu"),
        "mesh 128^3": lambda: generators.mesh((128, 128, 128), engine="gpu"),
    }


def milliseconds(function: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """Times of single calls, after enough of them that the clocks are up."""
    cupy = engines.cupy()
    begin = time.perf_counter()
    while time.perf_counter() - begin < WARM_SECONDS:
        function()
    times = []
    for _ in range(rounds):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        answer = function()
        end.record()
        end.synchronize()
        del answer
        times.append(cupy.cuda.get_elapsed_time(start, end))
    return times


def check_search(view: Any, sources: Any, level: Any, parent: Any) -> None:
    """The rules of check.py, on the device: raise where one is broken."""
    cupy = engines.cupy()
    n, v = view.n, view.indices
    u = row_of_entries(view)
    zero = cupy.flatnonzero(level == 0).get()
    assert np.array_equal(zero, np.unique(sources)), "level 0 is not just the sources"
    assert bool((parent[zero] == cupy.asarray(zero)).all()), "a source is not its own parent"
    assert bool(((level < 0) == (parent < 0)).all()), "a level without a parent, or the reverse"
    lu, lv = level[u], level[v]
    assert not bool(((lu >= 0) & ((lv < 0) | (lv > lu + 1))).any()), "an arc skips a level"
    feeds = (lv > 0) & (lu == lv - 1)
    least = cupy.full(n, n, v.dtype)
    cupy.minimum.at(least, v[feeds], u[feeds])
    inner = level > 0
    assert bool((parent[inner] == least[inner]).all()), "a parent is not the smallest"


def row_of_entries(view: Any) -> Any:
    """The row of every entry."""
    cupy = engines.cupy()
    marks = cupy.zeros(view.nnz + 1, view.indices.dtype)
    cupy.add.at(marks, view.indptr[1:-1], marks.dtype.type(1))
    return cupy.cumsum(marks[:-1], dtype=marks.dtype)


def run() -> list[harness.Result]:
    results: list[harness.Result] = []
    if not engines.gpu_available():
        print("no GPU here")
        return results
    cupy = engines.cupy()
    for name, make in graphs().items():
        A = make()
        G = matchwood.graph((A.indptr, A.indices))
        view = G.undirected_pattern()
        sources = {"vertex 0": 0, "middle": view.n // 2}
        if name.startswith("R-MAT"):
            degree = cupy.diff(view.indptr)
            first = int((degree > 0).argmax())
            sources = {"first with neighbours": first, "highest degree": int(degree.argmax())}
        rows: dict[str, Any] = {}
        for what, source in sources.items():
            found = matchwood.bfs(G, source)
            check_search(view, [source], found.level, found.parent)
            reached = int((found.level >= 0).sum())
            times = milliseconds(lambda G=G, s=source: matchwood.bfs(G, s))
            median = statistics.median(times)
            rows[f"from {what}"] = {
                "median": median / 1e3,
                "best": min(times) / 1e3,
                "times": [t / 1e3 for t in times],
                "bar_ms": BARS[name],
                "rounds": found.rounds,
                "reached": reached,
            }
            verdict = "met" if median <= BARS[name] else "MISSED"
            print(
                f"{name}, from {what}: {median:.3f} ms (best {min(times):.3f}), bar "
                f"{BARS[name]:g} ms {verdict}; {found.rounds} levels, {reached:,} reached"
            )
        title = f"breadth-first search, {name}, GPU"
        results.append({"title": title, "baseline": "bar", "rounds": ROUNDS, "rows": rows})
        del A, G, view
        cupy.get_default_memory_pool().free_all_blocks()
    return results


if __name__ == "__main__":
    harness.main(run)
