"""Connected components on the GPU, graph resident: time of a whole call, numbering included.

``python -m bench.components.connected_gpu [--json FILE]``.  Labels are checked on the device, for
the whole graph: no edge joins two of them, they are numbered by their smallest vertices, and a
search from those, itself checked, reaches every vertex.  The bars are ECL-CC's times on one H200.
"""

from __future__ import annotations

from typing import Any

import matchwood
from bench import harness
from bench.harness.gpu import ROUNDS, graphs, made, row_of_entries, timed
from bench.traversal.breadth_first_gpu import check_search
from matchwood import engines, generators

BARS = {"R-MAT 22": 1.93, "grid 2048^2": 0.50, "mesh 128^3": 2.18}  # milliseconds
METHODS = ("afforest", "fastsv", "bfs")


def check_labels(G: Any, count: int, labels: Any) -> None:
    """Raise where the labels are not the components of the graph."""
    cupy = engines.cupy()
    view = G.undirected_pattern()
    first = cupy.full(count, view.n, labels.dtype)
    cupy.minimum.at(first, labels, cupy.arange(view.n, dtype=labels.dtype))
    assert int(first.max()) < view.n, "a label is not used"
    assert bool((first[1:] > first[:-1]).all()), "not numbered by the smallest vertex"
    tails = row_of_entries(view)
    assert bool((labels[tails] == labels[view.indices]).all()), "an edge joins two labels"
    del tails
    found = matchwood.bfs(G, first, directed=False)
    check_search(view, first.get(), found.level, found.parent)
    assert bool((found.level >= 0).all()), "a label is not connected"


def run() -> list[harness.Result]:
    results: list[harness.Result] = []
    makers = graphs()
    makers["R-MAT 22, directed"] = lambda: generators.rmat(22, directed=True, engine="gpu")
    for name, A in made(makers):
        G = matchwood.graph((A.indptr, A.indices))
        rows: dict[str, Any] = {}
        first = None
        for method in METHODS:
            found = matchwood.connected_components(G, method=method)
            if first is None:
                first = found
                check_labels(G, found.count, found.labels)
            assert found.count == first.count
            assert bool((found.labels == first.labels).all())
            rows[method] = timed(
                f"{name}, {method}",
                lambda G=G, m=method: matchwood.connected_components(G, method=m),
                BARS.get(name) if method == "afforest" else None,
                note=f"{found.count:,} components, {found.rounds} rounds",
                count=found.count, rounds=found.rounds,
            )  # fmt: skip
        title = f"connected components, {name}, GPU"
        results.append({"title": title, "baseline": "bar", "rounds": ROUNDS, "rows": rows})
        del A, G
    return results


if __name__ == "__main__":
    harness.main(run)
