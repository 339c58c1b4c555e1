"""`matchwood dist bfs`: breadth-first search on ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli.cluster.session import Cluster, with_cluster
from matchwood.cli.graphs.bfs import DepthLimit, Undirected, facts_of_search
from matchwood.cli.options import Graph


@with_cluster
def command(
    graph: Graph,
    source: Annotated[
        list[int] | None, typer.Option("-s", "--source", help="Start here; may be repeated.")
    ] = None,
    depth_limit: DepthLimit = None,
    undirected: Undirected = False,
    parents: Annotated[
        Path | None, typer.Option("--parents", metavar="FILE", help="Write the parents there.")
    ] = None,
    *,
    cluster: Cluster,
) -> None:
    """Search breadth first from one or several vertices; a result file has the levels."""
    import matchwood
    from matchwood.cli.cluster.summary import level_sizes

    sources = source or [0]
    options: dict[str, Any] = {"depth_limit": depth_limit, "directed": not undirected}
    with cluster.load(graph, parents) as session:
        G = session.graph
        with session.timed("searching"):
            found = matchwood.bfs(G, sources, **options)
        session.verify(matchwood.check.check_bfs, sources, found, **options)
        session.write(found.level)
        if parents is not None:
            session.write(found.parent, parents)
        sizes = level_sizes(G, found.level)
        told = facts_of_search(G.n, sources, [str(v) for v in sources], found.rounds, sizes)
        session.report("bfs", f"breadth-first search in {graph}", **told, parents=parents)
