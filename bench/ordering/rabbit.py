"""Rabbit order against NetworKit's communities (PLM), and against the paper's sequential rule.

python -m bench.ordering.rabbit

Then what the order is worth: an iteration of PageRank before and after, and after how many
iterations ordering and permuting have paid.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import matchwood
from bench import harness
from bench.harness import peers
from bench.ordering.sequential_rabbit import sequential_rabbit_order

BARS = dict.fromkeys(("R-MAT 18", "grid 1000^2", "mesh 64^3", "Delaunay 300k"), 4.0)
ITERATIONS = 20
DATA = harness.DATA
WEB = DATA / "graphs" / "cnr-2000.graph-txt.gz"


def shuffled(A: Any, seed: int = 1) -> Any:
    perm = np.random.default_rng(seed).permutation(A.shape[0])
    return matchwood.permute(A, perm)


def gaps_of(view: Any) -> int:
    return int(np.maximum(np.diff(view.indptr) - 1, 0).sum())


def against_communities() -> list[harness.Result]:
    results = []
    networkit = harness.peer("networkit")
    for name, A in harness.standard_graphs().items():
        B = shuffled(A)
        G = matchwood.graph(B)
        view = G.undirected_pattern()
        functions = {"matchwood": lambda G=G: matchwood.rabbit_order(G)}
        if networkit is not None:
            H = peers.networkit_graph(B)
            functions["networkit PLM"] = lambda H=H: networkit.community.PLM(H, refine=False).run()

        def verify(who: str, answer: Any, G: Any = G) -> None:
            if who == "matchwood":
                found = matchwood.locality_ordering(G, "rabbit")
                assert np.array_equal(found.perm, answer)
                matchwood.check.check_rabbit_order(G, found)

        bars = {"matchwood": BARS[name]} if name in BARS else None
        baseline = "networkit PLM" if networkit is not None else "matchwood"
        results.append(
            harness.compare(
                f"rabbit order, {name}, shuffled", functions, verify=verify, bars=bars,
                baseline=baseline,
            )
        )  # fmt: skip
        count = max(1, gaps_of(view))
        ours = matchwood.log_gap(G, matchwood.rabbit_order(G)) / count
        theirs = matchwood.log_gap(G, sequential_rabbit_order(view)) / count
        print(f"  bits a gap: {ours:.2f}, by the sequential rule {theirs:.2f}")
    return results


def best(function: Any, rounds: int = 5) -> float:
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        function()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def iteration(G: Any) -> float:
    found = [
        matchwood.pagerank(G, tol=0, max_iterations=ITERATIONS, dtype=np.float32) for _ in range(5)
    ]
    return min(one.seconds["iterate"] for one in found) / ITERATIONS


def what_it_is_worth() -> None:
    graphs = {"mesh 100^3": harness.mesh(100), "grid 2000^2": harness.grid(2000)}
    if WEB.exists():
        graphs["cnr-2000"] = matchwood.io.read(WEB)
    print(f"{'graph':14}{'shuffled ms':>12}{'ordered ms':>12}{'faster':>8}{'break-even':>12}")
    for name, A in graphs.items():
        B = shuffled(A)
        G = matchwood.graph(B)
        G.undirected_pattern()
        perm = matchwood.rabbit_order(G)
        cost = best(lambda G=G: matchwood.rabbit_order(G), 3)
        cost += best(lambda B=B, perm=perm: matchwood.permute(B, perm), 3)
        before = iteration(G)
        after = iteration(matchwood.graph(matchwood.permute(B, perm)))
        even = cost / max(before - after, 1e-9)
        print(f"{name:14}{1e3 * before:12.2f}{1e3 * after:12.2f}{before / after:8.2f}{even:12.0f}")


def run() -> list[harness.Result]:
    results = against_communities()
    what_it_is_worth()
    return results


if __name__ == "__main__":
    harness.main(run)
