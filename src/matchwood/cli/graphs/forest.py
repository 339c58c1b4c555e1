"""`matchwood forest`: disjoint paths of strong edges, and the order along them."""

from __future__ import annotations

from typing import Annotated

import typer

from matchwood.cli.options import Graph, Rng, Ties
from matchwood.cli.shared import Shared, report, timed, with_shared


@with_shared
def command(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="auto, splitters, ranges, doubling or walk.")
    ] = "auto",
    rounds: Annotated[int, typer.Option("--rounds", "-M", min=0, help="Rounds of the factor.")] = 5,
    ties: Ties = "hash",
    rng: Rng = 0,
    *,
    shared: Shared,
) -> None:
    """Find a linear forest: disjoint paths of strong edges that hold every vertex.

    A result file has, for each vertex, its path, its position there, and its place in the order.
    """
    loaded = shared.load(graph)
    import numpy as np

    import matchwood

    with timed("following paths") as taken:
        found = matchwood.linear_forest(
            loaded.matrix, method=method, rounds=rounds, ties=ties, rng=rng, **shared.where
        )
    shared.verify(matchwood.check.check_linear_forest, loaded.matrix, found)
    columns = {"path": found.path, "position": found.position, "place": found.place}
    shared.write(loaded, columns, coverage=found.coverage)
    before = matchwood.coverage_of_order(loaded.matrix)
    n, longest = len(found.perm), int(np.diff(found.offsets).max(initial=0))
    report(
        shared, loaded, taken, "forest", f"linear forest of {graph}",
        facts={
            "vertices": n,
            "paths": found.count,
            "longest": longest,
            "cycles": len(found.removed),
            "weight": found.weight,
            "coverage": found.coverage,
            "coverage_of_order": before,
        },
        shown={
            "vertices": n,
            "paths": found.count,
            "longest path": longest,
            "cycles cut": len(found.removed),
            "coverage": f"{found.coverage:.1%} of the weight, {before:.1%} in the order as given",
        },
        phases=found.seconds,
    )  # fmt: skip
