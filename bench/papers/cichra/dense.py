"""The thesis' benchmark on a few of its sizes; all of them: ``python -m bench.papers.cichra``."""

from __future__ import annotations

from typing import Any

from bench import harness
from bench.papers.cichra import show, timing

SIZES = (1000, 4000)  # vertices


def run() -> list[harness.Result]:
    from rich.console import Console

    graphs = [
        (f"random {case.n}, {case.density:g}", case.matrix)
        for case in timing.random_cases(SIZES, timing.DENSITIES)
    ]
    found = timing.run(graphs=graphs)
    for table in show.tables(found):
        Console().print(table)
    return [_as_result(row) for row in found["results"]]


def _as_result(row: dict[str, Any]) -> harness.Result:
    rows = {name: {"median": seconds} for name, seconds in row["seconds"].items()}
    title = f"{row['problem']}, {row['graph']}"
    return {"title": title, "baseline": "CPU", "rows": rows}


if __name__ == "__main__":
    harness.main(run)
