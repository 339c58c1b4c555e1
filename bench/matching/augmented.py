"""What short augmentations win and cost: ``weighted_matching(method="augmented")`` beside suitor.

``python -m bench.matching.augmented [--data FOLDER] [--json FILE]`` takes the graphs of the folder
that are named in GRAPHS, where they are, and the standard graphs.  Each has equal weights, then
random ones.  Times are CPU seconds of one thread on prepared graphs, medians of alternating rounds.
The quality is a part of `matching_bound`: the matching has at least so much of the largest weight.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness
from bench.matching.weighted import with_random_weights
from bench.papers import DATA
from matchwood.check import check_augmented
from matchwood.matching import matching_bound, weighted_matching

GRAPHS = (
    "cora_citations.mtx.gz",
    "hep-th.mtx.gz",
    "astro-ph.mtx.gz",
    "email-Enron.txt.gz",
    "wiki-Vote.txt.gz",
    "p2p-Gnutella31.txt.gz",
)
ROUNDS = 9  # of which the median counts
BAR = 3.0  # times suitor's time, at most


def graphs(data: Path) -> Iterator[tuple[str, Any]]:
    """Symmetric patterns."""
    for name in GRAPHS:
        if (file := data / "graphs" / name).is_file():
            view = matchwood.graph(matchwood.io.read(file)).undirected_pattern()
            ones = np.ones(view.nnz)
            yield name.split(".")[0], sp.csr_array((ones, view.indices, view.indptr))
    yield from harness.standard_graphs().items()


def cpu_seconds(G: Any, methods: tuple[str, ...]) -> dict[str, float]:
    """The median of each method, which ran before."""
    times: dict[str, list[float]] = {method: [] for method in methods}
    for _ in range(ROUNDS):
        for method in methods:
            since = time.process_time()
            weighted_matching(G, method=method, threads=1)
            times[method].append(time.process_time() - since)
    return {method: statistics.median(taken) for method, taken in times.items()}


def row(name: str, A: Any) -> harness.Result:
    G = matchwood.graph(A)
    before, after = (weighted_matching(G, method=method) for method in ("suitor", "augmented"))
    bound = min(matching_bound(G, found).value for found in (before, after))
    check_augmented(G, after)
    times = cpu_seconds(G, ("suitor", "augmented"))
    return {
        "title": name,
        "n": G.n,
        "seconds": times,
        "factor": times["augmented"] / times["suitor"],
        "gained": after.weight / before.weight - 1,
        "before": before.weight / bound,
        "after": after.weight / bound,
        "rounds": after.rounds,
    }


def run(data: Path = DATA) -> list[harness.Result]:
    results = []
    for name, A in graphs(data):
        for kind, B in (("equal weights", A), ("random weights", with_random_weights(A))):
            found = row(f"{name}, {kind}", B)
            print(
                f"{found['title']:36}{found['n']:>9,}{1e3 * found['seconds']['suitor']:>9.2f} ms"
                f"{found['factor']:>7.2f}x (bar {BAR:g}){100 * found['gained']:>7.2f} % heavier, "
                f"{found['before']:.3f} to {found['after']:.3f} of the bound",
                flush=True,
            )
            results.append(found)
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = run(options.data)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
