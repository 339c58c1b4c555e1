"""`matchwood bfs`: breadth-first search."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from matchwood.cli.options import Graph
from matchwood.cli.output import print_table
from matchwood.cli.shared import Shared, report, timed, with_shared

DepthLimit = Annotated[
    int | None, typer.Option("--depth-limit", help="Go no deeper than this level.")
]
Undirected = Annotated[bool, typer.Option("--undirected", help="Follow arcs in both directions.")]
SHOWN = 12  # levels in the table; of more, the first and the last are shown


@with_shared
def command(
    graph: Graph,
    source: Annotated[
        list[str] | None, typer.Option("-s", "--source", help="Start here; may be repeated.")
    ] = None,
    depth_limit: DepthLimit = None,
    undirected: Undirected = False,
    *,
    shared: Shared,
) -> None:
    """Search breadth first from one or several vertices: levels and parents."""
    loaded = shared.load(graph)
    import numpy as np

    import matchwood

    A = loaded.matrix
    sources = [loaded.vertex(text) for text in source] if source else [0]
    options: dict[str, Any] = {"depth_limit": depth_limit, "directed": not undirected}
    with timed("searching") as taken:
        found = matchwood.bfs(A, sources, **options, **shared.where)
    shared.verify(matchwood.check.check_bfs, A, sources, found, **options)
    shared.write(loaded, {"level": found.level, "parent": found.parent}, rounds=found.rounds)
    sizes = np.bincount(found.level[found.level >= 0]).tolist()
    told = facts_of_search(len(found.level), sources, source or ["0"], found.rounds, sizes)
    report(shared, loaded, taken, "bfs", f"breadth-first search in {graph}", **told)
    if not shared.as_json:
        print_table("levels", ("level", "vertices", "so far"), _rows(sizes))


def facts_of_search(
    n: int, sources: list[Any], names: list[str], rounds: int, sizes: list[int]
) -> dict[str, Any]:
    """The facts for programs and for people; `sizes` are those of the levels."""
    reached = sum(sizes)
    facts = {
        "vertices": n,
        "sources": sources,
        "reached": reached,
        "rounds": rounds,
        "level_sizes": sizes,
    }
    shown = {
        "vertices": n,
        "sources": ", ".join(names),
        "reached": f"{reached:,} ({reached / max(1, n):.1%})",
        "deepest level": len(sizes) - 1,
    }
    return {"facts": facts, "shown": shown}


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
