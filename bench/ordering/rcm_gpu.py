"""Cuthill-McKee on the GPU, graph resident: the order from given starts, and the search for them.

``python -m bench.ordering.rcm_gpu [--json FILE]``.  Answers are checked by the rule of check.py, on
the device, for the whole graph.
"""

from __future__ import annotations

import statistics
from typing import Any

import matchwood
from bench import harness
from bench.harness.gpu import graphs, made, milliseconds, row
from matchwood import engines
from matchwood.ordering.measure import gpu as measures
from matchwood.ordering.rcm import gpu as engine
from matchwood.ordering.rcm.gpu import start as gpu_start

ROUNDS = 9  # of which the median counts
BARS = {"grid 2048^2": 53.0, "mesh 128^3": 43.0, "R-MAT 22": 40.0}  # milliseconds, on an H200


def earliest(view: Any, place: Any) -> Any:
    """The place of each vertex's earliest-placed neighbour; n where it has none."""
    cupy = engines.cupy()
    n, nnz = view.n, view.nnz
    first = cupy.full(n, n, view.indptr.dtype)
    k = measures.SOURCE.kernels(I=first.dtype)
    tiles = -(-(n + nnz) // measures.TILE) * 32
    k.lower_rows(tiles, (n, nnz, view.indptr, view.indices, place, first))
    return first


def check_order(view: Any, order: Any, label: Any, starts: Any) -> None:
    """The rule of check.py, on the device: raise where it is broken.  `order` is not reversed."""
    cupy = engines.cupy()
    n = view.n
    place = cupy.full(n, -1, order.dtype)
    place[order] = cupy.arange(n, dtype=order.dtype)
    assert bool((place >= 0).all()), "no permutation"
    parts = label[order]
    assert bool((parts[1:] >= parts[:-1]).all()), "components are not in order"
    first = earliest(view, place)[order]
    begins = first > cupy.arange(n)
    assert bool((order[begins] == starts).all()), "a component starts elsewhere"
    degree = cupy.diff(view.indptr)[order]
    rest = ~begins
    f, d, v = first[rest], degree[rest], order[rest]
    above = (f[1:] > f[:-1]) | ((f[1:] == f[:-1]) & (d[1:] > d[:-1]))
    above |= (f[1:] == f[:-1]) & (d[1:] == d[:-1]) & (v[1:] > v[:-1])
    assert bool(above.all()), "children are not by (earliest neighbour, degree, vertex)"


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def run() -> list[harness.Result]:
    results: list[harness.Result] = []
    for name, A in made(graphs()):
        G = matchwood.graph((A.indptr, A.indices))
        view = G.undirected_pattern()
        parts = gpu_start.components(G)
        gpu_start.search(G, parts, engine.NO_STARTS)
        starts = parts.start[view.indptr[parts.start + 1] > view.indptr[parts.start]].get()
        rows: dict[str, Any] = {}
        for method in engine.METHODS:
            order = matchwood.cuthill_mckee(G, start=starts, method=method)
            check_order(view, order, parts.label, parts.start)
            times = milliseconds(
                lambda m=method, G=G, s=starts: matchwood.cuthill_mckee(G, start=s, method=m),
                ROUNDS,
            )
            rows[method] = row(times, bar_ms=BARS[name])
            del order
        times = milliseconds(lambda G=G: matchwood.cuthill_mckee(G), ROUNDS)
        rows["auto, start searched for"] = row(times)
        core = min(rows[method]["median"] for method in engine.METHODS)
        whole = rows["auto, start searched for"]["median"]
        for what, entry in rows.items():
            print(
                f"{name}, {what}: {entry['median'] * 1e3:.3f} ms (best {entry['best'] * 1e3:.3f})"
            )
        search = (whole - core) / core
        print(
            f"{name}: core {core * 1e3:.3f} ms, bar {BARS[name]:g} ms "
            f"{verdict(core * 1e3 <= BARS[name])}; search for the start {search:.2f} times the "
            f"core, bar 1 {verdict(search <= 1)}; {parts.count:,} components"
        )
        order = matchwood.reverse_cuthill_mckee(G)
        for what, call in {
            "measures": lambda G=G, p=order: matchwood.order_measures(G, p),
            "permute": lambda G=G, p=order: matchwood.permute(G, p),
        }.items():
            times = milliseconds(call, ROUNDS)
            rows[what] = row(times)
            print(f"{name}, {what}: {statistics.median(times):.3f} ms")
        title = f"Cuthill-McKee, {name}, GPU"
        results.append({"title": title, "baseline": "bar", "rounds": ROUNDS, "rows": rows})
        del A, G, view, parts, order
    return results


if __name__ == "__main__":
    harness.main(run)
