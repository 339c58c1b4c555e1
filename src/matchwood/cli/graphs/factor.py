"""`matchwood factor`: a [0,n]-factor of a graph."""

from __future__ import annotations

from typing import Annotated

import typer

from matchwood.cli.beyond import Batches, DeviceNumbers, Memory, StatsFile, place, write_stats
from matchwood.cli.options import Graph, Rng, Ties
from matchwood.cli.shared import Shared, report, timed, with_shared


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
    ties: Ties = "hash",
    rng: Rng = 0,
    devices: DeviceNumbers = None,
    memory: Memory = None,
    batches: Batches = None,
    stats: StatsFile = None,
    *,
    shared: Shared,
) -> None:
    """Choose strong edges such that every vertex has at most n of them."""
    where = place(shared, devices, memory, batches, stats)
    loaded = shared.load(graph)
    import matchwood

    with timed("choosing edges") as taken:
        found = matchwood.degree_factor(
            loaded.matrix, n, method=method, rounds=rounds or None, period=period,
            uncharged=uncharged, charge_probability=charge_probability, rng=rng, ties=ties,
            **where,
        )  # fmt: skip
    write_stats(stats, found.stats)
    shared.verify(found.check, loaded.matrix)  # also maximal, where it says so
    columns = {f"neighbour{k + 1}": found.neighbours[:, k] for k in range(n)}
    shared.write(loaded, columns, coverage=found.coverage)
    vertices, edges = len(found.neighbours), int((found.neighbours >= 0).sum()) // 2
    report(
        shared, loaded, taken, "factor", f"[0,{n}]-factor of {graph}",
        facts={
            "vertices": vertices,
            "n": n,
            "edges": edges,
            "weight": found.weight,
            "coverage": found.coverage,
            "rounds": found.rounds,
            "maximal": found.maximal,
        },
        shown={
            "vertices": vertices,
            "edges": edges,
            "coverage": f"{found.coverage:.1%} of the weight",
            "rounds": found.rounds,
            "maximal": "yes" if found.maximal else "not known",
        },
    )  # fmt: skip
