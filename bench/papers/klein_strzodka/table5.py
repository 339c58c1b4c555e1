"""Table 5 of Klein and Strzodka (2022), last columns: coverage of the block preconditioner.

``python -m bench.papers.klein_strzodka.table5 [--engine gpu] [--side 2500] [--grid 1000]``
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from bench import harness
from bench.papers.klein_strzodka.printed import PAPER
from bench.papers.klein_strzodka.tables import generated
from matchwood import preconditioners


def table(side: int, grid: int, engine: str) -> harness.Result:
    rows = {}
    print(f"{'':14} {'m=1':>6} {'paper':>6} {'m=5':>6} {'paper':>6} {'m=None':>6}")
    for name, make in generated(side, grid, engine).items():
        A = make()
        found = [
            preconditioners.algebraic_block_tridiagonal(A, period=m, allow_singular=True).coverage
            for m in (1, 5, None)
        ]
        one, five = PAPER[name].block
        print(f"{name:14} {found[0]:6.3f} {one:6.2f} {found[1]:6.3f} {five:6.2f} {found[2]:6.3f}")
        coverages = dict(zip(("m=1", "m=5", "m=None"), found, strict=True))
        rows[name] = {**coverages, "paper": (one, five)}
    return {"title": "coverage of the block preconditioner", "rows": rows}


def run() -> list[harness.Result]:
    return [table(500, 300, "cpu")]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.papers.klein_strzodka.table5")
    parser.add_argument("--engine", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--side", type=int, default=2500, help="of the aniso grids")
    parser.add_argument("--grid", type=int, default=1000, help="side of the 5-point grid")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = table(options.side, options.grid, options.engine)
    if options.json:
        made = {"environment": harness.environment(), "results": found}
        options.json.write_text(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
