"""PageRank in float32, 20 iterations, against 20 products of SciPy with the same matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness

ITERATIONS = 20
DATA = harness.DATA
WEB = DATA / "graphs" / "cnr-2000.graph-txt.gz"
BARS = {
    "R-MAT 18": 2.5,
    "grid 1000^2": 1.5,
    "mesh 64^3": 2.5,
    "Delaunay 300k": 2.4,
    "cnr-2000": 1.8,
}


def run() -> list[harness.Result]:
    graphs: dict[str, Any] = dict(harness.standard_graphs())
    if WEB.exists():
        graphs["cnr-2000"] = matchwood.io.read(WEB)
    results = []
    for name, A in graphs.items():
        G = matchwood.graph(A)
        view = G.directed_pattern()
        ones = np.ones(view.nnz, np.float32)
        S = sp.csr_array((ones, view.indices, view.indptr), shape=(G.n, G.n))
        x = np.ones(G.n, np.float32)
        options = {"tol": 0, "max_iterations": ITERATIONS, "dtype": np.float32}

        def products(S: Any = S, x: Any = x) -> None:
            for _ in range(ITERATIONS):
                S @ x

        def verify(who: str, answer: Any, G: Any = G) -> None:
            if who.startswith("matchwood"):
                matchwood.check.check_pagerank(G, answer, tol=0, max_iterations=ITERATIONS)

        results.append(
            harness.compare(
                f"pagerank, {name}",
                {
                    "scipy products": products,
                    "matchwood": lambda G=G, o=options: matchwood.pagerank(G, **o),
                    "matchwood, 1 thread": lambda G=G, o=options: matchwood.pagerank(
                        G, **o, threads=1
                    ),
                },
                verify=verify,
                bars={"matchwood": BARS[name]} if name in BARS else None,
                baseline="scipy products",
            )
        )
    return results


if __name__ == "__main__":
    harness.main(run)
