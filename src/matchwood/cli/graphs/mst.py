"""`matchwood mst`: the minimum or maximum spanning forest of a graph."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli import results
from matchwood.cli.options import Check, Compact, Engine, Graph, Json, Output, Read, Threads


def command(
    graph: Graph,
    method: Annotated[
        str,
        typer.Option(
            "--method", help="auto, boruvka, awerbuch_shiloach, kruskal or filter_kruskal."
        ),
    ] = "auto",
    maximum: Annotated[bool, typer.Option("--maximum", help="The heaviest forest.")] = False,
    engine: Engine = None,
    threads: Threads = None,
    check: Check = False,
    compact: Compact = False,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Find the minimum spanning forest: the lightest edges that join everything.

    A result file has a line for each edge: its two ends and its weight.
    """
    results.check_suffix(output)
    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import print_facts, print_json
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    with clock() as taken, progress("joining vertices"):
        found = matchwood.minimum_spanning_forest(
            loaded.matrix, method=method, maximum=maximum, engine=engine, threads=threads
        )
    if check:
        with progress("checking"):
            matchwood.check.check_spanning_forest(loaded.matrix, found, maximum=maximum)
    if output is not None:
        _write(output, found, loaded.ids)
    if as_json:
        print_json(
            {
                "graph": graph,
                "vertices": found.n,
                "edges": int(found.edges.shape[0]),
                "components": found.components,
                "total": found.total,
                "maximum": maximum,
                "rounds": found.rounds,
                "checked": check,
                "seconds": {"load": asdict(loaded.clock), "forest": asdict(taken)},
                "output": str(output) if output else None,
            }
        )
        return
    print_facts(
        f"{'maximum' if maximum else 'minimum'} spanning forest of {graph}",
        {
            "vertices": found.n,
            "edges": int(found.edges.shape[0]),
            "components": found.components,
            "total weight": f"{found.total:,}",
            "loading": loaded.clock,
            "time": taken,
            "checked": "right" if check else None,
            "written": output,
        },
    )


def _write(path: Path, found: Any, ids: Any) -> None:
    """Edges as an array (.npy), with weights (.npz), or as lines (.txt, .csv with the ids)."""
    import numpy as np

    if path.suffix == ".npy":
        results.save(path, found.edges)
        return
    if path.suffix == ".npz":
        named = {"edges": found.edges, "weights": found.weights, "total": found.total}
        if ids is not None:
            names = np.asarray(ids)
            named["id"] = names.astype(str) if names.dtype == object else names
        results.save_named(path, named)
        return
    rows = [
        (str(u), str(v), str(w))
        for (u, v), w in zip(found.edges.tolist(), found.weights.tolist(), strict=True)
    ]
    if path.suffix == ".txt":
        text = "".join(" ".join(row) + "\n" for row in rows)
    else:
        from matchwood.cli.results import _quoted

        name = (lambda v: v) if ids is None else (lambda v: _quoted(ids[int(v)]))
        lines = (f"{name(u)},{name(v)},{w}\n" for u, v, w in rows)
        text = "u,v,weight\n" + "".join(lines)
    results.write_text(path, text)
