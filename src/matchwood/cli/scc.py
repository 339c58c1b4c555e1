"""`matchwood scc`: the strongly connected components of a directed graph."""

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
            "--method", help="auto, tarjan, forward_backward, multistep or propagation (GPU)."
        ),
    ] = "auto",
    top: Annotated[int, typer.Option("--top", min=0, help="How many of the largest to show.")] = 10,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Number the components in topological order.")
    ] = False,
    engine: Engine = None,
    threads: Threads = None,
    check: Check = False,
    compact: Compact = False,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Find the strongly connected components: vertices that reach each other along the arcs."""
    from matchwood.cli import results

    results.check_suffix(output)
    import numpy as np

    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import print_facts, print_json, print_table
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    find = matchwood.condensation if ordered else matchwood.strongly_connected_components
    right = (
        matchwood.check.check_condensation
        if ordered
        else matchwood.check.check_strongly_connected_components
    )
    with clock() as taken, progress("finding strong components"):
        found = find(loaded.matrix, method=method, engine=engine, threads=threads)
    if check:
        with progress("checking"):
            right(loaded.matrix, found)
    sizes = np.bincount(found.labels, minlength=found.count)
    largest = np.argsort(-sizes, kind="stable")[:top]
    if output is not None:
        results.write(output, {"label": found.labels}, {"count": found.count}, ids=loaded.ids)
    if as_json:
        print_json(
            {
                "graph": graph,
                "vertices": len(found.labels),
                "components": found.count,
                "trivial": int((sizes == 1).sum()),
                "largest": [
                    {"component": int(part), "vertices": int(sizes[part])} for part in largest
                ],
                "ordered": ordered,
                "checked": check,
                "seconds": {"load": asdict(loaded.clock), "components": asdict(taken)},
                "output": str(output) if output else None,
            }
        )
        return
    print_facts(
        f"strong components of {graph}",
        {
            "vertices": len(found.labels),
            "components": found.count,
            "of one vertex": int((sizes == 1).sum()),
            "loading": loaded.clock,
            "time": taken,
            "checked": "right" if check else None,
            "written": output,
        },
    )
    if top and found.count > 1:
        print_table(
            "largest",
            ("component", "vertices", "share"),
            [
                (int(part), int(sizes[part]), f"{sizes[part] / len(found.labels):.1%}")
                for part in largest
            ],
        )
