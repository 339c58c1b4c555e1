"""What an order is good for: products with the matrix, and the fill of its factors.

python -m bench.ordering.effect [--plot spy.png]

Each matrix in three orders: its vertices numbered at random, as given, and by reverse
Cuthill-McKee.  A product is SciPy's, in float64; factors are those of `splu` in that order
(``permc_spec="NATURAL"``, diagonal pivots), with COLAMD's fill beside it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import matchwood
from bench import harness
from matchwood.ordering import bandwidth, permute, reverse_cuthill_mckee

BAND = 1 << 27  # vertices times bandwidth; larger ones are only multiplied with


def product_seconds(A: sp.csr_array, rounds: int = 15) -> float:
    x = np.ones(A.shape[0])
    best = np.inf
    for _ in range(rounds):
        begun = time.perf_counter()
        A @ x
        best = min(best, time.perf_counter() - begun)
    return best


def fill(A: sp.csr_array, permc: str = "NATURAL") -> float:
    """Entries of the factors over those of the matrix."""
    diagonal = np.asarray(abs(A).sum(axis=1)).ravel() + 1
    definite = sp.csc_array(sp.diags_array(diagonal) - A)
    options = {"SymmetricMode": True, "DiagPivotThresh": 0.0}
    factors = splu(definite, permc_spec=permc, options=options)
    return float(factors.L.nnz + factors.U.nnz) / definite.nnz


def plain(A: Any) -> sp.csr_array:
    """The undirected pattern with ones, as a matrix."""
    view = matchwood.graph(A).undirected_pattern()
    return sp.csr_array((np.ones(view.nnz), view.indices, view.indptr), shape=A.shape)


def run(path: str | None = None) -> list[harness.Result]:
    graphs = {
        "grid 200^2": harness.grid(200),
        "Delaunay 2^13": harness.delaunay(1 << 13),
        "mesh 20^3": harness.mesh(20),
        **harness.standard_graphs(),
    }
    print(f"{'matrix':16}{'order':12}{'bandwidth':>12}{'product ms':>12}{'fill':>8}{'COLAMD':>8}")
    results = []
    for name, made in graphs.items():
        A = plain(made)
        n = A.shape[0]
        random = permute(A, np.random.default_rng(1).permutation(n))
        orders = {"random": random, "as given": A, "RCM": permute(A, reverse_cuthill_mckee(A))}
        for order, B in orders.items():
            found = {"title": name, "order": order, "bandwidth": bandwidth(B)}
            found["seconds"] = product_seconds(B)
            filled = ""
            if n * found["bandwidth"] <= BAND:
                found["fill"], found["colamd"] = fill(B), fill(B, "COLAMD")
                filled = f"{found['fill']:8.1f}{found['colamd']:8.1f}"
            taken = 1e3 * found["seconds"]
            print(f"{name:16}{order:12}{found['bandwidth']:12,}{taken:12.3f}{filled}", flush=True)
            results.append(found)
        if path and name == "Delaunay 2^13":
            spy(orders, path)
    return results


def spy(orders: dict[str, sp.csr_array], path: str) -> None:
    plt = harness.pyplot()
    from matplotlib.colors import LogNorm

    fig, axes = plt.subplots(1, len(orders), figsize=(4 * len(orders), 4.2))
    for ax, (order, B) in zip(axes, orders.items(), strict=True):
        coo = B.tocoo()
        ax.hist2d(coo.col, coo.row, bins=300, norm=LogNorm(), cmap="Blues")
        ax.invert_yaxis()
        ax.set(title=f"{order}: bandwidth {bandwidth(B):,}", aspect="equal", xticks=[], yticks=[])
    harness.save(fig, Path(path))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--plot")
    run(parser.parse_args().plot)
