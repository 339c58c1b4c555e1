"""Figure 3 of Klein and Strzodka (ICPP 2022): one pass of proposals beside a product ``A @ x``.

``python -m bench.papers.klein_strzodka.figure3 [--engine gpu] [--side 2500] [--data DIR] [A.mtx
...] [--json FILE] [--out FOLDER]``.  The product is SciPy's with one thread, or cuSPARSE's; values
are float32.  A pass looks at every row and writes the n heaviest entries with their columns.  It is
that of the first round: on the CPU with one thread and with all; on the GPU also that of the
second, which skips the rows that have n neighbours by then.

The paper reaches 0.3 to 0.5 of the speed of a product on a GeForce 2080 Ti.  --json adds to a file
that may hold the results of another engine; --draw FILE --out FOLDER only draws.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness, papers
from bench.harness.gpu import device_ms
from bench.papers.klein_strzodka.printed import PAPER
from bench.papers.klein_strzodka.tables import generated
from matchwood.engines.cpu import default_threads
from matchwood.factors.rounds.cpu import Pass

SIZES = (1, 2, 3, 4)
ROUNDS = 9  # calls in turn; the median counts


def on_cpu(A: Any) -> dict[str, float]:
    """Seconds, all in turn."""
    view = matchwood.graph(A).undirected_weights()
    S = sp.csr_array((view.data, view.indices, view.indptr), shape=A.shape)
    x = np.ones(view.n, view.data.dtype)
    calls: dict[str, Callable[[], Any]] = {"A @ x": lambda: S @ x}
    for threads in sorted({1, default_threads()}):
        for n in SIZES:
            calls[f"n={n}, threads={threads}"] = Pass(view, n, threads=threads)
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - start)
    return {name: float(np.median(times)) for name, times in taken.items()}


def on_gpu(A: Any) -> dict[str, float]:
    """Seconds on the device."""
    import cupyx.scipy.sparse

    from matchwood import engines
    from matchwood.factors.result import Plan
    from matchwood.factors.rounds.gpu import BEGIN, CONFIRM, PROPOSE, TILE_SIZE, Rounds
    from matchwood.primitives.row_reduce.gpu import Tiles

    cupy = engines.cupy()
    view = matchwood.graph(A).on("gpu").undirected_weights()
    S = cupyx.scipy.sparse.csr_matrix((view.data, view.indices, view.indptr), shape=A.shape)
    x = cupy.ones(view.n, view.data.dtype)
    taken = {"A @ x": device_ms(lambda: S @ x) / 1e3}
    tiles = Tiles(view.indptr, TILE_SIZE)
    for n in SIZES:
        rounds = Rounds(view, Plan(n, 2, 1, 0, 0, 0, False), tiles)
        rounds.launch(BEGIN)
        for k, name in enumerate(("first", "second")):
            # a proposal pass changes nothing that the next one reads
            ms = device_ms(lambda r=rounds, k=k: r.launch(PROPOSE, k, k + 1))
            taken[f"n={n}, {name} round"] = ms / 1e3
            rounds.launch(CONFIRM, k, k + 1)
    return taken


def draw(results: dict[str, Any], path: Path) -> None:
    """For each engine the speed of a pass, a product being 1."""
    plt = harness.pyplot()
    fig, axes = plt.subplots(len(results), 1, figsize=(8, 2.8 * len(results)), squeeze=False)
    for ax, (engine, found) in zip(axes[:, 0], results.items(), strict=True):
        names = list(found)
        passes = [name for name in next(iter(found.values()))["seconds"] if name != "A @ x"]
        width = 0.8 / len(passes)
        for k, which in enumerate(passes):
            speed = [row["seconds"]["A @ x"] / row["seconds"][which] for row in found.values()]
            at = np.arange(len(names)) + (k - (len(passes) - 1) / 2) * width
            ax.bar(at, speed, width, label=which)
        ax.axhspan(0.3, 0.5, color="0.9", zorder=0, label="paper, all n")
        ax.axhline(1, color="0.5", linewidth=0.8)
        ax.set(xticks=range(len(names)), ylabel=f"speed, A @ x = 1 ({engine})")
        ax.set_xticklabels(names)
        ax.legend(ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False, fontsize=8)
    fig.tight_layout()
    harness.save(fig, path)


def write(results: dict[str, Any], folder: Path, source: Path | None) -> None:
    """The part of the page: a table for each engine, and the picture."""
    text = ""
    for engine, found in results.items():
        passes = list(next(iter(found.values()))["seconds"])
        rows = [
            [name, *(f"{1e3 * row['seconds'][which]:.2f}" for which in passes)]
            for name, row in found.items()
        ]
        machine = papers.machine(source, engine)
        title = f"Milliseconds, {machine or engine}"
        text += papers.page_table(title, ["matrix", *passes], rows)
    draw(results, folder / "factors_figure_3.svg")
    alt = "Speed of a pass of proposals beside that of a product"
    text += papers.page_picture("factors_figure_3.svg", alt)
    (folder / "factors_figure_3.txt").write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="bench.papers.klein_strzodka.figure3")
    papers.options(parser)
    parser.add_argument("--engine", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--side", type=int, default=2500, help="of the aniso grids")
    parser.add_argument("--grid", type=int, default=1000, help="side of the 5-point grid")
    given = parser.parse_args(arguments)
    results: dict[str, Any] = papers.load(given.draw) if given.draw else {}
    if not given.draw:
        found = {}
        makers = papers.matrices(given, PAPER, generated(given.side, given.grid))
        for name, make in makers.items():
            A = sp.csr_array(make()).astype(np.float32)
            seconds = on_gpu(A) if given.engine == "gpu" else on_cpu(A)
            found[name] = {"rows": A.shape[0], "entries": A.nnz, "seconds": seconds}
            speeds = "  ".join(f"{k}: {seconds['A @ x'] / s:.2f}" for k, s in seconds.items())
            print(f"{name}: A @ x {1e3 * seconds['A @ x']:.2f} ms; speed of {speeds}", flush=True)
        results = {given.engine: found}
        if given.json:
            results = papers.add(given.json, results, given.engine)
    if given.out:
        write(results, given.out, given.draw or given.json)
    return results


if __name__ == "__main__":
    main()
