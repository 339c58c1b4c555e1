"""`matchwood dist mst`: the minimum or maximum spanning forest, on ranks."""

from __future__ import annotations

from typing import Annotated

import typer

from matchwood.cli.cluster.session import Cluster, with_cluster
from matchwood.cli.options import Graph


@with_cluster
def command(
    graph: Graph,
    maximum: Annotated[bool, typer.Option("--maximum", help="The heaviest forest.")] = False,
    *,
    cluster: Cluster,
) -> None:
    """Find the minimum spanning forest: the lightest edges that join everything.

    A result file has a row for each edge, its two ends.
    """
    import matchwood
    from matchwood.cli.cluster.writing import save_edges

    with cluster.load(graph) as session:
        G = session.graph
        with session.timed("joining vertices"):
            found = matchwood.minimum_spanning_forest(G, maximum=maximum)
        session.verify(matchwood.check.check_spanning_forest, found, maximum=maximum)
        if cluster.output is not None:
            save_edges(session.comm, cluster.output, found.edges, G.n)
        facts = {
            "vertices": G.n,
            "edges": G.n - found.components,
            "components": found.components,
            "total": found.total,
            "maximum": maximum,
            "rounds": found.rounds,
        }
        session.report(
            "forest", f"{'maximum' if maximum else 'minimum'} spanning forest of {graph}",
            facts=facts,
            shown={**facts, "maximum": None, "total": f"{found.total:,}"},
        )  # fmt: skip
