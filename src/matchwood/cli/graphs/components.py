"""`matchwood components`: the connected components of a graph."""

from __future__ import annotations

from typing import Annotated

import typer

from matchwood.cli.options import Check, Compact, Engine, Graph, Json, Output, Read, Threads


def command(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="auto, afforest, fastsv or bfs.")
    ] = "auto",
    top: Annotated[int, typer.Option("--top", min=0, help="How many of the largest to show.")] = 10,
    engine: Engine = None,
    threads: Threads = None,
    check: Check = False,
    compact: Compact = False,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Find the connected components of a graph (of a directed one: the weak components)."""
    from matchwood.cli import results

    results.check_suffix(output)
    import matchwood
    from matchwood.cli.graphs.labels import report
    from matchwood.cli.load import load
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    with clock() as taken, progress("finding components"):
        found = matchwood.connected_components(
            loaded.matrix, method=method, engine=engine, threads=threads
        )
    if check:
        with progress("checking"):
            matchwood.check.check_connected_components(loaded.matrix, found)
    report(
        f"components of {graph}", graph, loaded, found, taken,
        top=top, check=check, output=output, as_json=as_json,
    )  # fmt: skip
