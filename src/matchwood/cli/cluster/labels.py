"""`matchwood dist labels`: communities by label propagation, on ranks."""

from __future__ import annotations

from typing import Annotated

import typer

from matchwood.cli.cluster.components import report_parts
from matchwood.cli.cluster.session import Cluster, with_cluster
from matchwood.cli.graphs.labels import Top
from matchwood.cli.options import Graph, Rng


@with_cluster
def command(
    graph: Graph,
    rounds: Annotated[int, typer.Option("--max-rounds", min=0, help="Stop after so many.")] = 1000,
    tol: Annotated[
        float, typer.Option("--tol", help="The last round moves at most this part.")
    ] = 0.0,
    rng: Rng = 0,
    top: Top = 10,
    *,
    cluster: Cluster,
) -> None:
    """Find communities: every vertex takes the label that weighs most around it."""
    import matchwood

    with cluster.load(graph) as session:
        with session.timed("spreading labels"):
            found = matchwood.label_propagation(session.graph, max_rounds=rounds, tol=tol, rng=rng)
        settled = tol == 0 and found.rounds < rounds
        session.verify(matchwood.check.check_label_propagation, found, settled=settled)
        report_parts(
            session, f"communities of {graph}", found, top,
            modularity=found.modularity, rounds=found.rounds, seed=rng,
        )  # fmt: skip
