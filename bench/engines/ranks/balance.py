"""How evenly the entries of a graph lie on ranks: the largest part over the mean, 16 x 16.

    python -m bench.engines.ranks.balance

The thesis' layout ("ranges") beside ours ("stripes").  Counted, not timed, so any machine will do.
Graphs that lie in files are taken from the data folder, where there is one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import matchwood
from bench import harness
from matchwood.engines.ranks import grid as grids
from matchwood.gate.distributed.sources import HashedOrder

DATA = harness.DATA


class Row(NamedTuple):
    """Largest over mean that is expected; `file` where the graph is not made from a seed."""

    thesis: float
    ours: float
    file: str = ""


ROWS = {
    "rmat 18": Row(1.20, 1.16),
    "grid 1024^2": Row(15.5, 1.00),
    "mesh 64^3": Row(5.4, 1.02),
    "NY roads": Row(9.2, 1.04, "graphs/USA-road-d.NY.gr.gz"),
    "luxembourg_osm": Row(13.2, 1.04, "matrices/luxembourg_osm.mtx.gz"),
    "cnr-2000": Row(3.2, 1.48, "graphs/cnr-2000.graph-txt.gz"),
}
GRAPHS: dict[str, Callable[[], Any]] = {
    "rmat 18": lambda: matchwood.generators.rmat(18),
    "grid 1024^2": lambda: matchwood.generators.grid((1024, 1024)),
    "mesh 64^3": lambda: matchwood.generators.mesh((64, 64, 64)),
    **{
        name: (lambda file=row.file: matchwood.io.read(DATA / file))
        for name, row in ROWS.items()
        if row.file
    },
}


def largest_share(A: Any, R: int, C: int, layout: str, *, hashed: bool = False) -> float:
    """The most entries of a rank over the mean, of the undirected graph of a matrix."""
    view = matchwood.graph(A).undirected_pattern()
    u = np.repeat(np.arange(view.n), np.diff(view.indptr))
    v = view.indices.astype(np.int64)
    if hashed:
        order = HashedOrder(view.n)
        u, v = order.inside(u), order.inside(v)
    keepers = grids.made(layout, view.n, R, C, 0).keeper(u, v)
    counts = np.bincount(keepers, minlength=R * C)
    return float(counts.max() * R * C / max(counts.sum(), 1))


def run(R: int = 16, C: int = 16) -> list[dict[str, Any]]:
    """A line for each graph that is at hand."""
    lines = []
    for name, row in ROWS.items():
        if row.file and not (DATA / row.file).exists():
            continue
        A = GRAPHS[name]()
        lines.append({
            "graph": name, "grid": f"{R}x{C}", "entries": int(A.nnz),
            "thesis": round(largest_share(A, R, C, "ranges"), 2),
            "ours": round(largest_share(A, R, C, "stripes"), 2),
            "ours, hashed": round(largest_share(A, R, C, "stripes", hashed=True), 2),
        })  # fmt: skip
    return lines


if __name__ == "__main__":
    for line in run():
        print(json.dumps(line))
