"""What `prefer` does to maximal matchings: edges, rounds and time.

``python -m bench.matching.prefer [--small] [--rounds N] [--json FILE]`` prints, for generated
graphs and the graphs of $MATCHWOOD_DATA where the folder is there, the edges of each choice over
those of a largest matching, the rounds, and the time over that of ``prefer="random"``: the median
of N rounds in which the choices take turns, one thread.  ``serial`` is the paper's algorithm 1.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matchwood
from bench import harness
from bench.papers.fagginger_auer.greedy import generated, stored
from matchwood import generators
from matchwood.matching import maximal_matching
from matchwood.matching.proposal import PREFER
from matchwood.matching.proposal.check import check_maximal_matching

SEEDS = 3  # of which sizes and rounds are the mean
LEAST = 4000  # vertices of a stored graph


def graphs(small: bool) -> Iterator[tuple[str, Any]]:
    for name, make in generated(small=True).items():  # a largest matching takes long on a grid
        yield name, make()
    yield "R-MAT 16", generators.rmat(11 if small else 16, rng=1)
    for name, A, _ in stored(small):
        if A.shape[0] >= LEAST or small:
            yield name, A


def row(name: str, A: Any, rounds: int) -> harness.Result:
    G = matchwood.graph(A)
    largest = matchwood.maximum_matching(G).cardinality
    serial = [maximal_matching(G, method="serial", rng=s).cardinality for s in range(SEEDS)]
    found = {p: [maximal_matching(G, prefer=p, rng=s) for s in range(SEEDS)] for p in PREFER}
    calls = {p: functools.partial(maximal_matching, G, prefer=p, threads=1) for p in PREFER}
    timed = harness.compare(
        f"maximal matching, prefer, {name}",
        calls,
        verify=lambda who, answer: check_maximal_matching(G, answer),
        baseline="random",
        rounds=rounds,
        quiet=True,
    )
    base = timed["rows"]["random"]["median"]
    return {
        "title": name,
        "n": G.n,
        "largest": largest,
        "serial": sum(serial) / SEEDS / largest,
        "sizes": {p: sum(m.cardinality for m in found[p]) / SEEDS / largest for p in PREFER},
        "rounds": {p: sum(m.rounds for m in found[p]) / SEEDS for p in PREFER},
        "times": {p: timed["rows"][p]["median"] / base for p in PREFER},
    }


def run(small: bool = False, rounds: int = harness.ROUNDS) -> list[harness.Result]:
    heads = "".join(f"{p:>24}" for p in PREFER)
    print(f"{'graph':26}{'vertices':>10}{'serial':>8}{heads}   (size, rounds, time)")
    results = []
    for name, A in graphs(small):
        found = row(name, A, rounds)
        cells = "".join(
            f"{found['sizes'][p]:>12.4f}{found['rounds'][p]:>6.0f}{found['times'][p]:>6.2f}"
            for p in PREFER
        )
        print(f"{name:26}{found['n']:>10,}{found['serial']:>8.4f}{cells}", flush=True)
        results.append(found)
    for key in ("sizes", "rounds", "times"):
        means = {
            p: math.exp(sum(math.log(r[key][p]) for r in results) / len(results)) for p in PREFER
        }
        print(f"geometric mean of {key}: " + ", ".join(f"{p} {m:.4f}" for p, m in means.items()))
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--rounds", type=int, default=harness.ROUNDS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = run(options.small, options.rounds)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
