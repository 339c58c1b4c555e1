"""`matchwood bfs`: breadth-first search."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from matchwood.cli.options import Check, Compact, Engine, Graph, Json, Output, Read, Threads

SHOWN = 12  # levels in the table; of more, the first and the last are shown


def command(
    graph: Graph,
    source: Annotated[
        list[str] | None, typer.Option("-s", "--source", help="Start here; may be repeated.")
    ] = None,
    depth_limit: Annotated[
        int | None, typer.Option("--depth-limit", help="Go no deeper than this level.")
    ] = None,
    undirected: Annotated[
        bool, typer.Option("--undirected", help="Follow arcs in both directions.")
    ] = False,
    engine: Engine = None,
    threads: Threads = None,
    check: Check = False,
    compact: Compact = False,
    read: Read = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Search breadth first from one or several vertices: levels and parents."""
    from matchwood.cli import results

    results.check_suffix(output)
    import numpy as np

    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import print_facts, print_json, print_table
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    loaded = load(graph, compact=compact, read=read)
    sources = [loaded.vertex(text) for text in source] if source else [0]
    with clock() as taken, progress("searching"):
        found = matchwood.bfs(
            loaded.matrix,
            sources,
            depth_limit=depth_limit,
            directed=not undirected,
            engine=engine,
            threads=threads,
        )
    if check:
        with progress("checking"):
            matchwood.check.check_bfs(
                loaded.matrix, sources, found, depth_limit=depth_limit, directed=not undirected
            )
    sizes = np.bincount(found.level[found.level >= 0])
    reached = int(sizes.sum())
    if output is not None:
        columns = {"level": found.level, "parent": found.parent}
        results.write(output, columns, {"rounds": found.rounds}, ids=loaded.ids)
    if as_json:
        print_json(
            {
                "graph": graph,
                "vertices": len(found.level),
                "sources": sources,
                "reached": reached,
                "rounds": found.rounds,
                "level_sizes": sizes,
                "checked": check,
                "seconds": {"load": asdict(loaded.clock), "bfs": asdict(taken)},
                "output": str(output) if output else None,
            }
        )
        return
    print_facts(
        f"breadth-first search in {graph}",
        {
            "vertices": len(found.level),
            "sources": ", ".join(source or ["0"]),
            "reached": f"{reached:,} ({reached / max(1, len(found.level)):.1%})",
            "deepest level": len(sizes) - 1,
            "loading": loaded.clock,
            "time": taken,
            "checked": "right" if check else None,
            "written": output,
        },
    )
    print_table("levels", ("level", "vertices", "so far"), _rows(sizes.tolist()))


def _rows(sizes: list[int]) -> list[tuple[str, str, str]]:
    """A row for each level; of many levels the first, the last and dots between."""
    total, so_far = sum(sizes), 0
    rows: list[tuple[str, str, str]] = []
    for level, size in enumerate(sizes):
        so_far += size
        rows.append((f"{level}", f"{size:,}", f"{so_far / total:.1%}"))
    if len(rows) > SHOWN:
        half = SHOWN // 2
        rows[half:-half] = [("...", "", "")]
    return rows
