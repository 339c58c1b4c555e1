"""Speed-up of each method against the number of threads, on meshes and an R-MAT graph.

python -m bench.ordering.threads [--plot speedup.png] [--side 128] [--rmat 18]
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

import matchwood
from bench import harness
from matchwood.ordering import check_rcm_order, pseudo_peripheral_vertex, reverse_cuthill_mckee
from matchwood.teams import available_cpus

METHODS = ("auto", "leveled", "unordered", "batch_basic", "batch")
ROUNDS = 5


def measure(
    G: Any, methods: tuple[str, ...] = METHODS, most: int | None = None, rounds: int = ROUNDS
) -> dict[str, Any]:
    """Median seconds of the serial method and of each method at 1, 2, 4, ... threads."""
    cpus = most or available_cpus()
    counts = sorted({*(2**k for k in range(cpus.bit_length()) if 2**k <= cpus), cpus})
    start = pseudo_peripheral_vertex(G, int(np.argmax(G.degrees)))

    def seconds(method: str, threads: int) -> float:
        taken = []
        for _ in range(rounds):
            begun = time.perf_counter()
            reverse_cuthill_mckee(G, start=start, method=method, threads=threads)
            taken.append(time.perf_counter() - begun)
        return statistics.median(taken)

    for method in methods:
        perm = reverse_cuthill_mckee(G, start=start, method=method, threads=cpus)
        check_rcm_order(G, perm, start=start)
    serial = seconds("serial", 1)
    times = {method: [seconds(method, count) for count in counts] for method in methods}
    return {"threads": counts, "serial": serial, "times": times}


def show(title: str, found: dict[str, Any]) -> None:
    print(f"{title}: serial {found['serial'] * 1e3:.1f} ms; speed-up over that at so many threads")
    for method, times in found["times"].items():
        ratios = "  ".join(
            f"{threads}: {found['serial'] / taken:5.2f}"
            for threads, taken in zip(found["threads"], times, strict=True)
        )
        print(f"  {method:12} {ratios}", flush=True)


def plot(found: dict[str, Any], title: str, path: str) -> None:
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(6, 4))
    for method, times in found["times"].items():
        ax.plot(found["threads"], [found["serial"] / t for t in times], "o-", label=method)
    ax.plot(found["threads"], found["threads"], ":", color="grey", label="ideal")
    ax.set(xscale="log", yscale="log", xlabel="threads", ylabel="speed-up over serial", title=title)
    ax.legend()
    fig.savefig(path, bbox_inches="tight")


def run(side: int = 128, scale: int = 18, path: str | None = None) -> list[harness.Result]:
    results = []
    graphs = {f"mesh {side}^3": harness.mesh(side), f"R-MAT {scale}": harness.rmat(scale)}
    for title, A in graphs.items():
        G = matchwood.graph(A)
        found = measure(G)
        show(title, found)
        if path and title.startswith("mesh"):
            plot(found, title, path)
        results.append({"title": title, **found})
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--plot")
    parser.add_argument("--side", type=int, default=128)
    parser.add_argument("--rmat", type=int, default=18)
    options = parser.parse_args()
    run(options.side, options.rmat, options.plot)
