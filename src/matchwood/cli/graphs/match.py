"""`matchwood match`: a matching of a graph."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from matchwood.cli.options import Check, Compact, Engine, Graph, Json, Output, Read, Threads


def command(
    graph: Graph,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="auto, greedy, dominant, suitor, streaming, random_weighted or exact: a heavy "
            "matching.  proposal or serial: a maximal one, weights not looked at.",
        ),
    ] = "auto",
    rng: Annotated[int, typer.Option("--rng", "--seed", help="Seed.")] = 0,
    ties: Annotated[str, typer.Option("--ties", help="hash or index.")] = "hash",
    engine: Engine = None,
    threads: Threads = None,
    check: Check = False,
    compact: Compact = False,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Find heavy edges of which no two share an end, and how near to the best they are."""
    from matchwood.cli import results

    results.check_suffix(output)
    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import print_facts, print_json
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    maximal = method in ("proposal", "serial")
    with clock() as taken, progress("matching"):
        if maximal:
            found = matchwood.maximal_matching(
                loaded.matrix, method=method, rng=rng, engine=engine, threads=threads
            )
        else:
            found = matchwood.weighted_matching(
                loaded.matrix, method=method, rng=rng, ties=ties, engine=engine, threads=threads
            )
    if check:
        with progress("checking"):
            found.check(loaded.matrix)  # what the method promises
    if output is not None:
        results.write(output, {"mate": found.mate}, {"weight": found.weight}, ids=loaded.ids)
    n = len(found.mate)
    if as_json:
        print_json(
            {
                "graph": graph,
                "vertices": n,
                "edges": found.cardinality,
                "weight": found.weight,
                "bound": found.bound,
                "quality": found.quality,
                "method": found.method,
                "rounds": found.rounds,
                "checked": check,
                "seconds": {"load": asdict(loaded.clock), "match": asdict(taken)},
                "output": str(output) if output else None,
            }
        )
        return
    print_facts(
        f"matching of {graph}",
        {
            "vertices": n,
            "edges": found.cardinality,
            "matched": f"{2 * found.cardinality / max(1, n):.1%} of the vertices",
            "weight": f"{found.weight:g}",
            "of the best": f"at least {found.quality:.1%}",
            "method": found.method,
            "rounds": found.rounds,
            "loading": loaded.clock,
            "time": taken,
            "checked": "right" if check else None,
            "written": output,
        },
    )
