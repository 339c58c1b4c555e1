"""`matchwood generate`: a graph from a seed."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from matchwood.cli import results
from matchwood.cli.options import Json, Threads

# What typer does not know is an argument of the generator: scale=16 or --scale 16.
SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}


def command(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A generator; none lists them all.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where to; the suffix is the format."),
    ] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make a graph: `matchwood generate rmat 16 edge_factor=8 seed=1 -o graph.mtx`.

    The arguments are those of matchwood.generators.NAME, in order, as name=value or as
    --name value; a shape is written 30x40.
    """
    from matchwood.cli.load import generators, make
    from matchwood.cli.output import print_facts, print_json
    from matchwood.cli.progress import progress
    from matchwood.report.timing import clock

    if name is None:
        _list(as_json)
        return
    if output is not None:
        results.check_graph_file(output)
    words = joined(context.args, generators().get(name))
    extra = {} if threads is None else {"threads": threads}
    with clock() as taken, progress(f"making {name}"):
        matrix = make(name, words, **extra)
    if output is not None:
        import matchwood

        with progress(f"writing {output}"):
            matchwood.io.write(output, matrix)
    facts = {
        "generator": name,
        "arguments": words,
        "rows": matrix.shape[0],
        "columns": matrix.shape[1],
        "entries": matrix.nnz,
        "seconds": asdict(taken),
        "output": str(output) if output else None,
    }
    if as_json:
        print_json(facts)
        return
    print_facts(
        " ".join((name, *words)),
        {
            "rows, columns": f"{matrix.shape[0]:,} x {matrix.shape[1]:,}",
            "entries": int(matrix.nnz),
            "time": taken,
            "written": output or "nowhere; -o FILE writes it",
        },
    )


def joined(words: list[str], function: Any) -> list[str]:
    """``--scale 16`` and ``--scale=16`` as ``scale=16``; ``--directed`` as ``directed=true``."""
    flags = set()
    if function is not None:
        parameters = inspect.signature(function).parameters.values()
        flags = {parameter.name for parameter in parameters if isinstance(parameter.default, bool)}
    result, waiting = [], list(words)
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("--"):
            result.append(word)
            continue
        key = word.removeprefix("--").replace("-", "_")
        if "=" in key:
            result.append(word.removeprefix("--"))
        elif key in flags:
            result.append(f"{key}=true")
        elif key.removeprefix("no_") in flags:
            result.append(f"{key.removeprefix('no_')}=false")
        elif waiting:
            result.append(f"{key}={waiting.pop(0)}")
        else:
            raise ValueError(f"{word} needs a value")
    return result


def _list(as_json: bool) -> None:
    from matchwood.cli.load import as_typed, generators
    from matchwood.cli.output import print_json, print_table

    rows = []
    for name, function in sorted(generators().items()):
        arguments = [as_typed(p) for p in inspect.signature(function).parameters.values()]
        about = (inspect.getdoc(function) or "").splitlines()[:1] or [""]
        rows.append((name, " ".join(arguments), about[0]))
    if as_json:
        keys = ("name", "arguments", "about")
        print_json({"generators": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        print_table("generators", ("name", "arguments", "what it makes"), rows)
