"""`matchwood scc`: the strongly connected components of a directed graph."""

from __future__ import annotations

from typing import Annotated

import typer

from matchwood.cli.options import Check, Compact, Engine, Graph, Json, Output, Read, Threads


def command(
    graph: Graph,
    method: Annotated[
        str,
        typer.Option(
            "--method", help="auto, tarjan, forward_backward, multistep or propagation (GPU)."
        ),
    ] = "auto",
    top: Annotated[int, typer.Option("--top", min=0, help="How many of the largest to show.")] = 10,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Number the components in topological order.")
    ] = False,
    engine: Engine = None,
    threads: Threads = None,
    check: Check = False,
    compact: Compact = False,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Find the strongly connected components: vertices that reach each other along the arcs."""
    from matchwood.cli import results

    results.check_suffix(output)
    import matchwood
    from matchwood.cli.graphs.labels import report
    from matchwood.cli.load import load
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    find = matchwood.condensation if ordered else matchwood.strongly_connected_components
    right = (
        matchwood.check.check_condensation
        if ordered
        else matchwood.check.check_strongly_connected_components
    )
    with clock() as taken, progress("finding strong components"):
        found = find(loaded.matrix, method=method, engine=engine, threads=threads)
    if check:
        with progress("checking"):
            right(loaded.matrix, found)
    report(
        f"strong components of {graph}", graph, loaded, found, taken,
        top=top, check=check, output=output, as_json=as_json, ordered=ordered,
    )  # fmt: skip
