"""`matchwood forest`: disjoint paths of strong edges, and the order along them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from matchwood.cli.options import Graph
from matchwood.cli.shared import Shared, with_shared


@with_shared
def command(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="auto, splitters, ranges, doubling or walk.")
    ] = "auto",
    rounds: Annotated[int, typer.Option("--rounds", min=0, help="Rounds of the factor.")] = 5,
    old_rounds: Annotated[int | None, typer.Option("-M", min=0, hidden=True)] = None,
    ties: Annotated[
        str, typer.Option("--ties", help="index or hash: which of equally heavy edges to prefer.")
    ] = "index",
    rng: Annotated[int, typer.Option("--rng", "--seed", help="Seed of charges and ties.")] = 0,
    *,
    shared: Shared,
) -> None:
    """Find a linear forest: disjoint paths of strong edges that hold every vertex.

    A result file has, for each vertex, its path, its position there, and its place in the order.
    """
    from matchwood.cli import results

    engine, threads, check, compact, read, output, as_json = shared
    results.check_suffix(output)
    import numpy as np

    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import duration, print_facts, print_json
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    with clock() as taken, progress("following paths"):
        found = matchwood.linear_forest(
            loaded.matrix, method=method, rounds=rounds if old_rounds is None else old_rounds,
            ties=ties, rng=rng, engine=engine, threads=threads,
        )  # fmt: skip
    if check:
        with progress("checking"):
            matchwood.check.check_linear_forest(loaded.matrix, found)
    before = matchwood.coverage_of_order(loaded.matrix)
    lengths = np.diff(found.offsets)
    longest = int(lengths.max(initial=0))
    if output is not None:
        columns = {"path": found.path, "position": found.position, "place": found.place}
        results.write(output, columns, {"coverage": found.coverage}, ids=loaded.ids)
    if as_json:
        print_json(
            {
                "graph": graph,
                "vertices": len(found.perm),
                "paths": found.count,
                "longest": longest,
                "cycles": len(found.removed),
                "weight": found.weight,
                "coverage": found.coverage,
                "coverage_of_order": before,
                "checked": check,
                "seconds": {
                    "load": asdict(loaded.clock),
                    "forest": asdict(taken),
                    "phases": found.seconds,
                },
                "output": str(output) if output else None,
            }
        )
        return
    print_facts(
        f"linear forest of {graph}",
        {
            "vertices": len(found.perm),
            "paths": found.count,
            "longest path": longest,
            "cycles cut": len(found.removed),
            "coverage": f"{found.coverage:.1%} of the weight, {before:.1%} in the order as given",
            "loading": loaded.clock,
            "time": taken,
            "by phase": ", ".join(f"{k} {duration(v)}" for k, v in found.seconds.items()),
            "checked": "right" if check else None,
            "written": output,
        },
    )
