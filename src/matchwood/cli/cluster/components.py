"""`matchwood dist components`: connected components on ranks."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.cluster.session import Cluster, Session, with_cluster
from matchwood.cli.graphs.labels import Top, facts_of_parts, print_largest
from matchwood.cli.options import Graph


@with_cluster
def command(
    graph: Graph,
    method: Annotated[str, typer.Option("--method", help="auto or colour.")] = "auto",
    top: Top = 10,
    *,
    cluster: Cluster,
) -> None:
    """Find the connected components of a graph (of a directed one: the weak components)."""
    import matchwood

    with cluster.load(graph) as session:
        with session.timed("finding components"):
            found = matchwood.connected_components(session.graph, method=method)
        session.verify(matchwood.check.check_connected_components, found)
        report_parts(session, f"components of {graph}", found, top)


def report_parts(session: Session, title: str, found: Any, top: int, **more: Any) -> None:
    """Write the labels, and print how many there are and the largest of them."""
    from matchwood.cli.cluster.summary import largest_parts

    n = session.graph.n
    single, largest = largest_parts(session.graph, found.labels, top)
    session.write(found.labels)
    told = facts_of_parts(n, found.count, single, largest, **more)
    people = session.report("components", title, **told)
    if people and top and found.count > 1:
        print_largest(n, largest)
