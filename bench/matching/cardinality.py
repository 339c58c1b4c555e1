"""Largest matchings of bipartite graphs, beside SciPy's ``maximum_bipartite_matching``.

``python -m bench.matching.cardinality [--size N]``.  N is the vertices of a side of random graphs.
The grid has a tenth of its vertices taken out, and is small: SciPy's search takes 13 s for
160 x 160, where ours takes some 10 ms.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_bipartite_matching

import matchwood
from bench import harness
from matchwood import generators, maximum_matching

SIDE = 100  # of the grid
METHODS = ("auto", "hopcroft_karp", "blossom")


def graphs(size: int) -> Iterator[tuple[str, Any]]:
    """Rectangles: rows are one side, columns the other."""
    rng = np.random.default_rng(0)
    for degree in (2, 3, 5):
        u, v = rng.integers(0, size, (2, degree * size))
        yield f"random, {degree} a row", sp.csr_array((np.ones(u.size), (u, v)), shape=(size, size))
    scale = max(8, size.bit_length() - 1)
    yield f"R-MAT {scale}", sp.csr_array(generators.rmat(scale, 8))
    A, at = sp.csr_array(generators.grid((SIDE, SIDE))), np.arange(SIDE * SIDE)
    dark, stays = (at // SIDE + at) % 2 == 1, rng.random(at.size) > 0.1
    yield f"grid {SIDE}^2 with holes", sp.csr_array(A[stays & dark][:, stays & ~dark])


def run(size: int = 200_000) -> list[harness.Result]:
    results = []
    for name, B in graphs(size):
        B.sum_duplicates()
        G = matchwood.graph(sp.block_array([[None, B], [B.T, None]], format="csr"))
        G.undirected_pattern()
        functions: dict[str, Any] = {"scipy": lambda B=B: maximum_bipartite_matching(B)}
        for method in METHODS:
            functions[method] = lambda G=G, method=method: maximum_matching(G, method=method)
        found = maximum_matching(G)
        found.check(G)
        largest = found.cardinality

        def verify(who: str, answer: Any, largest: int = largest) -> None:
            size = int((answer >= 0).sum()) if who == "scipy" else answer.cardinality
            assert size == largest, who

        results.append(harness.compare(f"largest matching, {name}", functions, verify=verify))
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=200_000)
    run(parser.parse_args().size)
