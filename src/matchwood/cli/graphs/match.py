"""`matchwood match`: a matching of a graph."""

from __future__ import annotations

from typing import Annotated

import typer

from matchwood.cli.beyond import Batches, DeviceNumbers, Memory, StatsFile, place, write_stats
from matchwood.cli.options import Graph, Rng, Ties
from matchwood.cli.shared import Shared, report, timed, with_shared

LARGEST = ("hopcroft_karp", "blossom")  # methods of maximum_matching, nor does that
MAXIMAL = ("proposal", "serial")  # methods of maximal_matching, which does not look at weights


@with_shared
def command(
    graph: Graph,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="auto, greedy, dominant, suitor, augmented, streaming, random_weighted or exact: "
            "a heavy matching.  proposal or serial: a maximal one, weights not looked at.",
        ),
    ] = "auto",
    maximum: Annotated[
        bool,
        typer.Option(
            "--maximum", help="As many edges as there can be, by hopcroft_karp or blossom."
        ),
    ] = False,
    rng: Rng = 0,
    ties: Ties = "hash",
    prefer: Annotated[
        str,
        typer.Option(
            "--prefer",
            help="With proposal or serial: the neighbour that is chosen; random, hash or degree. "
            "The last two find more edges, and take longer.",
        ),
    ] = "random",
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", help="With augmented: how many at most; one wins most of it."),
    ] = None,
    devices: DeviceNumbers = None,
    memory: Memory = None,
    batches: Batches = None,
    stats: StatsFile = None,
    *,
    shared: Shared,
) -> None:
    """Find heavy edges of which no two share an end, and how near to the best they are."""
    where = place(shared, devices, memory, batches, stats)
    loaded = shared.load(graph)
    import matchwood

    if prefer != "random" and (maximum or method not in MAXIMAL):
        raise ValueError(f"match: --prefer needs --method proposal or serial, got {method}")
    if rounds is not None and (maximum or method != "augmented"):
        raise ValueError(f"match: --rounds needs --method augmented, got {method}")
    options = {"method": method, "rng": rng, **where}
    with timed("matching") as taken:
        if maximum or method in LARGEST:
            found = matchwood.maximum_matching(loaded.matrix, method=method, **where)
        elif method in MAXIMAL:
            found = matchwood.maximal_matching(loaded.matrix, prefer=prefer, **options)
        else:
            found = matchwood.weighted_matching(loaded.matrix, ties=ties, rounds=rounds, **options)
    write_stats(stats, found.stats)
    shared.verify(found.check, loaded.matrix)  # what the method promises
    shared.write(loaded, {"mate": found.mate}, weight=found.weight)
    n = len(found.mate)
    report(
        shared, loaded, taken, "match", f"matching of {graph}",
        facts={
            "vertices": n,
            "edges": found.cardinality,
            "weight": found.weight,
            "bound": found.bound,
            "quality": found.quality,
            "method": found.method,
            "rounds": found.rounds,
        },
        shown={
            "vertices": n,
            "edges": found.cardinality,
            "matched": f"{2 * found.cardinality / max(1, n):.1%} of the vertices",
            "weight": f"{found.weight:g}",
            "of the best": f"at least {found.quality:.1%}",
            "method": found.method,
            "rounds": found.rounds,
        },
    )  # fmt: skip
