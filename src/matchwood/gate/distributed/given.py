"""What a rank may be given of a graph: its part of a list of edges, its slab of rows, or all of it.

`read` makes entries (u, v, value) of it, as the user numbers vertices, in the order in which they
were given.  The entries of all ranks, rank 0 first, are then what one machine would be given.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.gate import graph as csr
from matchwood.gate import inputs, sparse_inputs

EXPECTED = (
    "edges of shape (m, 2), (n, edges[, weights]), a sparse matrix with this rank's rows, "
    "a whole graph on one rank, or None"
)


class Share(NamedTuple):
    """The part of one rank."""

    kind: str  # "edges", "rows", "graph" or "none"
    n: int | None  # vertices; of rows, the columns
    rows: int  # of a slab; they follow those of the ranks before
    u: Any
    v: Any
    data: Any
    edges: bool = False  # edges of a list, not entries of a matrix
    duplicates: str | None = None  # that a Graph came with
    place: str = "cpu"  # where the arrays lie


NOTHING = np.empty(0, np.int64)


def read(A: Any, n: Any, weights: Any, caller: str) -> Share:
    """The share of one rank, checked but for what other ranks know."""
    if A is None:
        return Share("none", None, 0, NOTHING, NOTHING, None)
    if isinstance(A, csr.Graph):
        return _from_graph(A, caller)
    if sparse_inputs.is_sparse(A):
        return _from_rows(A, caller)
    if inputs.is_networkx(A):
        return _from_graph(csr.as_graph(A, caller), caller)
    if isinstance(A, tuple) and len(A) in (2, 3) and isinstance(A[0], (int, np.integer)):
        if weights is not None and len(A) == 3:
            raise TypeError(f"{caller}: weights must be given once, got two arrays")
        return _from_edges(int(A[0]), A[1], A[2] if len(A) == 3 else weights, caller)
    if isinstance(A, tuple):
        return _from_graph(csr.as_graph(A, caller), caller)
    if isinstance(A, (np.ndarray, list)) or inputs.is_foreign_array(A):
        return _from_edges(None, A, weights, caller)
    raise TypeError(f"{caller}: A must be {EXPECTED}, got {type(A).__name__}")


def _from_edges(n: int | None, edges: Any, weights: Any, caller: str) -> Share:
    ends, data = inputs.edge_arrays(edges, weights, caller)
    place, ends = engines.location(ends), engines.moved(ends, "cpu")
    u, v = (inputs.as_indices(ends[:, k], "edges", caller) for k in (0, 1))
    return Share("edges", n, 0, u, v, _numbers(data, caller), True, place=place)


def _from_rows(A: Any, caller: str) -> Share:
    raw = sparse_inputs.read(A, caller, square=False)
    shape = raw.shape
    slab = csr.Rectangle(raw, None, caller)
    there = slab.on("cpu")
    u, v = _coordinates(there.entries(), shape[0])
    data = _numbers(there.given_values(caller), caller)
    return Share("rows", shape[1], shape[0], u, v, data, place=slab.engine)


def _from_graph(G: csr.Graph, caller: str) -> Share:
    there = G.on("cpu")
    u, v = _coordinates(there.entries(), G.n)
    data = _numbers(there.given_values(caller), caller)
    return Share("graph", G.n, G.n, u, v, data, there.raw().edges, G.duplicates, G.engine)


def _coordinates(view: Any, rows: int) -> tuple[Any, Any]:
    lengths = np.diff(view.indptr)
    return np.repeat(np.arange(rows, dtype=view.indices.dtype), lengths), view.indices


def _numbers(data: Any, caller: str) -> Any:
    """Values that can be sent: numbers of at most 16 bytes."""
    if data is None:
        return None
    data = engines.moved(data, "cpu")
    if inputs.carried(data) is not data:
        raise TypeError(f"{caller}: weights must be real numbers, got dtype {data.dtype}")
    return np.ascontiguousarray(data, dtype=data.dtype.newbyteorder("="))
