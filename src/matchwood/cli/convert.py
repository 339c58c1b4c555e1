"""`matchwood convert`: a graph from one file format to another."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from matchwood.cli.options import Compact, Graph, Json


def command(
    graph: Graph,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The suffix is the format.")],
    compact: Compact = False,
    as_json: Json = False,
) -> None:
    """Read a graph and write it in the format of OUT's suffix (.mtx, .txt, .graph, .npz, ...)."""
    import matchwood
    from matchwood.cli.generate import matrix_of
    from matchwood.cli.load import load
    from matchwood.cli.output import amount, duration, print_facts, print_json
    from matchwood.cli.progress import progress

    loaded = load(graph, compact=compact)
    matrix = matrix_of(loaded.matrix)
    start = time.perf_counter()
    with progress(f"writing {output}"):
        matchwood.io.write(output, matrix)
    seconds = time.perf_counter() - start
    facts = {
        "graph": graph,
        "output": str(output),
        "rows": matrix.shape[0],
        "columns": matrix.shape[1],
        "entries": matrix.nnz,
        "bytes": output.stat().st_size,
        "seconds": {"load": loaded.seconds, "write": seconds},
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
            "time": f"reading {duration(loaded.seconds)}, writing {duration(seconds)}",
        },
    )
