"""Reverse Cuthill-McKee on CPU threads against SciPy, with a given start and with the search."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csgraph

import matchwood
from bench import harness
from matchwood.ordering import check_rcm_order, pseudo_peripheral_vertex, reverse_cuthill_mckee

# times as fast as SciPy, at least
BARS = {"R-MAT 18": 4.5, "mesh 64^3": 4.5, "grid 1000^2": 3.0, "Delaunay 300k": 3.0}
METHODS = ("leveled", "unordered", "batch_basic", "batch")


def run() -> list[harness.Result]:
    results = []
    for name, A in harness.standard_graphs().items():
        G = matchwood.graph(A)
        G.undirected_pattern()
        start = pseudo_peripheral_vertex(G, int(np.argmax(G.degrees)))

        def verify(who: str, answer: Any, G: Any = G, start: int = start) -> None:
            if who != "scipy":
                check_rcm_order(G, answer, start=None if "search" in who else start)

        def order(method: str, threads: int | None, G: Any = G, start: Any = start) -> Any:
            return lambda: reverse_cuthill_mckee(G, start=start, method=method, threads=threads)

        functions = {
            "scipy": lambda A=A: csgraph.reverse_cuthill_mckee(A, symmetric_mode=True),
            "serial": order("serial", 1),
            "auto": order("auto", None),
            **{method: order(method, None) for method in METHODS},
            "serial, with search": order("serial", 1, start=None),
            "auto, with search": order("auto", None, start=None),
            "auto, raw matrix": lambda A=A: reverse_cuthill_mckee(A, start=None),
        }
        bars = {"serial": 3.0, "auto": BARS[name]}
        result = harness.compare(
            f"reverse Cuthill-McKee, {name}", functions, verify=verify, bars=bars
        )
        for method in ("serial", "auto"):
            rows = result["rows"]
            whole = rows[f"{method}, with search"]["median"] / rows[method]["median"]
            print(f"{name}: {method} with the search takes {whole:.2f} times as long (bar 2.5)")
        results.append(result)
    return results


if __name__ == "__main__":
    harness.main(run)
