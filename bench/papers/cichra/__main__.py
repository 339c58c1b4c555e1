"""Repeat a thesis' benchmark: four problems on dense random graphs and on real ones.

python -m bench.papers.cichra --quick                       a minute: does it work here?
python -m bench.papers.cichra -o thesis.json --plots plots  1000 to 8000 vertices, three densities
MATCHWOOD_DATA=data python -m bench.papers.cichra           also the real graphs in data/graphs
python -m bench.papers.cichra -g graph.mtx -g other.mtx     these graphs instead
python -m bench.papers.cichra --methods                     every method of each problem
python -m bench.papers.cichra --sizes 1000 8000             these sizes, no real graphs
python -m bench.papers.cichra --engines GPU --problems CC MIS   without those on the CPU
python -m bench.papers.cichra --libraries SciPy             of those installed this one alone
python -m bench.papers.cichra.beside thesis.json --out FOLDER   the thesis' own numbers beside
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench.papers.cichra import show, timing


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="bench.papers.cichra",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("-g", "--graph", action="append", default=[], help="a file, or a generator")
    parser.add_argument("--quick", action="store_true", help="a few small graphs")
    parser.add_argument("--plots", type=Path, help="the folder for its plots")
    parser.add_argument("--repeats", type=int, default=7, help="rounds; the median counts")
    parser.add_argument("--threads", type=int, help="of the CPU")
    parser.add_argument(
        "-o", "--output", type=Path, help="write the results as JSON, after each row"
    )
    parser.add_argument("--methods", action="store_true", help="every method, not only the best")
    parser.add_argument("--sizes", type=int, nargs="*", help="vertices, in place of all sizes")
    parser.add_argument(
        "--engines", nargs="+", choices=timing.ENGINES, default=timing.ENGINES, help="only these"
    )
    parser.add_argument("--problems", nargs="+", choices=timing.METHODS, help="only these")
    parser.add_argument("--libraries", nargs="*", help="of those installed, only these")
    options = parser.parse_args(arguments)
    if options.plots is not None:
        show.require_matplotlib()

    from rich.console import Console

    from matchwood.cli.load import load

    def keep(found: dict[str, Any]) -> None:
        if options.output is not None:
            options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

    found = timing.run(
        quick=options.quick,
        graphs=[(text, load(text).matrix) for text in options.graph],
        threads=options.threads,
        repeats=options.repeats,
        methods=options.methods,
        sizes=options.sizes,
        places=options.engines,
        problems=options.problems,
        peers=True if options.libraries is None else options.libraries,
        say=lambda text: print(text, flush=True),
        keep=keep,
    )
    if options.plots is not None:
        show.plots(found, options.plots)
    for table in show.tables(found):
        Console().print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
