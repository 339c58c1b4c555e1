"""The gate: a symmetric, sorted matrix made ready, in SpMVs of SciPy."""

from __future__ import annotations

import numpy as np

import matchwood
from bench import harness


def run() -> list[harness.Result]:
    results = []
    for name, A in harness.standard_graphs().items():
        A = A.astype(np.float64)
        x = np.ones(A.shape[0])
        functions = {
            "scipy SpMV": lambda A=A, x=x: A @ x,
            "undirected pattern": lambda A=A: matchwood.graph(A).undirected_pattern(),
            "undirected weights": lambda A=A: matchwood.graph(A).undirected_weights(),
            "scipy A + A.T": lambda A=A: (A + A.T).tocsr(),
        }
        bars = {"undirected pattern": 1 / 3} if name == "R-MAT 18" else None
        results.append(
            harness.compare(f"the gate, {name}", functions, baseline="scipy SpMV", bars=bars)
        )
    return results


if __name__ == "__main__":
    harness.main(run)
