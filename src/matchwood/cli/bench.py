"""`matchwood bench`: times beside SciPy's, on the standard graphs or on one of yours."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli import results
from matchwood.cli.options import Compact, Json, Read, Threads


def command(
    problem: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROBLEM]...", help="bfs, components, ...; none: all.  Or thesis."),
    ] = None,
    graph: Annotated[
        list[str] | None,
        typer.Option("-g", "--graph", help="A file or generator in place of the standard graphs."),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Rounds; median counts.")] = 7,
    quick: Annotated[bool, typer.Option("--quick", help="thesis: a few small graphs.")] = False,
    plots: Annotated[
        Path | None, typer.Option("--plots", metavar="FOLDER", help="thesis: draw its plots.")
    ] = None,
    threads: Threads = None,
    compact: Compact = False,
    read: Read = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Also write as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Time problems beside SciPy in the same run; every answer is checked first.

    The benchmarks with all peers and the bars to be met are in bench/ of the source: make bench.

    "matchwood bench thesis" repeats a thesis' benchmark: four problems on dense random graphs and
    on the real ones of $MATCHWOOD_DATA, on one thread, on all, on the GPU, and by other libraries.
    """
    if output is not None:
        results.check_place(output)
    import json

    from matchwood.cli.load import load
    from matchwood.cli.output import console, print_json
    from matchwood.cli.progress import progress
    from matchwood.report import bench as report
    from matchwood.report import scenes

    thesis = problem is not None and "thesis" in problem
    if thesis and problem != ["thesis"]:
        raise ValueError("thesis is a benchmark of its own; leave out the other problems")
    if (quick or plots is not None) and not thesis:
        raise ValueError("--quick and --plots are for: matchwood bench thesis")
    chosen = [] if thesis else report.choose(problem or [])
    places: Iterable[scenes.Scene] = [
        scenes.Scene(text, "", load(text, compact=compact, read=read).matrix)
        for text in graph or []
    ]
    if thesis:
        given = [(scene.name, scene.matrix) for scene in places]
        _thesis(given, quick, plots, repeats, threads, output, as_json)
        return
    if not graph:
        places = scenes.standard()
    with progress("starting") as bar:
        found = report.run(chosen, places, threads=threads, repeats=repeats, say=bar.say)
    if output is not None:
        results.write_text(output, json.dumps(found, indent=1) + "\n")
    if as_json:
        print_json(found)
    else:
        console().print(report.table(found))


def _thesis(
    graphs: list[tuple[str, Any]],
    quick: bool,
    plots: Path | None,
    repeats: int,
    threads: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    import json

    from matchwood.cli.output import console, print_json
    from matchwood.cli.progress import progress
    from matchwood.report import thesis, thesis_show

    with progress("starting") as bar:
        found = thesis.run(
            quick=quick, graphs=graphs, threads=threads, repeats=repeats, say=bar.say
        )
    if output is not None:
        results.write_text(output, json.dumps(found, indent=1) + "\n")
    if plots is not None:
        thesis_show.plots(found, plots)
    if as_json:
        print_json(found)
        return
    terminal = console()
    for table in thesis_show.tables(found):
        terminal.print(table)
