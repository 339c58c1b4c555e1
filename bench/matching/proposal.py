"""Maximal matching on CPU threads: rounds of proposals against the serial walk in random order.

``python -m bench.matching.proposal [--json FILE]``.  The baseline is our own serial method: of
the peers only NetworkX has such a function, a loop in Python.
"""

from __future__ import annotations

import functools
from typing import Any

import matchwood
from bench import harness
from matchwood.matching import maximal_matching
from matchwood.matching.proposal.check import check_maximal_matching


def run() -> list[harness.Result]:
    results = []
    for name, A in harness.standard_graphs().items():
        G = matchwood.graph(A)
        for label, weighted in (("random", False), ("heaviest", True)):
            call = functools.partial(maximal_matching, G, weighted=weighted)
            verify = functools.partial(_verify, G, weighted)
            results.append(
                harness.compare(
                    f"maximal matching, {label}, {name}",
                    {
                        "proposal, 1 thread": functools.partial(call, threads=1),
                        "proposal, 2 threads": functools.partial(call, threads=2),
                        "serial": functools.partial(call, method="serial"),
                    },
                    verify=verify,
                    baseline="serial",
                )
            )
    return results


def _verify(G: Any, weighted: bool, who: str, answer: Any) -> None:
    check_maximal_matching(G, answer, weighted=weighted)


if __name__ == "__main__":
    harness.main(run)
