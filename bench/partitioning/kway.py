"""Partitions against METIS, KaMinPar and Mt-KaHyPar: the cut of several seeds, and the time.

python -m bench.partitioning.kway [GRAPH ...]    by default GRAPHS and the standard ones
python -m bench.partitioning.kway gpu            ours on a GPU, by phase: the host's start apart

Each program gets the same graph, k and imbalance, two threads, and SEEDS seeds; METIS has one.
Ratios are geometric means over the seeds: ours divided by theirs.  Programs that are not installed
are left out (pymetis, kaminpar, mtkahypar).
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import matchwood
from bench import harness
from bench.harness import gpu

GRAPHS = (
    "4elt", "wing", "copter2", "delaunay_n15", "rgg_n_2_15_s0", "luxembourg_osm", "usroads",
    "USA-road-d.NY", "bcsstk33", "astro-ph", "PGPgiantcompo", "email-Enron", "cnr-2000",
)  # fmt: skip
BLOCKS = (2, 8, 32, 128)
SEEDS = 5
THREADS = 2
IMBALANCE = 0.03
# What the cut (at effort 1 and 2) and the time (at effort 1) may be, divided by theirs
CUTS = {"METIS": (0.92, 0.90), "KaMinPar": (0.98, 0.96), "Mt-KaHyPar": (1.02, 1.00)}
GPU_BLOCKS = 64
GPU_BARS = {"mesh 128^3": 80, "R-MAT 22": 300, "grid 2048^2": 60}  # milliseconds
TIMES = {"KaMinPar": 2.0, "KaMinPar eco": 0.6, "Mt-KaHyPar": 0.25}

Program = Callable[[int, int], Any]  # (k, seed) -> labels


def metis(G: Any) -> Program | None:
    pymetis = harness.peer("pymetis")
    if pymetis is None:
        return None
    view = G.undirected_pattern()
    adjacency = pymetis.CSRAdjacency(view.indptr.tolist(), view.indices.tolist())

    def run(k: int, seed: int) -> Any:
        options = pymetis.Options(seed=seed, ufactor=round(1000 * IMBALANCE))
        return pymetis.part_graph(k, adjacency, recursive=False, options=options)[1]

    return run


def kaminpar(G: Any, context: str) -> Program | None:
    module = harness.peer("kaminpar")
    if module is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.metis")
        matchwood.io.write(path, G.sparse_weights())
        graph = module.load_graph(str(path), module.GraphFileFormat.METIS)

    def run(k: int, seed: int) -> Any:
        module.reseed(seed)
        solver = module.KaMinPar(THREADS, module.context_by_name(context))
        return solver.compute_partition(graph, k, IMBALANCE)

    return run


def mtkahypar(G: Any) -> Program | None:
    module = harness.peer("mtkahypar")
    if module is None:
        return None
    kit = module.initialize(THREADS)
    preset = module.PresetType.DETERMINISTIC
    view = G.undirected_pattern()
    u = np.repeat(np.arange(view.n), np.diff(view.indptr))
    once = u < view.indices
    edges = list(zip(u[once].tolist(), view.indices[once].tolist(), strict=True))
    graph = kit.create_graph(kit.context_from_preset(preset), view.n, len(edges), edges)

    def run(k: int, seed: int) -> Any:
        context = kit.context_from_preset(preset)
        context.set_partitioning_parameters(k, IMBALANCE, module.Objective.CUT)
        context.logging = False
        module.set_seed(seed)
        return graph.partition(context).get_partition()

    return run


def programs(G: Any) -> dict[str, Program]:
    """Ours at each effort, and those that are installed."""

    def ours(effort: int) -> Program:
        return lambda k, seed: (
            matchwood.partition(
                G, k, imbalance=IMBALANCE, effort=effort, rng=seed, threads=THREADS
            ).labels
        )

    found: dict[str, Program | None] = {f"matchwood {effort}": ours(effort) for effort in (0, 1, 2)}
    found |= {
        "METIS": metis(G),
        "KaMinPar": kaminpar(G, "default"),
        "KaMinPar eco": kaminpar(G, "eco"),
        "Mt-KaHyPar": mtkahypar(G),
    }
    return {name: program for name, program in found.items() if program is not None}


def graphs(names: tuple[str, ...]) -> dict[str, Any]:
    """Graphs without weights, by name; standard ones where no names are given."""
    found = {}
    for name in names or GRAPHS:
        files = sorted(path for path in harness.DATA.glob(f"*/{name}.*") if ".co" not in path.name)
        if files:
            A = matchwood.graph(matchwood.io.read(files[0]), weight=None)
            view = A.undirected_pattern()
            found[name] = matchwood.graph((view.indptr, view.indices))
    if not names:
        for name, A in harness.standard_graphs().items():
            found[name] = matchwood.graph((A.indptr, A.indices))
    return found


def mean(values: list[float]) -> float:
    """The geometric mean; a cut of 0 counts as 1."""
    return math.exp(sum(math.log(max(value, 1e-9)) for value in values) / len(values))


def measure(G: Any, k: int, runs: dict[str, Program]) -> dict[str, dict[str, float]]:
    """For each program the mean of the cuts and the shortest time; all answers are verified."""
    limit = math.floor((1 + IMBALANCE) * math.ceil(G.n / k) + 1e-9)
    found: dict[str, dict[str, float]] = {}
    for name, program in runs.items():
        cuts, times = [], []
        for seed in range(SEEDS):
            began = time.perf_counter()
            labels = program(k, seed)
            times.append(time.perf_counter() - began)
            labels = np.asarray(labels, np.int64)
            cut = matchwood.partitioning.kway.cut_as_given(G, labels)
            heaviest = int(np.bincount(labels, minlength=k).max())
            if name.startswith("matchwood") and heaviest > limit:
                raise AssertionError(f"{name}, k = {k}: a block weighs {heaviest}, limit {limit}")
            cuts.append(max(cut, 1.0))
        found[name] = {"cut": mean(cuts), "seconds": min(times)}
    return found


def run(names: tuple[str, ...] = ()) -> list[harness.Result]:
    results: list[harness.Result] = []
    for graph, G in graphs(names).items():
        runs = programs(G)
        for k in BLOCKS:
            rows = measure(G, k, runs)
            results.append({"title": f"partition, {graph}, k = {k}", "rows": rows})
            told = ", ".join(f"{n} {r['cut']:.0f} ({r['seconds']:.2f} s)" for n, r in rows.items())
            print(f"{graph}, k = {k}: {told}", flush=True)
    for theirs in (*CUTS, "KaMinPar eco"):
        rows_of = [result["rows"] for result in results if theirs in result["rows"]]
        if not rows_of:
            continue
        for effort in (0, 1, 2):
            ours = f"matchwood {effort}"
            cut = mean([rows[ours]["cut"] / rows[theirs]["cut"] for rows in rows_of])
            taken = mean([rows[ours]["seconds"] / rows[theirs]["seconds"] for rows in rows_of])
            bars = CUTS[theirs][effort - 1] if theirs in CUTS and effort else None
            print(f"{ours} / {theirs}: cut {cut:.3f} (bar {bars}), time {taken:.2f} "
                  f"(bar {TIMES.get(theirs) if effort == 1 else None})")  # fmt: skip
    return results


def run_gpu() -> list[harness.Result]:
    """Milliseconds of a call and of its phases, for a prepared graph on the GPU."""
    results: list[harness.Result] = []
    for name, A in gpu.made(gpu.graphs()):
        G, found = matchwood.graph(A), []

        def call(G: Any = G, found: Any = found) -> Any:
            found.append(matchwood.partition(G, GPU_BLOCKS))

        row = gpu.timed(f"partition, {name}, k = {GPU_BLOCKS}", call, GPU_BARS[name], calls=5)
        phases = {name: 1e3 * seconds for name, seconds in found[-1].seconds.items()}
        print(", ".join(f"{name} {taken:.1f} ms" for name, taken in phases.items()))
        for level in found[-1].levels:
            print(f"{level.n:>9,} vertices: cut {level.before:,} -> {level.after:,} in "
                  f"{level.iterations} iterations, {1e3 * level.seconds:.1f} ms")  # fmt: skip
        results.append({"title": f"partition on a GPU, {name}", "rows": {"matchwood": row}})
    return results


if __name__ == "__main__":
    chosen = tuple(word for word in sys.argv[1:] if not word.startswith("-"))
    if chosen == ("gpu",):
        sys.argv.remove("gpu")
        harness.main(run_gpu)
    elif chosen:
        run(chosen)
    else:
        harness.main(run)
