"""`matchwood dist pagerank`: where a random surfer spends the time, on ranks."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.cluster.session import Cluster, with_cluster
from matchwood.cli.options import Graph
from matchwood.cli.output import print_table

SHOWN = 10  # vertices of the highest scores in the table


@with_cluster
def command(
    graph: Graph,
    damping: Annotated[
        float, typer.Option("--damping", help="Probability to follow an arc, below 1.")
    ] = 0.85,
    tol: Annotated[
        float, typer.Option("--tol", help="Stop when the scores change by less, times vertices.")
    ] = 1e-6,
    iterations: Annotated[
        int, typer.Option("--max-iterations", min=1, help="Stop after so many.")
    ] = 100,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="Read values as weights of arcs.")
    ] = False,
    *,
    cluster: Cluster,
) -> None:
    """Score vertices by how often a random surfer comes there."""
    import matchwood
    from matchwood.cli.cluster.summary import highest

    options: dict[str, Any] = {"damping": damping, "tol": tol, "weighted": weighted}
    with cluster.load(graph) as session:
        G = session.graph
        with session.timed("ranking"):
            found = matchwood.pagerank(G, max_iterations=iterations, **options)
        session.verify(matchwood.check.check_pagerank, found, **options)
        session.write(found.scores)
        top = highest(G, found.scores, SHOWN)
        people = session.report(
            "rank", f"pagerank of {graph}",
            facts={
                "vertices": G.n,
                "iterations": found.iterations,
                "error": found.error,
                "converged": bool(found.converged),
                "damping": damping,
                "top": [{"vertex": v, "score": score} for v, score in top],
            },
            shown={
                "vertices": G.n,
                "iterations": found.iterations,
                "converged": "yes" if found.converged else "no",
                "error": f"{found.error:.3g}",
            },
        )  # fmt: skip
        if people:
            print_table("highest scores", ("vertex", "score"), top)
