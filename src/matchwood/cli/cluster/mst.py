"""`matchwood dist mst`: the minimum or maximum spanning forest, on ranks."""

from __future__ import annotations

from matchwood.cli.cluster.session import Cluster, with_cluster
from matchwood.cli.graphs.mst import Maximum, facts_of_forest
from matchwood.cli.options import Graph


@with_cluster
def command(
    graph: Graph,
    maximum: Maximum = False,
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
        session.report("forest", **facts_of_forest(graph, found, maximum))
