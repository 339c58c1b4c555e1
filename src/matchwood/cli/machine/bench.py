"""`matchwood bench`: times beside SciPy's, on the standard graphs or on one of yours."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from matchwood.cli import results
from matchwood.cli.options import Compact, Json, Pattern, Read, Threads


def command(
    problem: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROBLEM]...", help="bfs, components, ...; none: all."),
    ] = None,
    graph: Annotated[
        list[str] | None,
        typer.Option("-g", "--graph", help="A file or generator in place of the standard graphs."),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Rounds; median counts.")] = 7,
    threads: Threads = None,
    compact: Compact = False,
    pattern: Pattern = False,
    read: Read = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Also write as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Time problems beside SciPy in the same run; every answer is checked first.

    "join" by its name, without a graph, also joins the collections of $MATCHWOOD_DATA by every
    method of verification.

    The benchmarks with all peers and the bars to be met are in bench/ of the source: make bench.
    """
    if output is not None:
        results.check_place(output)

    from matchwood.cli.load import load
    from matchwood.cli.output import console, json_text, print_json
    from matchwood.cli.progress import progress
    from matchwood.report import bench as report
    from matchwood.report import scenes
    from matchwood.report.sets import bench as joins

    chosen = report.choose(problem or [])
    places: Iterable[scenes.Scene] = [
        scenes.Scene(text, "", load(text, compact=compact, pattern=pattern, read=read).matrix)
        for text in graph or []
    ]
    if not graph:
        places = scenes.standard()
    with progress("starting") as bar:
        found = report.run(chosen, places, threads=threads, repeats=repeats, say=bar.say)
        if "join" in (problem or []) and not graph:
            found["collections"] = joins.run(repeats, bar.say)
    if output is not None:
        results.write_text(output, json_text(found, indent=1) + "\n")
    if as_json:
        print_json(found)
    else:
        console().print(report.table(found))
        if "collections" in found:
            console().print(joins.table(found["collections"]))
