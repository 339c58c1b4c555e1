"""`matchwood components`: the connected components of a graph."""

from __future__ import annotations

from typing import Annotated

import typer

from matchwood.cli.beyond import Batches, DeviceNumbers, Memory, StatsFile, place, write_stats
from matchwood.cli.graphs.labels import Top, report_labels
from matchwood.cli.options import Graph
from matchwood.cli.shared import Shared, timed, with_shared


@with_shared
def command(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="auto, afforest, fastsv or bfs.")
    ] = "auto",
    top: Top = 10,
    devices: DeviceNumbers = None,
    memory: Memory = None,
    batches: Batches = None,
    stats: StatsFile = None,
    *,
    shared: Shared,
) -> None:
    """Find the connected components of a graph (of a directed one: the weak components)."""
    where = place(shared, devices, memory, batches, stats)
    loaded = shared.load(graph)
    import matchwood

    with timed("finding components") as taken:
        A = loaded.matrix if devices is None else matchwood.graph(loaded.matrix)
        found = matchwood.connected_components(A, method=method, **where)
    write_stats(stats, found.stats)
    shared.verify(matchwood.check.check_connected_components, loaded.matrix, found)
    report_labels(shared, loaded, taken, f"components of {graph}", found, top)
