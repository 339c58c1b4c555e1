"""`matchwood pagerank`: where a random surfer spends the time."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.options import Graph
from matchwood.cli.output import print_table
from matchwood.cli.shared import Shared, report, timed, with_shared

SHOWN = 10  # vertices of the highest scores in the table


@with_shared
def command(
    graph: Graph,
    damping: Annotated[
        float, typer.Option("--damping", help="Probability to follow an arc, below 1.")
    ] = 0.85,
    tol: Annotated[
        float, typer.Option("--tol", help="Stop when the scores change by less, times vertices.")
    ] = 1e-6,
    iterations: Annotated[
        int, typer.Option("--max-iterations", min=1, help="Stop after so many.")
    ] = 100,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="Read values as weights of arcs.")
    ] = False,
    *,
    shared: Shared,
) -> None:
    """Score vertices by how often a random surfer comes there.

    A result file has the score of each vertex.
    """
    loaded = shared.load(graph)
    import numpy as np

    import matchwood

    options: dict[str, Any] = {"damping": damping, "tol": tol, "weighted": weighted}
    with timed("ranking") as taken:
        found = matchwood.pagerank(
            loaded.matrix, max_iterations=iterations, **options, **shared.where
        )
    shared.verify(matchwood.check.check_pagerank, loaded.matrix, found, **options)
    scores = found.scores
    first = np.argsort(-scores, kind="stable")[:SHOWN].tolist()
    top = [(v if loaded.ids is None else loaded.ids[v], float(scores[v])) for v in first]
    numbers = {
        "iterations": found.iterations,
        "error": found.error,
        "converged": bool(found.converged),
    }
    shared.write(loaded, {"score": scores}, **numbers)
    report(
        shared, loaded, taken, "rank", f"pagerank of {graph}",
        facts={
            "vertices": len(scores),
            **numbers,
            "damping": damping,
            "top": [{"vertex": v, "score": score} for v, score in top],
        },
        shown={
            "vertices": len(scores),
            "iterations": found.iterations,
            "converged": "yes" if found.converged else "no",
            "error": f"{found.error:.3g}",
        },
    )  # fmt: skip
    if not shared.as_json:
        print_table("highest scores", ("vertex", "score"), top)
