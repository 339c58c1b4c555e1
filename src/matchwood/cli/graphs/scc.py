"""`matchwood scc`: the strongly connected components of a directed graph."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.graphs.labels import Top, report_labels
from matchwood.cli.options import Graph
from matchwood.cli.shared import Shared, timed, with_shared


@with_shared
def command(
    graph: Graph,
    method: Annotated[
        str,
        typer.Option(
            "--method", help="auto, tarjan, forward_backward, multistep or propagation (GPU)."
        ),
    ] = "auto",
    top: Top = 10,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Number the components in topological order.")
    ] = False,
    *,
    shared: Shared,
) -> None:
    """Find the strongly connected components: vertices that reach each other along the arcs."""
    loaded = shared.load(graph)
    import matchwood

    find: Any = matchwood.strongly_connected_components
    check = matchwood.check.check_strongly_connected_components
    if ordered:
        find, check = matchwood.condensation, matchwood.check.check_condensation
    with timed("finding strong components") as taken:
        found = find(loaded.matrix, method=method, **shared.where)
    shared.verify(check, loaded.matrix, found)
    title = f"strong components of {graph}"
    report_labels(shared, loaded, taken, title, found, top, ordered=ordered)
