"""Graphs larger than the GPU: what travels, and how long it takes.

``python -m bench.matching.beyond_gpu [--json FILE] [--scale 20] [--mesh 64] [--data FOLDER]``

Without a GPU the counts alone are made, on simulated devices: entries that travel in graph sizes,
words that devices receive from each other, the share of entries touched by round, and the
difference of the greedy matching from the best one.  With a GPU everything is timed too:

    copies      T: indices and data from pinned memory in large pieces, nothing else
    passes      the first pass in 1, 3, 5, 10 and 40 batches, and whole matchings, in units of T
    scaling     batches 1, 3, 5, 10 on 1, 2, 4, 8 partitions of one device, with lists and without
                (figures 4.4 and 4.6 of the thesis), and the parts of the time (4.5 and 4.7)

M. Mandulak. Large-scale graph analysis and matching on parallel architectures. PhD thesis,
Rensselaer Polytechnic Institute, 2025, chapter 4.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import matchwood
from bench import harness
from matchwood import Devices, engines, generators
from matchwood.beyond import simulated

EDGE_FACTOR = 16
PLENTY = 1 << 50  # bytes of a simulated device
LISTS = (0, 1, 4, 8, 16)
THESIS = {  # table 4.2: per cent that the matching is lighter than the best
    "Queen_4147": 4.8, "mycielskian18": 12.5, "HV15R": 2.8, "com-Orkut": 2.6, "kmer_U1a": 8.9,
    "kmer_V2a": 9.9,
}  # fmt: skip
BARS = {
    "matching, R-MAT, a quarter": 1.2, "matching, mesh, half": 1.2, "factor, R-MAT, half": 1.4,
    "components, R-MAT": 0.1, "words of 4 partitions": 2.0,
}  # fmt: skip
LARGEST_EXACT = 60_000  # entries of a graph whose best matching is computed
REPEATS = 7


def graphs(scale: int, mesh: int) -> dict[str, Callable[[], Any]]:
    """With uniform weights in float32."""

    def weighted(A: Any) -> Any:
        B = generators.random_weights(A, rng=1)
        return matchwood.graph((B.indptr, B.indices, B.data.astype(np.float32, copy=False)))

    return {
        f"R-MAT {scale}": lambda: weighted(generators.rmat(scale, edge_factor=EDGE_FACTOR, rng=1)),
        f"mesh {mesh}^3": lambda: weighted(generators.mesh((mesh,) * 3)),
    }


def bytes_of(G: Any) -> int:
    """Of indices and data, as they travel."""
    view = G.undirected_weights()
    return int(view.nnz) * (4 + view.data.itemsize)


def on_simulated(function: Callable[..., Any], G: Any, *arguments: Any, **options: Any) -> Any:
    """The statistics of a call on simulated devices."""
    with simulated(PLENTY):
        devices = options.pop("devices", 0)
        return function(G, *arguments, engine=Devices(devices, **options)).stats


def counted(scale: int, mesh: int) -> list[dict[str, Any]]:
    """What travels; the same numbers on every machine."""
    rows: list[dict[str, Any]] = []

    def add(what: str, graph: str, value: float, bar: str = "", **more: Any) -> None:
        row = {"what": what, "graph": graph, "value": value, **more}
        if bar:
            row["bar"] = BARS[bar]
        rows.append(row)
        told = f", bar {BARS[bar]:g} {'met' if value <= BARS[bar] else 'MISSED'}" if bar else ""
        notes = ", ".join(f"{key} {one}" for key, one in more.items())
        print(f"{graph}: {what} {value:.3f}{told} {notes}", flush=True)

    for name, make in graphs(scale, mesh).items():
        G = make()
        is_rmat = name.startswith("R-MAT")
        for lists in LISTS:
            stats = on_simulated(matchwood.weighted_matching, G, batches=10, lists=lists)
            add("graph sizes of a matching", name, stats.graph_sizes, lists=lists)
        part = 4 if is_rmat else 2
        stats = on_simulated(matchwood.weighted_matching, G, memory=bytes_of(G) // part)
        bar = "matching, R-MAT, a quarter" if is_rmat else "matching, mesh, half"
        touched = [one.entries / stats.entries for one in stats.rounds]
        add(f"graph sizes of a matching, memory 1/{part}", name, stats.graph_sizes, bar,
            lists=stats.lists, batches=stats.batches[0], touched_by_round=touched)  # fmt: skip
        stats = on_simulated(matchwood.weighted_matching, G, devices=(0,) * 4, batches=3)
        add("words received, 4 partitions, in n", name, stats.words_exchanged / G.n,
            "words of 4 partitions", rounds=len(stats.rounds))  # fmt: skip
        stats = on_simulated(matchwood.connected_components, G)
        add("graph sizes of components", name, stats.graph_sizes,
            "components, R-MAT" if is_rmat else "")  # fmt: skip
        for lists in LISTS[2:]:
            stats = on_simulated(matchwood.degree_factor, G, 2, batches=10, lists=lists)
            add("graph sizes of factor(n=2, M=5)", name, stats.graph_sizes, lists=lists)
        stats = on_simulated(matchwood.degree_factor, G, 2, memory=bytes_of(G) // 2)
        add("graph sizes of factor(n=2, M=5), memory 1/2", name, stats.graph_sizes,
            "factor, R-MAT, half" if is_rmat else "", lists=stats.lists)  # fmt: skip
    return rows


def from_the_best(folder: Path | None) -> list[dict[str, Any]]:
    """Table 4.2: by how many per cent the greedy matching is lighter than the best one."""
    made: dict[str, Callable[[], Any]] = {
        "R-MAT 12": lambda: generators.rmat(12, edge_factor=8, rng=1),
        "grid 60^2": lambda: generators.grid((60, 60)),
        "Delaunay 3000": lambda: generators.delaunay(3000, rng=1),
    }
    for path in sorted((folder or Path("none")).glob("graphs/*.mtx.gz")):
        if path.stat().st_size < 1 << 20:
            made[path.name.partition(".")[0]] = lambda path=path: matchwood.io.read(path)
    rows = []
    for name, make in made.items():
        matrix = make()
        if matrix.shape[0] != matrix.shape[1]:
            continue
        A = matchwood.graph(matrix, weight=None)
        view = A.undirected_pattern()
        if not 0 < view.nnz <= LARGEST_EXACT:
            continue
        G = matchwood.graph(generators.random_weights(A.sparse(), rng=1))
        greedy = matchwood.weighted_matching(G, method="dominant").weight
        best = matchwood.weighted_matching(G, method="exact").weight
        rows.append({"graph": name, "entries": view.nnz, "per_cent": 100 * (1 - greedy / best)})
        print(f"{name}: {rows[-1]['per_cent']:.2f} % lighter than the best", flush=True)
    mean = statistics.mean(row["per_cent"] for row in rows)
    thesis = statistics.mean(THESIS.values())
    print(f"mean {mean:.2f} %; of {len(THESIS)} graphs in the thesis {thesis:.2f} %")
    return rows


# Timed, with a GPU


def best_seconds(call: Callable[[], Any]) -> float:
    """Median of several calls, the first one not counted."""
    call()
    times = []
    for _ in range(REPEATS):
        engines.cupy().cuda.Device().synchronize()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def copy_seconds(G: Any) -> float:
    """T: one copy of indices and data from pinned memory, in large pieces."""
    import cupyx

    cupy, view = engines.cupy(), G.undirected_weights()
    pairs = []
    for array in (view.indices, view.data):
        pinned = cupyx.empty_pinned(array.shape, array.dtype)
        pinned[...] = array
        pairs.append((cupy.empty(array.shape, array.dtype), pinned))

    def copy() -> None:
        for there, here in pairs:
            there.set(here)
        cupy.cuda.Device().synchronize()

    return best_seconds(copy)


def timed(scale: int) -> list[dict[str, Any]]:
    """Whole matchings and first passes, in units of one copy of the graph."""
    rows: list[dict[str, Any]] = []
    name, make = next(iter(graphs(scale, 8).items()))
    G = make()
    T = copy_seconds(G)
    print(f"{name}: T {1e3 * T:.2f} ms", flush=True)
    quarter = bytes_of(G) // 4
    for batches in (None, 3, 5, 10, 40):
        engine = Devices(memory=None if batches else quarter, batches=batches, lists=8, stats=True)
        found = matchwood.weighted_matching(G, engine=engine)
        first = found.stats.rounds[0].seconds.get("transfer", 0.0)
        plain = Devices(memory=engine.memory, batches=batches)
        whole = best_seconds(functools.partial(matchwood.weighted_matching, G, engine=plain))
        row = {"graph": name, "batches": batches, "first_pass": first / T, "whole": whole / T}
        rows.append(row)
        print(f"  batches {batches}: copies {first / T:.3f} T, whole {whole / T:.3f} T", flush=True)
    for partitions in (1, 2, 4, 8):
        for batches in (1, 3, 5, 10):
            for lists in ("auto", 0):
                engine = Devices((0,) * partitions, batches=batches, lists=lists, stats=True)
                start = time.perf_counter()
                stats = matchwood.weighted_matching(G, engine=engine).stats
                passed = time.perf_counter() - start
                rows.append({
                    "graph": name, "partitions": partitions, "batches": batches, "lists": lists,
                    "seconds": passed, "phases": stats.seconds(), "sizes": stats.graph_sizes,
                })  # fmt: skip
                told = f"  {partitions} partitions, {batches} batches, lists {lists}: "
                print(f"{told}{1e3 * passed:.1f} ms, {stats.graph_sizes:.2f} sizes", flush=True)
    indices = G.undirected_pattern().indices.nbytes / bytes_of(G) * T
    seconds = best_seconds(lambda: matchwood.connected_components(G, engine=Devices(batches=4)))
    rows.append({"graph": name, "components": seconds / indices})
    print(f"  components: {seconds / indices:.3f} of a copy of indices", flush=True)
    return rows


def draw(rows: list[dict[str, Any]], folder: Path) -> None:
    """The share of entries that travels in each round."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    for row in rows:
        if "touched_by_round" in row:
            shares = row["touched_by_round"]
            axes.semilogy(
                range(1, len(shares) + 1), np.maximum(shares, 1e-7), "o-", label=row["graph"]
            )
    axes.set_xlabel("round")
    axes.set_ylabel("entries that travel, of all")
    axes.legend()
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "beyond_gpu_rounds.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scale", type=int, default=20, help="of the R-MAT graph")
    parser.add_argument("--mesh", type=int, default=64, help="vertices of a side of the mesh")
    parser.add_argument("--data", type=Path, help="folder with graphs for table 4.2")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    found: dict[str, Any] = {
        "machine": harness.environment(),
        "scale": given.scale,
        "mesh": given.mesh,
    }
    found["counted"] = counted(given.scale, given.mesh)
    found["from_the_best"] = from_the_best(given.data)
    if engines.gpu_available():
        found["timed"] = timed(given.scale)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    if given.pictures:
        draw(found["counted"], given.pictures)


if __name__ == "__main__":
    main()
