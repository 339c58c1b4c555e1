"""`matchwood mis`: a maximal independent set of a graph."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.options import Graph, Rng
from matchwood.cli.shared import Shared, report, timed, with_shared


@with_shared
def command(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="auto, luby, lexicographic or luby_sampling.")
    ] = "auto",
    rng: Rng = 0,
    *,
    shared: Shared,
) -> None:
    """Find a maximal independent set: no two neighbours, and no vertex can be added."""
    loaded = shared.load(graph)
    import matchwood

    options: dict[str, Any] = {"method": method, "rng": rng}
    with timed("choosing vertices") as taken:
        members = matchwood.maximal_independent_set(loaded.matrix, **options, **shared.where)
    check = matchwood.check.check_maximal_independent_set
    shared.verify(check, loaded.matrix, members, **options)
    n, count = len(members), int(members.sum())
    shared.write(loaded, {"member": members.astype(int)}, count=count)
    report(
        shared, loaded, taken, "set", f"independent set of {graph}",
        facts={"vertices": n, "members": count, "method": method, "seed": rng},
        shown={"vertices": n, "members": count, "share": f"{count / n:.1%}" if n else None},
    )  # fmt: skip
