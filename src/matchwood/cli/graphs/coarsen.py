"""`matchwood coarsen`: a hierarchy of ever coarser graphs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from matchwood.cli.options import Compact, Engine, Graph, Json, Output, Read, Threads


def command(
    graph: Graph,
    until: Annotated[int, typer.Option("--until", min=1, help="Vertices at the end, at most.")] = (
        100
    ),
    method: Annotated[
        str, typer.Option("--method", help="A method of weighted matching, or proposal.")
    ] = "auto",
    rng: Annotated[int, typer.Option("--rng", "--seed", help="Seed.")] = 0,
    coarsest: Annotated[
        Path | None,
        typer.Option("--coarsest", metavar="FILE", help="Write the coarsest graph: any format."),
    ] = None,
    engine: Engine = None,
    threads: Threads = None,
    compact: Compact = False,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Merge matched vertices, level by level, until few are left.

    -o writes for every vertex the vertex of the coarsest graph that it went to.
    """
    from matchwood.cli import results

    results.check_suffix(output)
    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import print_facts, print_json, print_table
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    with clock() as taken, progress("coarsening"):
        found = matchwood.coarsening_hierarchy(
            loaded.matrix, until=until, method=method, rng=rng, engine=engine, threads=threads
        )
    edges = [level.matrix.nnz // 2 for level in found]
    if output is not None:
        results.write(output, {"part": found.map}, {"parts": found.sizes[-1]}, ids=loaded.ids)
    if coarsest is not None:
        last = found.levels[-1].matrix if len(found) else loaded.matrix
        matchwood.io.write(coarsest, last)
    if as_json:
        print_json(
            {
                "graph": graph,
                "sizes": found.sizes,
                "edges": edges,
                "seconds": {"load": asdict(loaded.clock), "coarsen": asdict(taken)},
                "output": str(output) if output else None,
                "coarsest": str(coarsest) if coarsest else None,
            }
        )
        return
    print_facts(
        f"hierarchy of {graph}",
        {
            "levels": len(found),
            "loading": loaded.clock,
            "time": taken,
            "written": output,
            "coarsest": coarsest,
        },
    )
    print_table(
        "levels",
        ("vertices", "edges", "largest weight of a vertex"),
        [
            (size, m, int(level.vertex_weights.max()))
            for size, m, level in zip(found.sizes[1:], edges, found, strict=True)
        ],
    )
