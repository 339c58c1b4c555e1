"""`matchwood mst`: the minimum or maximum spanning forest of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli import results
from matchwood.cli.options import Graph
from matchwood.cli.shared import Shared, report, timed, with_shared

Maximum = Annotated[bool, typer.Option("--maximum", help="The heaviest forest.")]


@with_shared
def command(
    graph: Graph,
    method: Annotated[
        str,
        typer.Option(
            "--method", help="auto, boruvka, awerbuch_shiloach, kruskal or filter_kruskal."
        ),
    ] = "auto",
    maximum: Maximum = False,
    *,
    shared: Shared,
) -> None:
    """Find the minimum spanning forest: the lightest edges that join everything.

    A result file has a line for each edge: its two ends and its weight.
    """
    loaded = shared.load(graph)
    import matchwood

    with timed("joining vertices") as taken:
        found = matchwood.minimum_spanning_forest(
            loaded.matrix, method=method, maximum=maximum, **shared.where
        )
    check = matchwood.check.check_spanning_forest
    shared.verify(check, loaded.matrix, found, maximum=maximum)
    if shared.output is not None:
        _write(shared.output, found, loaded.ids)
    report(shared, loaded, taken, "forest", **facts_of_forest(graph, found, maximum))


def facts_of_forest(graph: str, found: Any, maximum: bool) -> dict[str, Any]:
    """The title, and the facts for programs and for people."""
    shown = {
        "vertices": found.n,
        "edges": found.n - found.components,
        "components": found.components,
    }
    return {
        "title": f"{'maximum' if maximum else 'minimum'} spanning forest of {graph}",
        "facts": {**shown, "total": found.total, "maximum": maximum, "rounds": found.rounds},
        "shown": {**shown, "total weight": f"{found.total:,}"},
    }


def _write(path: Path, found: Any, ids: Any) -> None:
    """Edges as an array (.npy), with weights (.npz), or as lines (.txt, .csv with the ids)."""
    if path.suffix == ".npy":
        results.save(path, found.edges)
        return
    if path.suffix == ".npz":
        named = {"edges": found.edges, "weights": found.weights, "total": found.total}
        results.save_named(path, named, ids)
        return
    ends = [[str(v) for v in edge] for edge in found.edges.tolist()]
    if path.suffix == ".csv" and ids is not None:
        ends = [[results.quoted(ids[v]) for v in edge] for edge in found.edges.tolist()]
    weights = map(str, found.weights.tolist())
    separator, header = (" ", "") if path.suffix == ".txt" else (",", "u,v,weight\n")
    lines = (separator.join((*edge, w)) for edge, w in zip(ends, weights, strict=True))
    results.write_text(path, header + "".join(f"{line}\n" for line in lines))
