"""`matchwood dist pagerank`: where a random surfer spends the time, on ranks."""

from __future__ import annotations

from typing import Any

from matchwood.cli.cluster.session import Cluster, with_cluster
from matchwood.cli.matrices.pagerank import (
    SHOWN,
    Damping,
    Iterations,
    Tol,
    Weighted,
    facts_of_ranking,
    require_converged,
)
from matchwood.cli.options import Graph
from matchwood.cli.output import print_table


@with_cluster
def command(
    graph: Graph,
    damping: Damping = 0.85,
    tol: Tol = 1e-6,
    iterations: Iterations = 100,
    weighted: Weighted = False,
    *,
    cluster: Cluster,
) -> None:
    """Score vertices by how often a random surfer comes there."""
    import matchwood
    from matchwood.cli.cluster.summary import highest

    options: dict[str, Any] = {
        "damping": damping, "tol": tol, "max_iterations": iterations, "weighted": weighted,
    }  # fmt: skip
    with cluster.load(graph) as session:
        G = session.graph
        with session.timed("ranking"):
            found = matchwood.pagerank(G, **options)
        session.verify(matchwood.check.check_pagerank, found, **options)
        session.write(found.scores)
        top = highest(G, found.scores, SHOWN)
        told = facts_of_ranking(G.n, found, damping, top)
        if session.report("rank", f"pagerank of {graph}", **told):
            print_table("highest scores", ("vertex", "score"), top)
        require_converged(found, "dist pagerank", tol)
