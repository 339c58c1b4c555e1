"""`matchwood dist match`: a heavy matching, on ranks."""

from __future__ import annotations

from matchwood.cli.cluster.session import Cluster, with_cluster
from matchwood.cli.options import Graph, Rng, Ties


@with_cluster
def command(graph: Graph, rng: Rng = 0, ties: Ties = "hash", *, cluster: Cluster) -> None:
    """Find heavy edges of which no two share an end: the locally dominant ones."""
    import matchwood

    with cluster.load(graph) as session:
        G = session.graph
        with session.timed("matching"):
            found = matchwood.weighted_matching(G, rng=rng, ties=ties)
        session.verify(matchwood.check.check_locally_dominant, found, rng=rng, ties=ties)
        session.write(found.mate)
        facts = {
            "vertices": G.n,
            "edges": found.cardinality,
            "weight": found.weight,
            "method": found.method,
            "rounds": found.rounds,
        }
        session.report(
            "match", f"matching of {graph}",
            facts=facts,
            shown={
                **facts,
                "weight": f"{found.weight:g}",
                "matched": f"{2 * found.cardinality / max(1, G.n):.1%} of the vertices",
            },
        )  # fmt: skip
