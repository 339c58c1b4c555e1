"""`matchwood info`: what a graph is like."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from matchwood.cli.options import Compact, Graph, Json, Pattern, Read, Threads


def command(
    graph: Graph,
    threads: Threads = None,
    compact: Compact = False,
    pattern: Pattern = False,
    read: Read = None,
    as_json: Json = False,
) -> None:
    """Show size, symmetry, degrees and components of a graph or matrix."""
    from matchwood.cli.load import load
    from matchwood.cli.output import print_facts, print_json
    from matchwood.cli.progress import progress

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

    import matchwood

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
    from matchwood.cli.output import amount, as_text

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
