"""The heaviest matching from other libraries.  No kernels of ours.

Bipartite.  SciPy finds the lightest matching that covers all rows of a matrix.  An edge of weight
w costs C - w there, with C twice the largest weight, and every row has a column of its own for
C, which means to stay free; so the lightest cover is the heaviest matching.

Others.  rustworkx has Edmonds' algorithm for integers.  Weights become integers by a power of two
that leaves the largest 2^90, so that only bits below 2^-90 of it are lost: none, when the weights
lie within 37 powers of two.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from matchwood.errors import EngineUnavailable
from matchwood.matching.result import Found

Array = np.ndarray[Any, Any]
MOST_SECONDS = 3600.0
BIPARTITE_SECONDS = 4e-8  # for each pair of rows; random and grid graphs, one Xeon core
GENERAL_SECONDS = 1e-7  # for each vertex and edge; random, mesh and Delaunay graphs, same core
TOP_BIT = 90  # of 127 that rustworkx has


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> Found:
    A = sp.csr_array((view.data.astype(np.float64), view.indices, view.indptr), (view.n,) * 2)
    mate = np.full(view.n, -1, view.indices.dtype)
    left = _one_side(A)
    if view.nnz == 0:
        pass
    elif left is not None:
        _match_bipartite(A, left, mate)
    else:
        _match_general(A, mate)
    u = np.flatnonzero(mate > np.arange(view.n))
    weight = float(A[u, mate[u]].sum()) if u.size else 0.0
    return Found(mate, weight, 1, weight)


def _one_side(A: sp.csr_array) -> Array | None:
    """True for the vertices of one side of a bipartite graph; None when it is not bipartite.

    In the double cover each vertex is there twice, and each edge joins the first copy of one end
    with the second of the other.  A component with an odd cycle stays one component there; a
    bipartite one becomes two, and which copy is in which tells the sides.
    """
    n = A.shape[0]
    cover = sp.block_array([[None, A], [A, None]], format="csr")
    _, label = csgraph.connected_components(cover, directed=False)
    if (label[:n] == label[n:]).any():
        return None
    side: Array = label[:n] < label[n:]
    return side


def _refuse_hours(seconds: float, what: str) -> None:
    if seconds > MOST_SECONDS:
        raise ValueError(
            f"weighted_matching: method='exact' on {what} would take about "
            f"{seconds / 3600:.0f} hours; method='suitor' takes seconds, and its result has a bound"
        )


def _match_bipartite(A: sp.csr_array, left: Array, mate: Array) -> None:
    rows, columns = np.flatnonzero(left), np.flatnonzero(~left)
    if rows.size > columns.size:
        rows, columns = columns, rows
    degree = np.diff(A.indptr)
    rows, columns = rows[degree[rows] > 0], columns[degree[columns] > 0]
    _refuse_hours(
        BIPARTITE_SECONDS * rows.size**2,
        f"a bipartite graph with {A.shape[0]} vertices and {A.nnz // 2} edges",
    )
    B = sp.csr_array(A[rows][:, columns])
    free = 2 * float(B.data.max())
    B.data = free - B.data
    B = sp.csr_array(sp.hstack([B, free * sp.eye_array(rows.size)], format="csr"))
    B = sp.csr_array((B.data, B.indices.astype(np.int32), B.indptr.astype(np.int32)), B.shape)
    r, c = csgraph.min_weight_full_bipartite_matching(B)
    real = c < columns.size
    u, v = rows[r[real]], columns[c[real]]
    mate[u], mate[v] = v, u


def _match_general(A: sp.csr_array, mate: Array) -> None:
    n, m = A.shape[0], A.nnz // 2
    _refuse_hours(GENERAL_SECONDS * n * m, f"a graph with {n} vertices and {m} edges")
    try:
        rustworkx: Any = importlib.import_module("rustworkx")
    except ImportError:
        raise EngineUnavailable(
            "weighted_matching: method='exact' on a graph that is not bipartite needs rustworkx: "
            "pip install 'matchwood[exact]'"
        ) from None
    upper = sp.triu(A, k=1).tocoo()
    scale = TOP_BIT - math.frexp(float(upper.data.max()))[1]
    weights = [int(math.ldexp(w, scale)) for w in upper.data.tolist()]
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(n))
    u, v = (ends.tolist() for ends in upper.coords)
    graph.add_edges_from(list(zip(u, v, weights, strict=True)))
    for a, b in rustworkx.max_weight_matching(graph, weight_fn=int):
        mate[a], mate[b] = b, a
