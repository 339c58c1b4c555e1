"""`matchwood factor`: a [0,n]-factor of a graph."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from matchwood.cli.options import Graph
from matchwood.cli.shared import Shared, with_shared


@with_shared
def command(
    graph: Graph,
    n: Annotated[int, typer.Option("-n", min=1, help="Neighbours of a vertex at most.")] = 2,
    method: Annotated[str, typer.Option("--method", help="auto, parallel or greedy.")] = "auto",
    rounds: Annotated[
        int, typer.Option("--rounds", min=0, help="Rounds at most; 0: until maximal.")
    ] = 5,
    period: Annotated[
        int, typer.Option("--period", min=1, help="Charges are off in one of so many rounds.")
    ] = 5,
    uncharged: Annotated[
        int, typer.Option("--uncharged", min=0, help="In which of them charges are off: 0, 1, ...")
    ] = 0,
    charge_probability: Annotated[
        float, typer.Option("--charge-probability", help="Probability of a positive charge.")
    ] = 0.5,
    ties: Annotated[str, typer.Option("--ties", help="index or hash.")] = "index",
    rng: Annotated[int, typer.Option("--rng", "--seed", help="Seed of charges and ties.")] = 0,
    *,
    shared: Shared,
) -> None:
    """Choose strong edges such that every vertex has at most n of them."""
    from matchwood.cli import results

    engine, threads, check, compact, read, output, as_json = shared
    results.check_suffix(output)
    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import print_facts, print_json
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    with clock() as taken, progress("choosing edges"):
        found = matchwood.degree_factor(
            loaded.matrix, n, method=method, rounds=rounds or None, period=period,
            uncharged=uncharged, charge_probability=charge_probability, rng=rng, ties=ties,
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
