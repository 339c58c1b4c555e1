"""`matchwood convert`: a graph from one file format to another."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from matchwood.cli import results
from matchwood.cli.options import Compact, Graph, Json, Pattern, Read


def command(
    graph: Graph,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The suffix is the format.")],
    compact: Compact = False,
    pattern: Pattern = False,
    read: Read = None,
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="Of OUT, where its suffix does not say."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read a graph and write it in the format of OUT's suffix (.mtx, .txt, .graph, .npz, ...)."""
    import matchwood
    from matchwood.cli.load import load
    from matchwood.cli.output import amount, print_facts, print_json
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    results.check_graph_file(output, "OUT", format)
    loaded = load(graph, compact=compact, pattern=pattern, read=read)
    matrix = loaded.matrix
    with clock() as taken, progress(f"writing {output}"):
        matchwood.io.write(output, matrix, format=format)
    facts = {
        "graph": graph,
        "output": str(output),
        "rows": matrix.shape[0],
        "columns": matrix.shape[1],
        "entries": matrix.nnz,
        "bytes": output.stat().st_size,
        "seconds": {"load": asdict(loaded.clock), "write": asdict(taken)},
    }
    if as_json:
        print_json(facts)
        return
    print_facts(
        f"{graph} -> {output}",
        {
            "rows, columns": f"{matrix.shape[0]:,} x {matrix.shape[1]:,}",
            "entries": int(matrix.nnz),
            "size": amount(output.stat().st_size),
            "reading": loaded.clock,
            "writing": taken,
        },
    )
