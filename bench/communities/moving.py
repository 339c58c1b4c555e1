"""Communities on CPU threads against NetworKit: time, and the modularity that it buys.

`NetworKit` answers otherwise at every run; its modularity is that of the run that was verified.
Bars are those for two threads; grids and meshes are shuffled, so that nobody profits from an order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness
from bench.harness import peers

LOUVAIN_BAR = 4.0  # times PLM, at no lower modularity
LEIDEN_BAR = 1.5  # times ParallelLeiden, at 0.995 of its modularity
LABEL_BARS = {"R-MAT": 1.5, "Delaunay": 1.2}  # times PLP; others no slower
THREADS = 2
TOLERANCE = 0.01  # of label propagation


def graphs() -> dict[str, sp.csr_array]:
    """The standard graphs with unit weights; those with an order of their own shuffled."""
    found = {}
    for name, A in harness.standard_graphs().items():
        if name.startswith(("grid", "mesh")):
            perm = np.random.default_rng(harness.SEED).permutation(A.shape[0])
            A = sp.csr_array(A[perm][:, perm])
            A.sort_indices()
            name += ", shuffled"
        A.data = np.ones_like(A.data)
        found[name] = A
    return found


def theirs(kit: Any, method: str) -> Any:
    """A function that runs NetworKit's method and returns its partition."""
    import networkit

    networkit.setNumberOfThreads(THREADS)
    makers = {
        "louvain": lambda: networkit.community.PLM(kit, refine=False),
        "leiden": lambda: networkit.community.ParallelLeiden(kit),
        "labels": lambda: networkit.community.PLP(kit),
    }

    def run() -> Any:
        algorithm = makers[method]()
        algorithm.run()
        return np.asarray(algorithm.getPartition().getVector())

    return run


def calls(G: Any) -> dict[str, dict[str, Any]]:
    """Our functions, by the method of NetworKit that they are compared with."""
    labels = matchwood.label_propagation
    return {
        "louvain": {
            "matchwood": lambda: matchwood.louvain(G, threads=THREADS),
            "matchwood, moving": lambda: matchwood.louvain(G, method="moving", threads=THREADS),
            "matchwood, joining": lambda: matchwood.louvain(G, method="joining", threads=THREADS),
            "matchwood, 1 thread": lambda: matchwood.louvain(G, threads=1),
        },
        "leiden": {"matchwood": lambda: matchwood.leiden(G, threads=THREADS)},
        "labels": {
            "matchwood": lambda: labels(G, tol=TOLERANCE, threads=THREADS),
            "matchwood, settled": lambda: labels(G, max_rounds=100, threads=THREADS),
        },
    }


def bar_of(method: str, name: str) -> float:
    if method == "labels":
        return next((bar for start, bar in LABEL_BARS.items() if name.startswith(start)), 1.0)
    return LOUVAIN_BAR if method == "louvain" else LEIDEN_BAR


def run() -> list[harness.Result]:
    results = []
    for name, A in graphs().items():
        G = matchwood.graph((A.indptr, A.indices))
        kit = peers.networkit_graph(A)
        for method, functions in calls(G).items():
            quality: dict[str, float] = {}

            def verify(who: str, answer: Any, G: Any = G, method: str = method,
                       quality: dict[str, float] = quality) -> None:  # fmt: skip
                if who.startswith("matchwood") and method != "labels":
                    matchwood.check.check_communities(G, answer)
                labels = getattr(answer, "labels", answer)
                quality[who] = matchwood.modularity(G, labels.astype(np.int64))

            bars: dict[str, float] = {}
            baseline = "matchwood"
            if kit is not None:
                functions["networkit"] = theirs(kit, method)
                bars, baseline = {"matchwood": bar_of(method, name)}, "networkit"
            result = harness.compare(
                f"communities, {method}, {name}",
                functions,
                verify=verify,
                bars=bars,
                baseline=baseline,
            )
            result["modularity"] = quality
            print("modularity:", ", ".join(f"{who} {q:.4f}" for who, q in quality.items()))
            results.append(result)
    return results


if __name__ == "__main__":
    harness.main(run)
