"""Figures 5 and 6 of the paper: the phases of a setup, the scans beside a copy, the speed-up over
the sequential walk.

``python -m bench.papers.klein_strzodka.figures5_6 [--engine cpu|gpu] [--side 800] [--out FOLDER]``
prints the numbers and writes phases.svg, scans.svg, speedup.svg (with matplotlib), figures.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import matchwood
from bench import harness
from bench.harness.gpu import device_ms
from matchwood import engines, generators
from matchwood.factors import degree_factor
from matchwood.forests import cpu, linear_forest, tridiagonal_of
from matchwood.primitives.path_scan import path_scan

PHASES = ("factor", "paths", "cycles", "permutation", "coefficients")
REPEATS = 5  # of which the median counts


def matrices(side: int) -> dict[str, Any]:
    """Long paths and cycles, short ones, and a graph without locality; float32."""

    def weighted(A: Any) -> Any:
        return generators.random_weights(A, rng=1, dtype=np.float32)

    cube = max(3, round((side * side) ** (1 / 3)))
    made = {f"aniso{k}": generators.aniso(k, (side, side), dtype=np.float32) for k in (1, 2, 3)}
    made["grid, random weights"] = weighted(generators.grid((side, side)))
    made["mesh, random weights"] = weighted(generators.mesh((cube, cube, cube)))
    points = min(side * side // 2, 300_000)  # the triangulation is SciPy's, and takes its time
    made["Delaunay, random weights"] = weighted(generators.delaunay(points, rng=1))
    return made


def seconds_of(function: Callable[[], Any], engine: str) -> float:
    """Median of a few calls; on the GPU by events, of several calls in a row."""
    if engine == "gpu":
        return device_ms(function, calls=3) / 1e3
    function()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def measure(A: Any, engine: str) -> dict[str, Any]:
    """The numbers of all three figures for one matrix."""
    G = matchwood.graph(A).on(engine)
    G.undirected_weights()
    xp = engines.cupy() if engine == "gpu" else np
    given = degree_factor(G, 2, ties="index")
    forest = linear_forest(G, factor=given)
    phases = {"factor": seconds_of(lambda: degree_factor(G, 2, ties="index"), engine)}
    known = [linear_forest(G, factor=given).seconds for _ in range(REPEATS)]
    phases |= {name: float(np.median([one[name] for one in known])) for name in known[0]}
    phases["coefficients"] = seconds_of(lambda: tridiagonal_of(G, forest), engine)
    ones = xp.ones(G.n, np.int32)
    state, copied = xp.zeros((G.n, 4), np.int32), xp.empty((G.n, 4), np.int32)
    host = [engines.moved(array, "cpu") for array in given]
    return {
        "vertices": G.n,
        "entries": G.nnz,
        "longest": int(np.diff(engines.moved(forest.offsets, "cpu")).max(initial=0)),
        "cycles": int(forest.removed.shape[0]),
        "phases": phases,
        "forest": seconds_of(lambda: linear_forest(G, factor=given), engine),
        "walk": seconds_of(lambda: cpu.forest(*host, method="walk"), "cpu"),
        "copy": seconds_of(lambda: _copy(state, copied), engine),
        "scans": {
            method: seconds_of(lambda m=method: path_scan(given.neighbours, ones, method=m), engine)
            for method in ("doubling", "splitters")
        },
    }


def _copy(source: Any, target: Any) -> None:
    if isinstance(source, np.ndarray):
        np.copyto(target, source)
    else:
        target.data.copy_from_device_async(source.data, source.nbytes)


def draw(found: dict[str, Any], engine: str, folder: Path) -> None:
    """The three pictures."""
    plt = harness.pyplot()
    names = list(found)
    at = np.arange(len(names))

    fig, ax = plt.subplots(figsize=(8, 3.6))
    left = np.zeros(len(names))
    whole = np.array([sum(found[name]["phases"].values()) for name in names])
    for phase in PHASES:
        part = np.array([found[name]["phases"][phase] for name in names]) / whole
        ax.barh(at, part, left=left, label=phase)
        left += part
    for y, seconds in zip(at, whole, strict=True):
        ax.text(1.01, y, f"{1e3 * seconds:.3g} ms", va="center")
    ax.set(yticks=at, yticklabels=names, xlim=(0, 1.12), xlabel=f"part of the time, {engine}")
    ax.legend(ncols=5, loc="lower center", bbox_to_anchor=(0.45, 1), frameon=False, fontsize=8)
    harness.save(fig, folder / "phases.svg")

    fig, ax = plt.subplots(figsize=(8, 3.2))
    rate = {name: 32e-9 * row["vertices"] / row["copy"] for name, row in found.items()}
    ax.bar(at - 0.27, rate.values(), 0.25, label="copy of the state, 16 bytes a vertex")
    for shift, method in ((0, "doubling"), (0.27, "splitters")):
        per_scan = [16e-9 * row["vertices"] / row["scans"][method] for row in found.values()]
        ax.bar(at + shift, per_scan, 0.25, label=f"table in, result out, by {method}")
    ax.set(xticks=at, ylabel="GB/s", yscale="log")
    ax.set_xticklabels(names, rotation=12)
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False, fontsize=8)
    harness.save(fig, folder / "scans.svg")

    fig, ax = plt.subplots(figsize=(8, 3.2))
    gain = [row["walk"] / row["forest"] for row in found.values()]
    ax.bar(at, gain, 0.5)
    for x, times in zip(at, gain, strict=True):
        ax.text(x, times, f"{times:.3g}x", ha="center", va="bottom")
    ax.axhline(1, color="0.5", linewidth=0.8)
    ax.set(xticks=at, ylabel="times the sequential walk")
    ax.set_xticklabels(names, rotation=12)
    harness.save(fig, folder / "speedup.svg")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="figures")
    parser.add_argument("--engine", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--side", type=int, default=800, help="points along a side of the grids")
    parser.add_argument("--out", type=Path, default=Path("bench-results") / "forests")
    parser.add_argument("--draw", type=Path, help="only draw what this figures.json has")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.draw is not None:
        draw(json.loads(options.draw.read_text())["results"], options.engine, options.out)
        return
    found = {}
    for name, A in matrices(options.side).items():
        found[name] = row = measure(A, options.engine)
        phases = "  ".join(f"{key} {1e3 * value:.3g}" for key, value in row["phases"].items())
        print(
            f"{name:26s} {row['vertices']:>9,} vertices, longest path {row['longest']:>7,}, "
            f"{row['cycles']:>6,} cycles; ms: {phases}; walk / forest "
            f"{row['walk'] / row['forest']:.2f}; scans / copy "
            + ", ".join(f"{k} {v / row['copy']:.3g}" for k, v in row["scans"].items()),
            flush=True,
        )
    made = {"environment": harness.environment(), "results": found}
    (options.out / "figures.json").write_text(json.dumps(made, indent=1))
    try:
        draw(found, options.engine, options.out)
    except ImportError as error:
        print(f"no pictures: {error}")


if __name__ == "__main__":
    main()
