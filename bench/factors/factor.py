"""Factors on CPU threads: one proposal pass, n = 2, against SciPy's ``A @ x``; whole factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness
from bench.papers.klein_strzodka.proposal_pass import Pass
from matchwood import generators
from matchwood.factors import check_factor, check_maximal_factor, degree_factor

SEED = 20240607


def graphs() -> dict[str, Any]:
    """The standard graphs with random weights, and the paper's first matrix."""
    rng = np.random.default_rng(SEED)
    made = {}
    for name, A in harness.standard_graphs().items():
        upper = sp.triu(A, 1, format="csr")
        upper.data = rng.random(upper.nnz) + 0.5
        made[name] = sp.csr_array(upper + upper.T)
    made["aniso1 1000^2"] = generators.aniso(1, (1000, 1000))
    return made


def run() -> list[harness.Result]:
    results = []
    for name, A in graphs().items():
        G = matchwood.graph(A)
        view = G.undirected_weights()
        S = sp.csr_array((view.data, view.indices, view.indptr), shape=A.shape)
        x = np.ones(G.n, view.data.dtype)

        def verify(who: str, answer: Any, G: Any = G) -> None:
            if who.startswith("factor"):
                (check_maximal_factor if answer.maximal else check_factor)(G, answer)

        functions = {
            "scipy": lambda S=S, x=x: S @ x,
            "proposal pass, n=2, 2 threads": Pass(view, 2, threads=2),
            "proposal pass, n=2, 1 thread": Pass(view, 2, threads=1),
            "proposal pass, n=4, 2 threads": Pass(view, 4, threads=2),
            "factor, n=2, rounds=5": lambda G=G: degree_factor(G, 2),
            "factor, n=2, rounds=5, ties by hash": lambda G=G: degree_factor(G, 2, ties="hash"),
            "factor, n=2, greedy": lambda G=G: degree_factor(G, 2, method="greedy"),
        }
        bars = {"proposal pass, n=2, 2 threads": 1.0}
        results.append(harness.compare(f"factors, {name}", functions, verify=verify, bars=bars))
    return results


if __name__ == "__main__":
    harness.main(run)
