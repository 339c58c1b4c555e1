"""Speed-up of each method against the number of threads, on a mesh and an R-MAT graph.

``python -m bench.ordering.threads [--side 128] [--rmat 18] [--plot speedup.svg] [--json FILE]``
prints the numbers; ``--plot`` draws those of the mesh (with matplotlib).  ``--draw FILE --plot
speedup.svg`` only draws what a file of ``--json`` has, which may come from another machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

import matchwood
from bench import harness
from matchwood import generators
from matchwood.engines.cpu import available_cpus
from matchwood.ordering import check_rcm_order, pseudo_peripheral_vertex, reverse_cuthill_mckee

METHODS = ("auto", "leveled", "unordered", "batch_basic", "batch")
THREADS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
ROUNDS = 5  # of which the median counts


def measure(
    G: Any, methods: tuple[str, ...] = METHODS, most: int | None = None, rounds: int = ROUNDS
) -> dict[str, Any]:
    """Median seconds of the serial method, and of each method at 1, 2, 3, ... threads."""
    cpus = most or available_cpus()
    counts = sorted({cpus, *(count for count in THREADS if count <= cpus)})
    start = pseudo_peripheral_vertex(G, int(np.argmax(G.degrees)))
    G.undirected_pattern()

    def seconds(method: str, threads: int) -> float:
        taken = []
        for _ in range(rounds):
            begun = time.perf_counter()
            reverse_cuthill_mckee(G, start=start, method=method, threads=threads)
            taken.append(time.perf_counter() - begun)
        return statistics.median(taken)

    expected = reverse_cuthill_mckee(G, start=start, method="serial", threads=1)
    check_rcm_order(G, expected, start=start)
    for method in methods:
        perm = reverse_cuthill_mckee(G, start=start, method=method, threads=cpus)
        np.testing.assert_array_equal(perm, expected, method)
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
    plt = harness.pyplot()
    fig, ax = plt.subplots(figsize=(6, 4))
    threads = found["threads"]
    for method, times in found["times"].items():
        ax.plot(threads, [found["serial"] / t for t in times], "o-", label=method, markersize=4)
    ax.axhline(1, color="0.5", linewidth=0.8)
    ax.set(xlabel="threads", ylabel="times the serial method", title=title, ylim=(0, None))
    ax.set_xticks(threads, [str(count) for count in threads])
    ax.legend(frameon=False)
    harness.save(fig, Path(path))


def measure_all(side: int = 128, scale: int = 18) -> dict[str, Any]:
    graphs = {
        f"mesh {side}^3": lambda: generators.mesh((side, side, side)),
        f"R-MAT {scale}": lambda: harness.rmat(scale),
    }
    results = {}
    for title, make in graphs.items():
        results[title] = measure(matchwood.graph(make()))
        show(title, results[title])
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--side", type=int, default=128)
    parser.add_argument("--rmat", type=int, default=18)
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--draw", type=Path, help="measure nothing, read the results from here")
    parser.add_argument("--plot", help="draw the speed-up on the mesh into this file")
    options = parser.parse_args()
    if options.draw:
        found = json.loads(options.draw.read_text())["results"]
    else:
        found = measure_all(options.side, options.rmat)
    if options.json:
        made = {"environment": harness.environment(), "results": found}
        options.json.write_text(json.dumps(made, indent=1))
    if options.plot:
        title = next(title for title in found if title.startswith("mesh"))
        plot(found[title], title, options.plot)
