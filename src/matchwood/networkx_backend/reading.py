"""From dictionaries of dictionaries to CSR arrays: which rows, which neighbours, which edges.

There are two ways.  The quick one reads the dictionaries' memory (quick.py); the plain one is for
Pythons, subclasses and nodes that the quick one does not know (plain.py).  Both give the same
arrays.  A graph that another thread changes meanwhile is read in one of its states, or a
RuntimeError says that it was changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np

from matchwood.networkx_backend.memory.layout import layout_is_known
from matchwood.networkx_backend.memory.plain import (
    Rows,
    attribute,
    plain_cells,
    plain_rows,
    sources,
)
from matchwood.networkx_backend.memory.quick import quick_data, quick_rows, quick_values

QUICK_FROM = 500  # nodes; the first use of the quick way loads compiled code


class Edges(NamedTuple):
    """Every edge once, in the order of ``G.edges``; of a multigraph every parallel one."""

    u: np.ndarray[Any, Any]
    v: np.ndarray[Any, Any]
    keys: list[Any] | None = None  # of a multigraph
    data: list[dict[Any, Any]] | None = None  # of a multigraph: the graph's own dictionaries


def plain_adjacency(G: Any) -> dict[Any, Any]:
    """The adjacency as dictionaries all through; a view of a graph is copied into some."""
    adjacency = G._adj
    if isinstance(adjacency, dict):
        return adjacency
    if G.is_multigraph():
        return {u: {v: dict(kd) for v, kd in row.items()} for u, row in adjacency.items()}
    return {u: dict(row) for u, row in adjacency.items()}


def read_rows(adjacency: dict[Any, Mapping[Any, Any]], *, quick: bool = True) -> Rows:
    """The rows of an adjacency, nodes numbered in its order."""
    found = None
    if quick and len(adjacency) >= QUICK_FROM and layout_is_known():
        found = quick_rows(adjacency)
    return plain_rows(adjacency) if found is None else found


def read_edges(rows: Rows, adjacency: Any, directed: bool, multi: bool) -> Edges:
    """The edges of an adjacency; only of a multigraph does it need to look there."""
    u, v = (sources(rows), rows.indices) if directed else _upper(rows)
    if not multi:
        return Edges(u, v)
    bundles = list(map(methodcaller("items"), plain_cells(rows, adjacency, directed)))
    pairs = list(map(list, bundles))  # one call: an edge and its key stay together
    times = np.fromiter(map(len, pairs), np.int64, len(pairs))
    together = list(chain.from_iterable(pairs))
    keys, data = map(list, zip(*together, strict=True)) if together else ([], [])
    return Edges(np.repeat(u, times), np.repeat(v, times), keys, data)


def _upper(rows: Rows) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Of the two entries of an edge the one at the node that comes first."""
    from matchwood.networkx_backend.memory import cpu_numbers
    from matchwood.teams import crew

    # one more: where to put what does not count, after all that do
    u, v = (np.empty(rows.indices.size + 1, rows.indices.dtype) for _ in range(2))
    count = np.zeros(1, np.int64)
    crew(1, work=u.size).run(cpu_numbers.upper, rows.indptr, rows.indices, u, v, count)
    return u[: count[0]].copy(), v[: count[0]].copy()


def read_values(
    rows: Rows, adjacency: Any, directed: bool, name: Any, *, quick: bool = True
) -> np.ndarray[Any, Any] | list[Any]:
    """An attribute of every edge of a graph that is no multigraph, 1 where it is missing.

    An array of floats where all are floats or small integers, and the quick way can be used.
    """
    if quick and len(adjacency) >= QUICK_FROM and layout_is_known():
        found = quick_values(rows, adjacency, directed, name)
        if found is not None:
            return found
    return attribute(plain_cells(rows, adjacency, directed), name)


def read_data(
    rows: Rows, adjacency: Any, directed: bool, count: int, chosen: Any, *, quick: bool = True
) -> list[Any] | None:
    """The dictionaries of some of the `count` edges; None where only Python can find them."""
    if not quick or len(adjacency) < QUICK_FROM or not layout_is_known():
        return None
    return quick_data(rows, adjacency, directed, count, chosen)
