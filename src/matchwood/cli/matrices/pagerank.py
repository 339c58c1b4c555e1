"""`matchwood pagerank`: where a random surfer spends the time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from matchwood.cli.options import Check, Compact, Engine, Graph, Json, Output, Read, Threads

SHOWN = 10  # vertices of the highest scores in the table


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
    engine: Engine = None,
    threads: Threads = None,
    check: Check = False,
    compact: Compact = False,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Score vertices by how often a random surfer comes there.

    A result file has the score of each vertex.
    """
    from matchwood.cli import results

    results.check_suffix(output)
    import numpy as np

    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import print_facts, print_json, print_table
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    with clock() as taken, progress("ranking"):
        found = matchwood.pagerank(
            loaded.matrix,
            damping=damping,
            tol=tol,
            max_iterations=iterations,
            weighted=weighted,
            engine=engine,
            threads=threads,
        )
    if check:
        with progress("checking"):
            matchwood.check.check_pagerank(
                loaded.matrix, found, damping=damping, tol=tol, weighted=weighted
            )
    scores = found.scores
    first = np.argsort(-scores, kind="stable")[:SHOWN]
    top = [
        (int(v) if loaded.ids is None else loaded.ids[v], float(scores[v])) for v in first.tolist()
    ]
    numbers = {
        "iterations": found.iterations,
        "error": found.error,
        "converged": bool(found.converged),
    }
    if output is not None:
        results.write(output, {"score": scores}, numbers, ids=loaded.ids)
    if as_json:
        print_json(
            {
                "graph": graph,
                "vertices": len(scores),
                **numbers,
                "damping": damping,
                "top": [{"vertex": v, "score": score} for v, score in top],
                "checked": check,
                "seconds": {"load": asdict(loaded.clock), "rank": asdict(taken)},
                "output": str(output) if output else None,
            }
        )
        return
    print_facts(
        f"pagerank of {graph}",
        {
            "vertices": len(scores),
            "iterations": found.iterations,
            "converged": "yes" if found.converged else "no",
            "error": f"{found.error:.3g}",
            "loading": loaded.clock,
            "time": taken,
            "checked": "right" if check else None,
            "written": output,
        },
    )
    print_table("highest scores", ("vertex", "score"), top)
