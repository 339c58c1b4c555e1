"""Breadth-first search on the GPU, graph resident: time of a whole call, parents included.

``python -m bench.traversal.breadth_first_gpu [--json FILE]``.  Answers are checked by the four
rules of check.py, on the device, for the whole graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import matchwood
from bench import harness
from bench.harness.gpu import ROUNDS, graphs, made, row_of_entries, timed
from matchwood import engines

BARS = {"R-MAT 22": 3.0, "grid 2048^2": 20.0, "mesh 128^3": 5.0}  # milliseconds, on an H200


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


def run() -> list[harness.Result]:
    results: list[harness.Result] = []
    cupy = engines.cupy()
    for name, A in made(graphs()):
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
            rows[f"from {what}"] = timed(
                f"{name}, from {what}", lambda G=G, s=source: matchwood.bfs(G, s), BARS[name],
                note=f"{found.rounds} levels, {reached:,} reached",
                rounds=found.rounds, reached=reached,
            )  # fmt: skip
        title = f"breadth-first search, {name}, GPU"
        results.append({"title": title, "baseline": "bar", "rounds": ROUNDS, "rows": rows})
        del A, G, view
    return results


if __name__ == "__main__":
    harness.main(run)
