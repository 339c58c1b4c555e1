"""`matchwood communities`: groups of vertices that are tied to each other."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.graphs.labels import Top, report_labels
from matchwood.cli.options import Graph, Rng
from matchwood.cli.shared import Shared, timed, with_shared

METHODS = ("louvain", "leiden", "labels")


@with_shared
def command(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="louvain, leiden or labels (label propagation).")
    ] = "louvain",
    resolution: Annotated[
        float, typer.Option("--resolution", help="Larger: more and smaller communities.")
    ] = 1.0,
    rng: Rng = 0,
    top: Top = 10,
    *,
    shared: Shared,
) -> None:
    """Find communities: groups of vertices tied to each other more than to the rest."""
    from matchwood.arguments import one_of, real

    one_of("communities", "method", method, METHODS)
    real("communities", "resolution", resolution, 0)
    if method == "labels" and resolution != 1.0:
        raise ValueError("communities: resolution must be 1 for labels, which have none")
    loaded = shared.load(graph)
    import matchwood

    held_to: dict[str, Any] = {} if method == "labels" else {"resolution": resolution}
    find: Any = matchwood.label_propagation if method == "labels" else getattr(matchwood, method)
    check: Any = matchwood.check.check_communities
    if method == "labels":
        check = matchwood.check.check_label_propagation
    with timed("finding communities") as taken:
        found = find(loaded.matrix, rng=rng, **held_to, **shared.where)
    shared.verify(check, loaded.matrix, found, **held_to)
    report_labels(
        shared, loaded, taken, f"communities of {graph}", found, top,
        method=method, seed=rng, modularity=found.modularity, rounds=found.rounds,
    )  # fmt: skip
