"""`matchwood communities`: groups of vertices that are tied to each other."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.options import Check, Compact, Engine, Graph, Json, Output, Read, Threads

METHODS = ("louvain", "leiden", "labels")


def command(
    graph: Graph,
    method: Annotated[
        str, typer.Option("--method", help="louvain, leiden or labels (label propagation).")
    ] = "louvain",
    resolution: Annotated[
        float, typer.Option("--resolution", help="Larger: more and smaller communities.")
    ] = 1.0,
    seed: Annotated[int, typer.Option("--rng", "--seed", min=0, help="Of the random order.")] = 0,
    top: Annotated[int, typer.Option("--top", min=0, help="How many of the largest to show.")] = 10,
    engine: Engine = None,
    threads: Threads = None,
    check: Check = False,
    compact: Compact = False,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Find communities: groups of vertices tied to each other more than to the rest."""
    from matchwood.arguments import one_of, real
    from matchwood.cli import results

    results.check_suffix(output)
    one_of("communities", "method", method, METHODS)
    real("communities", "resolution", resolution, 0)
    if method == "labels" and resolution != 1.0:
        raise ValueError("communities: resolution must be 1 for labels, which have none")
    import matchwood
    from matchwood.cli.graphs.labels import report
    from matchwood.cli.load import load
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    options: dict[str, Any] = {"rng": seed, "engine": engine, "threads": threads}
    if method != "labels":
        options["resolution"] = resolution
    function = matchwood.label_propagation if method == "labels" else getattr(matchwood, method)
    with clock() as taken, progress("finding communities"):
        found = function(loaded.matrix, **options)
    if check:
        with progress("checking"):
            if method == "labels":
                matchwood.check.check_label_propagation(loaded.matrix, found)
            else:
                matchwood.check.check_communities(loaded.matrix, found, resolution=resolution)
    report(
        f"communities of {graph}", graph, loaded, found, taken,
        top=top, check=check, output=output, as_json=as_json,
        method=method, seed=seed, modularity=found.modularity, rounds=found.rounds,
    )  # fmt: skip
