"""`matchwood coarsen`: a hierarchy of ever coarser graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matchwood.cli import results
from matchwood.cli.options import Graph, Rng, Ties
from matchwood.cli.output import print_table
from matchwood.cli.shared import Shared, report, timed, with_shared


@with_shared
def command(
    graph: Graph,
    until: Annotated[int, typer.Option("--until", min=1, help="Vertices at the end, at most.")] = (
        100
    ),
    method: Annotated[
        str, typer.Option("--method", help="A method of weighted matching, proposal or random.")
    ] = "auto",
    rng: Rng = 0,
    ties: Ties = "hash",
    coarsest: Annotated[
        Path | None,
        typer.Option("--coarsest", metavar="FILE", help="Write the coarsest graph: any format."),
    ] = None,
    *,
    shared: Shared,
) -> None:
    """Merge matched vertices, level by level, until few are left.

    -o writes for every vertex the vertex of the coarsest graph that it went to.
    """
    if coarsest is not None:
        results.check_graph_file(coarsest, "--coarsest")
    loaded = shared.load(graph)
    import matchwood
    from matchwood.check import check_hierarchy

    with timed("coarsening") as taken:
        found = matchwood.coarsening_hierarchy(
            loaded.matrix, until=until, method=method, rng=rng, ties=ties, **shared.where
        )
    shared.verify(check_hierarchy, loaded.matrix, found)
    edges = [level.matrix.nnz // 2 for level in found]
    shared.write(loaded, {"part": found.map}, parts=found.sizes[-1])
    if coarsest is not None:
        last = found.levels[-1].matrix if len(found) else loaded.matrix
        matchwood.io.write(coarsest, last)
    report(
        shared, loaded, taken, "coarsen", f"hierarchy of {graph}",
        facts={"sizes": found.sizes, "edges": edges},
        shown={"levels": len(found)},
        coarsest=coarsest,
    )  # fmt: skip
    if not shared.as_json:
        print_table(
            "levels",
            ("vertices", "edges", "largest weight of a vertex"),
            [
                (size, m, int(level.vertex_weights.max()))
                for size, m, level in zip(found.sizes[1:], edges, found, strict=True)
            ],
        )
