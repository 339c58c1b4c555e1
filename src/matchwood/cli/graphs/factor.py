"""`matchwood factor`: a [0,n]-factor of a graph."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from matchwood.cli.options import Check, Compact, Engine, Graph, Json, Output, Read, Threads


def command(
    graph: Graph,
    n: Annotated[int, typer.Option("-n", min=1, help="Neighbours of a vertex at most.")] = 2,
    method: Annotated[str, typer.Option("--method", help="parallel or greedy.")] = "parallel",
    rounds: Annotated[
        int, typer.Option("--rounds", min=0, help="Rounds at most; 0: until maximal.")
    ] = 5,
    ties: Annotated[str, typer.Option("--ties", help="hash or index.")] = "index",
    rng: Annotated[int, typer.Option("--rng", help="Seed.")] = 0,
    engine: Engine = None,
    threads: Threads = None,
    check: Check = False,
    compact: Compact = False,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Choose strong edges such that every vertex has at most n of them."""
    from matchwood.cli import results

    results.check_suffix(output)
    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import print_facts, print_json
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    with clock() as taken, progress("choosing edges"):
        found = matchwood.degree_factor(
            loaded.matrix, n, method=method, rounds=rounds or None, rng=rng, ties=ties,
            engine=engine, threads=threads,
        )  # fmt: skip
    if check:
        with progress("checking"):
            found.check(loaded.matrix)  # also maximal, where it says so
    if output is not None:
        columns = {f"neighbour{k + 1}": found.neighbours[:, k] for k in range(n)}
        results.write(output, columns, {"coverage": found.coverage}, ids=loaded.ids)
    edges = int((found.neighbours >= 0).sum()) // 2
    if as_json:
        print_json(
            {
                "graph": graph,
                "vertices": len(found.neighbours),
                "n": n,
                "edges": edges,
                "weight": found.weight,
                "coverage": found.coverage,
                "rounds": found.rounds,
                "maximal": found.maximal,
                "checked": check,
                "seconds": {"load": asdict(loaded.clock), "factor": asdict(taken)},
                "output": str(output) if output else None,
            }
        )
        return
    print_facts(
        f"[0,{n}]-factor of {graph}",
        {
            "vertices": len(found.neighbours),
            "edges": edges,
            "coverage": f"{found.coverage:.1%} of the weight",
            "rounds": found.rounds,
            "maximal": "yes" if found.maximal else "not known",
            "loading": loaded.clock,
            "time": taken,
            "checked": "right" if check else None,
            "written": output,
        },
    )
