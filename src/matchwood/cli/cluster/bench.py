"""`matchwood dist bench`: how time falls with ranks, on the ranks at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli import results
from matchwood.cli.cluster.session import Threads, opened
from matchwood.cli.options import Json


def command(
    figure: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE]...", help="strong, weak, variants, shapes, complex; none: all."
        ),
    ] = None,
    scale: Annotated[
        int, typer.Option("--scale", min=4, help="2^SCALE vertices (weak: on each rank).")
    ] = 14,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="The median counts.")] = 3,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", min=1, help="Threads of this process as ranks, without mpiexec."),
    ] = None,
    threads: Threads = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Also write as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Time graphs on more and more of the ranks, as chapter 6 of the thesis does.

    The model that is fitted to such rows, and its plot, are in bench/dist of the source.
    """
    import matchwood
    from matchwood.arguments import one_of
    from matchwood.report.cluster import figures

    names = figure or list(figures.FIGURES)
    for name in names:
        one_of("bench", "figure", name, tuple(figures.FIGURES))
    if output is not None:
        results.check_place(output)
    asked = figures.Asked(scale, repeats)
    if ranks is not None:
        found = matchwood.dist.run(figures.run, ranks, names, asked, threads=threads or 1)[0]
        _show(found, output, as_json, "threads")
        return
    with opened(threads) as comm:
        found = figures.run(comm, names, asked)
        if comm.rank == 0:
            _show(found, output, as_json, comm.kind)


def _show(found: dict[str, Any], output: Path | None, as_json: bool, kind: str) -> None:
    from matchwood.cli.output import amount, duration, json_text, print_json, print_table

    whole = {"kind": kind, "figures": found}
    if output is not None:
        results.write_text(output, json_text(whole, indent=1) + "\n")
    if as_json:
        print_json(whole)
        return
    heads = ("algorithm", "graph", "grid", "time", "computing", "talking", "received", "messages")
    for name, rows in found.items():
        print_table(
            name,
            heads,
            [
                (
                    f"{row['algorithm']} ({row['exchange']})" if "exchange" in row
                    else row["algorithm"],
                    row["graph"], row["grid"], duration(row["seconds"]),
                    duration(row["computing"]), duration(row["communicating"]),
                    amount(row["received"]), row["messages"],
                )
                for row in rows
            ],
        )  # fmt: skip
