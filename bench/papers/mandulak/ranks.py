"""The experiments of chapter 6 of the thesis on the ranks at hand, with bars where there are some.

    mpiexec -n 16 python -m bench.papers.mandulak.ranks --scale 22 --json rows.json
    python -m bench.papers.mandulak.ranks --ranks 4 --scale 14      threads of one process as ranks
    python -m bench.papers.mandulak.ranks strong weak ...           only these
    python -m bench.papers.mandulak.ranks bars --counts 1,16        the calls that have bars

Rows are printed when they are known.  Compile the kernels before many ranks do that at once:
``matchwood warmup``.  What the experiments are: matchwood.report.cluster, which
`matchwood dist bench` shows too.  The rows go to `bench.engines.ranks.model`,
which explains them by counts.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import matchwood
from bench import harness
from matchwood.report import cluster as figures

RANKS = 4  # of a run without mpiexec
SCALE = 13
SPEEDUPS = {"pagerank": 9.0, "components": 6.0, "matching": 6.0, "bfs": 4.0}
"""Bars: 16 ranks of one thread against one rank, on 16 cores, R-MAT 22."""
BAR_RANKS = 16
BARS = "bars"


def bars(comm: Any, asked: figures.Asked) -> list[dict[str, Any]]:
    """`strong` of all calls that have bars; one graph with weights serves them all."""
    return figures.strong(
        comm, asked, {**figures.BENCHMARKS, "matching": matchwood.weighted_matching}
    )


def found_by(comm: Any, names: list[str], asked: figures.Asked) -> dict[str, list[dict[str, Any]]]:
    """The rows of each experiment; all ranks call it and get them."""
    known = {**figures.FIGURES, BARS: bars}
    return {name: known[name](comm, asked) for name in names}


def own_cpus() -> set[int]:
    """The CPUs that this rank may use."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def told(row: dict[str, Any]) -> None:
    """A row as soon as it is known."""
    print(json.dumps(row), flush=True)


def run() -> list[harness.Result]:
    """For `python -m bench.run`: small graphs on a few ranks."""
    asked = figures.Asked(SCALE, 3)
    found = matchwood.dist.run(figures.run, RANKS, list(figures.FIGURES), asked)[0]
    return results(found)


def results(found: dict[str, list[dict[str, Any]]]) -> list[harness.Result]:
    """Each experiment as the harness writes it; ``data`` are its rows."""
    made = []
    for name, rows in found.items():
        times = {
            label(row): {
                "median": row["seconds"], "best": row["seconds"], "times": [row["seconds"]],
            }
            for row in rows
        }  # fmt: skip
        made.append({"title": name, "baseline": "", "rounds": 1, "rows": times, "data": rows})
        show(name, rows)
    return made


def label(row: dict[str, Any]) -> str:
    exchange = f", {row['exchange']}" if "exchange" in row else ""
    return f"{row['algorithm']}{exchange}, {row['graph']}, {row['grid']}"


def speedups(rows: list[dict[str, Any]]) -> dict[str, float]:
    """One rank's time over that of the most ranks, for each algorithm."""
    most = max(row["ranks"] for row in rows)
    found = {}
    for row in rows:
        if row["ranks"] == most:
            alone = [
                other["seconds"] for other in rows
                if other["ranks"] == 1 and other["algorithm"] == row["algorithm"]
            ]  # fmt: skip
            found[row["algorithm"]] = alone[0] / row["seconds"] if alone else 1.0
    return found


def show(name: str, rows: list[dict[str, Any]]) -> None:
    """Print the rows of an experiment, and what is asked of it."""
    print(f"\n{name}")
    for row in rows:
        words = row["received"] / 8 / (row["vertices"] / row["ranks"] ** 0.5)
        print(
            f"  {label(row):44} {harness.in_words(row['seconds']):>9}  computing "
            f"{harness.in_words(row['computing']):>9}  received {row['received'] / 1e6:9.3f} MB "
            f"({words:.2f} n/sqrt p words)  {row['messages']} messages"
        )
    if name in ("strong", "complex", BARS) and max(row["ranks"] for row in rows) >= BAR_RANKS:
        for algorithm, ratio in speedups(rows).items():
            if algorithm in SPEEDUPS:
                met = "met" if ratio >= SPEEDUPS[algorithm] else "missed"
                print(f"  {algorithm}: {ratio:.2f}x, bar {SPEEDUPS[algorithm]:g}x {met}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("figures", nargs="*", help=", ".join([*figures.FIGURES, BARS]))
    parser.add_argument("--scale", type=int, default=SCALE)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ranks", type=int, help="threads of this process as ranks")
    parser.add_argument("--counts", help="only runs on so many ranks: 1,16")
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args()
    names = options.figures or list(figures.FIGURES)
    counts = tuple(map(int, options.counts.split(","))) if options.counts else None
    asked = figures.Asked(options.scale, options.repeats, counts=counts, told=told)
    if options.ranks:
        found = matchwood.dist.run(found_by, options.ranks, names, asked)[0]
        _finish(found, options.json, len(own_cpus()))
        return
    with matchwood.dist.world() as comm:
        found = found_by(comm, names, asked)
        cpus = set().union(*comm.objects(own_cpus()))  # ranks that are bound see their own
        if comm.rank == 0:
            _finish(found, options.json, len(cpus))


def _finish(found: dict[str, list[dict[str, Any]]], path: Path | None, cpus: int) -> None:
    results(found)
    if path is not None:
        content = {"environment": harness.environment(), "figures": found}
        content["environment"]["machine"]["cpus"] = cpus
        path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
