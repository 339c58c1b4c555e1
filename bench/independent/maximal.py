"""Maximal independent sets on CPU threads against NetworKit."""

from __future__ import annotations

from typing import Any

import matchwood
from bench import harness
from bench.harness import peers

BAR = 10.0  # times NetworKit


mis = matchwood.maximal_independent_set


def run() -> list[harness.Result]:
    results = []
    for name, A in harness.standard_graphs().items():
        G = matchwood.graph(A)

        def verify(who: str, answer: Any, G: Any = G) -> None:
            if who.startswith("matchwood"):
                method = who.partition(", method ")[2] or "luby"
                matchwood.check.check_maximal_independent_set(G, answer, method=method)

        functions = {
            "matchwood": lambda G=G: mis(G),
            "matchwood, 1 thread": lambda G=G: mis(G, threads=1),
            "matchwood, raw matrix": lambda A=A: mis(A),
            "matchwood, method lexicographic": lambda G=G: mis(G, method="lexicographic"),
            "matchwood, method luby_sampling": lambda G=G: mis(G, method="luby_sampling"),
        }
        kit = peers.networkit_graph(A)
        bars = {}
        baseline = "matchwood"
        if kit is not None:
            import networkit

            functions["networkit"] = lambda kit=kit: networkit.independentset.Luby().run(kit)
            bars, baseline = {"matchwood": BAR}, "networkit"
        results.append(
            harness.compare(
                f"maximal independent set, {name}",
                functions,
                verify=verify,
                bars=bars,
                baseline=baseline,
            )
        )
    return results


if __name__ == "__main__":
    harness.main(run)
