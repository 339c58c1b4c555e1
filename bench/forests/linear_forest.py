"""Linear forests on CPU threads: from the factor, against the sequential walk; the whole setup in
products of SciPy's ``A @ x``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness
from matchwood import generators
from matchwood.factors import degree_factor
from matchwood.forests import check_linear_forest, linear_forest, tridiagonal_of


def graphs() -> dict[str, Any]:
    """Matrices with long paths and cycles, with short ones, and paths in random order."""
    weighted = generators.random_weights
    return {
        "aniso2 1500^2": generators.aniso(2, (1500, 1500), dtype=np.float32),
        "aniso1 1000^2": generators.aniso(1, (1000, 1000)),
        "grid 1000^2, random weights": weighted(generators.grid((1000, 1000)), rng=1),
        "Delaunay 300k, random weights": weighted(generators.delaunay(300_000, rng=1), rng=1),
        "path of 2 M in random order": _shuffled_path(2_000_000),
    }


def _shuffled_path(n: int) -> sp.csr_array:
    name = np.random.default_rng(harness.SEED).permutation(n)
    A = sp.coo_array((np.ones(n - 1), (name[1:], name[:-1])), shape=(n, n))
    return sp.csr_array(A + A.T)


def run() -> list[harness.Result]:
    results = []
    for name, A in graphs().items():
        G = matchwood.graph(A)
        given = degree_factor(G, 2)

        def verify(who: str, answer: Any, G: Any = G) -> None:
            if "forest" in who or "walk" in who:
                check_linear_forest(G, answer)

        def forest(method: str, threads: int, G: Any = G, given: Any = given) -> Any:
            return linear_forest(G, factor=given, method=method, threads=threads)

        functions = {
            "walk": lambda forest=forest: forest("walk", 1),
            "forest, 2 threads": lambda forest=forest: forest("auto", 2),
            "forest, splitters, 2 threads": lambda forest=forest: forest("splitters", 2),
            "forest, splitters, 1 thread": lambda forest=forest: forest("splitters", 1),
            "forest, doubling, 2 threads": lambda forest=forest: forest("doubling", 2),
        }
        bars = {"forest, 2 threads": 1.3}
        title = f"linear forest from the factor, {name}"
        results.append(harness.compare(title, functions, verify=verify, baseline="walk", bars=bars))
        x = np.ones(G.n, A.dtype)
        whole = {
            "scipy": lambda A=A, x=x: A @ x,
            "factor": lambda G=G: degree_factor(G, 2, threads=2),
            "whole setup": lambda G=G: _setup(G),
        }
        title = f"from matrix to coefficients in products A @ x, {name}"
        results.append(harness.compare(title, whole, bars={"whole setup": 1 / 12}))
    return results


def _setup(G: Any) -> Any:
    return tridiagonal_of(G, linear_forest(G, threads=2), threads=2)


if __name__ == "__main__":
    harness.main(run)
