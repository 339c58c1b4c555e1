"""What short augmentations win and cost: ``weighted_matching(method="augmented")`` beside suitor.

One round, and all of them.

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
from bench.harness import DATA
from bench.matching.weighted import with_random_weights
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


CALLS: dict[str, dict[str, Any]] = {
    "suitor": {"method": "suitor"},
    "one round": {"method": "augmented", "rounds": 1},
    "augmented": {"method": "augmented"},
}


def cpu_seconds(G: Any) -> dict[str, float]:
    """The median of each of the calls, which ran before."""
    times: dict[str, list[float]] = {name: [] for name in CALLS}
    for _ in range(ROUNDS):
        for name, options in CALLS.items():
            since = time.process_time()
            weighted_matching(G, threads=1, **options)
            times[name].append(time.process_time() - since)
    return {name: statistics.median(taken) for name, taken in times.items()}


def row(name: str, A: Any) -> harness.Result:
    G = matchwood.graph(A)
    before, one, after = (weighted_matching(G, **options) for options in CALLS.values())
    bound = min(matching_bound(G, found).value for found in (before, after))
    check_augmented(G, after)
    one.check(G)
    times = cpu_seconds(G)
    return {
        "title": name,
        "n": G.n,
        "seconds": times,
        "factor of one": times["one round"] / times["suitor"],
        "gained by one": one.weight / before.weight - 1,
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
                f"; one round{found['factor of one']:>6.2f}x (bar {BAR:g})"
                f"{100 * found['gained by one']:>6.2f} %; "
                f"all{found['factor']:>6.2f}x{100 * found['gained']:>6.2f} % heavier, "
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
