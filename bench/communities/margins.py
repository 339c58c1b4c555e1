"""Modularity against NetworKit's, over seeds and over graphs: nothing is timed.

python -m bench.communities.margins

A mark stands where the mean of `louvain` is below that of PLM by more than 0.0005.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

import matchwood
from bench import harness
from bench.harness import peers

SEEDS = range(6)
THEIR_RUNS = 5
ALLOWED = 0.0005
DATA = harness.DATA


def of_pairs(n: int, u: Any, v: Any) -> sp.csr_array:
    """The graph with unit weights of these pairs, without loops."""
    A = sp.coo_array((np.ones(u.size), (u, v)), shape=(n, n)).tocsr()
    A = sp.csr_array(A + A.T)
    A.setdiag(0)
    A.eliminate_zeros()
    A.sort_indices()
    A.data[:] = 1
    return A


def geometric(n: int, degree: float, seed: int) -> sp.csr_array:
    """Points of the unit square, joined where they are near; `degree` neighbours on average."""
    points = np.random.default_rng(seed).random((n, 2))
    radius = np.sqrt(degree / (np.pi * n))
    pairs = cKDTree(points).query_pairs(radius, output_type="ndarray")
    return of_pairs(n, pairs[:, 0], pairs[:, 1])


def planted(n: int, groups: int, inside: int, across: int, seed: int) -> sp.csr_array:
    """Groups at random, with so many neighbours inside and anywhere on average."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(groups + 1))
    u = rng.integers(0, n, n * inside // 2)
    low, high = starts[group[u]], starts[group[u] + 1]
    v = order[low + (rng.random(u.size) * (high - low)).astype(int)]
    x, y = rng.integers(0, n, (2, n * across // 2))
    return of_pairs(n, np.append(u, x), np.append(v, y))


def graphs() -> Iterator[tuple[str, sp.csr_array]]:
    for file in sorted(DATA.glob("graphs/*"), key=lambda file: file.stat().st_size):
        try:
            A = matchwood.io.read(file)
        except (ValueError, OSError):  # names and the like
            continue
        if A.shape[0] == A.shape[1]:
            pairs = sp.coo_array(A)
            yield file.name.split(".")[0], of_pairs(A.shape[0], *pairs.coords)
    yield "geometric 50k, degree 8", geometric(50_000, 8, 1)
    yield "geometric 50k, degree 16", geometric(50_000, 16, 2)
    yield "planted 50k, 100 of 12 + 4", planted(50_000, 100, 12, 4, 1)
    yield "planted 50k, 1000 of 10 + 5", planted(50_000, 1000, 10, 5, 2)
    yield "planted 50k, 5000 of 8 + 4", planted(50_000, 5000, 8, 4, 3)
    yield "planted 20k, 20 of 8 + 8", planted(20_000, 20, 8, 8, 3)


def ours(G: Any) -> dict[str, list[float]]:
    louvain, labels = matchwood.louvain, matchwood.label_propagation
    functions: dict[str, Any] = {
        "louvain": lambda seed: louvain(G, rng=seed),
        "moving": lambda seed: louvain(G, rng=seed, method="moving"),
        "joining": lambda seed: louvain(G, rng=seed, method="joining"),
        "leiden": lambda seed: matchwood.leiden(G, rng=seed),
        "labels": lambda seed: labels(G, rng=seed, tol=0.01),
    }
    return {
        name: [function(seed).modularity for seed in SEEDS] for name, function in functions.items()
    }


def theirs(networkit: Any, A: sp.csr_array, G: Any) -> dict[str, list[float]]:
    kit = peers.networkit_graph(A)
    makers: dict[str, Any] = {
        "PLM": lambda: networkit.community.PLM(kit, refine=False),
        "ParallelLeiden": lambda: networkit.community.ParallelLeiden(kit),
        "PLP": lambda: networkit.community.PLP(kit),
    }
    found: dict[str, list[float]] = {name: [] for name in makers}
    for name, make in makers.items():
        for seed in range(1, THEIR_RUNS + 1):
            networkit.setSeed(seed, False)
            algorithm = make()
            algorithm.run()
            labels = np.asarray(algorithm.getPartition().getVector()).astype(np.int64)
            found[name].append(matchwood.modularity(G, labels))
    return found


def main() -> None:
    networkit = harness.peer("networkit")
    columns = ("louvain", "moving", "joining", "PLM", "leiden", "ParallelLeiden", "labels", "PLP")
    print(f"{'graph':28}{'n':>8}{'var/mean':>10}" + "".join(f"{name:>16}" for name in columns))
    for name, A in graphs():
        G = matchwood.graph((A.indptr, A.indices))
        degree = np.diff(A.indptr)
        degree = degree[degree > 0]
        found = ours(G) | (theirs(networkit, A, G) if networkit is not None else {})
        told = "".join(f"{np.mean(found.get(column, np.nan)):16.4f}" for column in columns)
        low = np.mean(found["louvain"]) < np.mean(found.get("PLM", -1)) - ALLOWED
        print(f"{name:28}{G.n:8}{degree.var() / degree.mean():10.2f}{told}{'  *' if low else ''}")


if __name__ == "__main__":
    main()
