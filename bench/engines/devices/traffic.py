"""Graphs larger than the GPU: what travels, and how long it takes.

``python -m bench.engines.devices.traffic [--json FILE] [--scale 20] [--mesh 64] [--data FOLDER]
[--parts counted,best_weight,pass,once,components,resident,scaling,cpu,counts,best,above]``

Without a GPU the counts alone are made, on simulated devices: entries that travel in graph sizes,
words that devices receive from each other, the share of entries touched by round, and the
difference of the greedy matching from the best one.  With a GPU everything is timed too; what, is
in timed.py.

What it finds is drawn by bench/papers/mandulak/devices_figures.py.

M. Mandulak. Large-scale graph analysis and matching on parallel architectures. PhD thesis,
Rensselaer Polytechnic Institute, 2025, chapter 4.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import matchwood
from bench import harness
from bench.engines.devices import timed
from matchwood import Devices, engines, generators
from tests.simulated_devices import matching as steps
from tests.simulated_devices import simulated

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
WARPS = 1024  # that share the rows of figure 4.8
FEW = 0.2  # of the entries: in 90 % of the iterations warps read less, in the thesis
LARGEST_EXACT = 60_000  # entries of a graph whose best matching is computed
COUNTED = ("counted", "best_weight")
TIMED = (*timed.PARTS, "counts", "best", "above")


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
        shares = warp_shares(G)
        few = sum(mean < FEW for mean, _ in shares) / len(shares)
        add(f"iterations in which warps read under {FEW:.0%} of their entries, lists=0", name, few,
            shares_of_warps=shares)  # fmt: skip
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


def warp_shares(G: Any) -> list[tuple[float, float]]:
    """Figure 4.8: the share of its entries that a warp reads in each round of LD-GPU.

    Mean and standard deviation over warps.  A warp takes every WARPS-th row; it reads those of free
    vertices.
    """
    view, free = G.undirected_weights(), []

    def recording(team: Any, stats: Any) -> None:
        begin_round(team, stats)
        free.append(team.workers[0].own.state < 0)

    begin_round = steps.Workers.begin_round
    with mock.patch.object(steps.Workers, "begin_round", recording):
        on_simulated(matchwood.weighted_matching, G, batches=10, lists=0)
    degrees = np.diff(view.indptr)
    warp = np.arange(view.n) % WARPS
    of_warp = np.maximum(np.bincount(warp, degrees), 1)
    shares = [np.bincount(warp, degrees * one) / of_warp for one in free[:-1]]
    return [(float(share.mean()), float(share.std())) for share in shares]


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
        try:
            best = matchwood.weighted_matching(G, method="exact").weight
        except matchwood.EngineUnavailable as error:
            print(f"the best matchings are not computed: {error}")
            return []
        rows.append({"graph": name, "entries": view.nnz, "per_cent": 100 * (1 - greedy / best)})
        print(f"{name}: {rows[-1]['per_cent']:.2f} % lighter than the best", flush=True)
    mean = statistics.mean(row["per_cent"] for row in rows)
    thesis = statistics.mean(THESIS.values())
    print(f"mean {mean:.2f} %; of {len(THESIS)} graphs in the thesis {thesis:.2f} %")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scale", type=int, default=20, help="of the R-MAT graph")
    parser.add_argument("--mesh", type=int, default=64, help="vertices of a side of the mesh")
    parser.add_argument("--data", type=Path, help="folder with graphs for table 4.2")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--parts", default=",".join(COUNTED + TIMED), help="which, with commas")
    parser.add_argument("--seconds", type=float, default=1e9, help="no part begins later")
    given = parser.parse_args()
    parts = tuple(given.parts.split(","))
    if wrong := set(parts) - {*COUNTED, *TIMED}:
        parser.error(f"unknown parts: {', '.join(sorted(wrong))}")
    found: dict[str, Any] = {
        "machine": harness.environment(),
        "scale": given.scale,
        "mesh": given.mesh,
        "counted": [],
        "best_weight": [],
        "timed": [],
    }

    def save() -> None:
        if given.json:
            given.json.write_text(json.dumps(found, indent=1) + "\n")

    if "counted" in parts:
        found["counted"] = counted(given.scale, given.mesh)
        save()
    if "best_weight" in parts:
        found["best_weight"] = from_the_best(given.data)
        save()
    if engines.gpu_available() and set(parts) & set(TIMED):
        timed.timed(given.scale, parts, found["timed"], save, given.seconds)
    save()


if __name__ == "__main__":
    main()
