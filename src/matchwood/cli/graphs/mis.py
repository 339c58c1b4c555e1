"""`matchwood mis`: a maximal independent set of a graph."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from matchwood.cli.options import Check, Compact, Engine, Graph, Json, Output, Read, Threads


def command(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="luby, lexicographic or luby_sampling.")
    ] = "luby",
    seed: Annotated[int, typer.Option("--rng", "--seed", min=0, help="Of the random order.")] = 0,
    engine: Engine = None,
    threads: Threads = None,
    check: Check = False,
    compact: Compact = False,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Find a maximal independent set: no two neighbours, and no vertex can be added."""
    from matchwood.cli import results

    results.check_suffix(output)
    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import print_facts, print_json
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    with clock() as taken, progress("choosing vertices"):
        members = matchwood.maximal_independent_set(
            loaded.matrix, method=method, rng=seed, engine=engine, threads=threads
        )
    if check:
        with progress("checking"):
            matchwood.check.check_maximal_independent_set(
                loaded.matrix, members, method=method, rng=seed
            )
    count = int(members.sum())
    if output is not None:
        results.write(output, {"member": members.astype(int)}, {"count": count}, ids=loaded.ids)
    if as_json:
        print_json(
            {
                "graph": graph,
                "vertices": len(members),
                "members": count,
                "method": method,
                "seed": seed,
                "checked": check,
                "seconds": {"load": asdict(loaded.clock), "set": asdict(taken)},
                "output": str(output) if output else None,
            }
        )
        return
    print_facts(
        f"independent set of {graph}",
        {
            "vertices": len(members),
            "members": count,
            "share": f"{count / len(members):.1%}" if len(members) else None,
            "loading": loaded.clock,
            "time": taken,
            "checked": "right" if check else None,
            "written": output,
        },
    )
