"""The verbs about files: what a graph is like, graphs made from a seed, other formats."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

import matchwood
from matchwood.cli import results
from matchwood.cli.load import as_typed, generators, load, make
from matchwood.cli.options import Compact, Graph, Json, Pattern, Read, Threads
from matchwood.cli.output import amount, as_text, print_facts, print_json, print_table, progress
from matchwood.report.timing import clock


def info(
    graph: Graph,
    threads: Threads = None,
    compact: Compact = False,
    pattern: Pattern = False,
    read: Read = None,
    as_json: Json = False,
) -> None:
    """Show size, symmetry, degrees and components of a graph or matrix."""
    loaded = load(graph, compact=compact, pattern=pattern, read=read)
    with progress("looking"):
        facts = describe(loaded.matrix, threads)
    facts["seconds"] = {"load": asdict(loaded.clock)}
    if as_json:
        print_json({"graph": graph, **facts})
    else:
        print_facts(graph, {**_for_people(facts), "loading": loaded.clock})


def describe(A: Any, threads: int | None = None) -> dict[str, Any]:
    """The facts about a SciPy matrix; those of a graph only where it is square."""
    csr = A.tocsr()
    nbytes = csr.indptr.nbytes + csr.indices.nbytes + csr.data.nbytes
    facts: dict[str, Any] = {
        "rows": int(csr.shape[0]),
        "columns": int(csr.shape[1]),
        "entries": int(csr.nnz),
        "index_type": str(csr.indices.dtype),
        "value_type": str(csr.data.dtype),
        "bytes": int(nbytes),
    }
    if csr.nnz:
        facts["values"] = {"least": csr.data.min().item(), "largest": csr.data.max().item()}
    if csr.shape[0] == csr.shape[1]:
        facts.update(_of_graph(csr, threads))
    return facts


def _of_graph(csr: Any, threads: int | None) -> dict[str, Any]:
    import numpy as np

    G = matchwood.graph(csr)
    degree = G.degrees
    found = matchwood.connected_components(G, threads=threads)
    sizes = np.bincount(found.labels, minlength=1)
    return {
        "loops": int(G.loops),
        "symmetric_pattern": bool(G.has_symmetric_pattern),
        "symmetric_values": _symmetric_values(G),
        "edges": int(degree.sum()) // 2,
        "degree": {
            "least": int(degree.min(initial=0) if degree.size == 0 else degree.min()),
            "median": float(np.median(degree)) if degree.size else 0.0,
            "mean": float(degree.mean()) if degree.size else 0.0,
            "largest": int(degree.max(initial=0)),
        },
        "isolated": int((degree == 0).sum()),
        "components": int(found.count),
        "largest_component": int(sizes.max()),
    }


def _symmetric_values(G: Any) -> bool | None:
    """None where values are complex or too large to be weights."""
    try:
        return bool(G.has_symmetric_values)
    except (TypeError, ValueError):
        return None


def _for_people(facts: dict[str, Any]) -> dict[str, Any]:
    shown = {
        "rows, columns": f"{facts['rows']:,} x {facts['columns']:,}",
        "entries": facts["entries"],
        "types": f"{facts['index_type']} indices, {facts['value_type']} values",
        "memory": amount(facts["bytes"]),
    }
    if "values" in facts:
        least, largest = facts["values"]["least"], facts["values"]["largest"]
        least, largest = as_text(least), as_text(largest)
        shown["values"] = least if least == largest else f"{least} to {largest}"
    if "edges" in facts:
        degree = facts["degree"]
        shown |= {
            "edges, both ways counted once": facts["edges"],
            "on the diagonal": facts["loops"],
            "symmetric": _symmetry(facts),
            "degree": f"{degree['least']:,} to {degree['largest']:,}, mean {degree['mean']:.2f}, "
            f"median {degree['median']:g}",
            "isolated vertices": facts["isolated"],
            "components": f"{facts['components']:,}, largest {facts['largest_component']:,}",
        }
    return shown


def _symmetry(facts: dict[str, Any]) -> str:
    if not facts["symmetric_pattern"]:
        return "no: directed"
    if facts["symmetric_values"] is None:
        return "pattern yes"
    return "yes" if facts["symmetric_values"] else "pattern yes, values no"


# What typer does not know is an argument of the generator: scale=16 or --scale 16.
SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}


def generate(
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


def convert(
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
