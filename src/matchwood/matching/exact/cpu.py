"""The heaviest matching, by other libraries.

Components are independent.  So the weights of each are first divided by a power of two, such that
the largest lies between 1/2 and 1.  Then neither overflow and underflow nor a heavy edge in another
component can change the result.

Bipartite graphs.  SciPy finds the lightest matching that covers all rows of a matrix.  An edge of
weight w costs C - w there, with C = 2.  Every row has a column of its own at cost C, which means to
stay free.  So the lightest cover is the heaviest matching.  Bits below 2^-52 are lost.

Other graphs.  rustworkx has Edmonds' algorithm for integers.  Weights are multiplied by a power of
two such that the largest is 2^90, and rounded: only bits below 2^-90 of the largest are lost, and
none where all weights lie within 37 powers of two.

A very light edge may be rounded to nothing and left out.  Edges that can still be added are added
at the end, heaviest first.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from matchwood.errors import EngineUnavailable
from matchwood.matching.methods import EngineMatching
from matchwood.primitives.wide_sums import total

Array = np.ndarray[Any, Any]
MOST_SECONDS = 3600.0
BIPARTITE_SECONDS = 4e-8  # per pair of rows; random and grid graphs, one Xeon core
GENERAL_SECONDS = 1e-7  # per vertex times edge; random, mesh and Delaunay graphs, same core
TOP_BIT = 90  # exponent of the largest integer weight; rustworkx has 127 bits


def match(view: Any, seed: int, by_hash: bool, threads: int | None = None) -> EngineMatching:
    A = sp.csr_array((view.data.astype(np.float64), view.indices, view.indptr), (view.n,) * 2)
    mate = np.full(view.n, -1, view.indices.dtype)
    if view.nnz:
        one, other = double_cover(A)
        _, label = csgraph.connected_components(A, directed=False)
        B = _scaled(A, label)
        if (one == other).any():
            n, m = view.n, view.nnz // 2
            _refuse_hours(GENERAL_SECONDS * n * m, f"a graph with {n} vertices and {m} edges")
            what = "weighted_matching: method='exact' on a graph that is not bipartite needs"
            mate[:] = general_matching(what, B)
        else:
            _match_bipartite(B, one < other, mate)
        _add_light_edges(A, mate)
    u = np.flatnonzero(mate > np.arange(view.n))
    weight = total(A[u, mate[u]]) if u.size else 0.0
    return EngineMatching(mate, weight, 1, weight)


def _scaled(A: sp.csr_array, label: Array) -> sp.csr_array:
    """The weights of each component times a power of two that takes its largest into 1/2 .. 1."""
    of_entry = np.repeat(label, np.diff(A.indptr))
    most = np.zeros(int(label.max()) + 1)
    np.maximum.at(most, of_entry, A.data)
    data = np.ldexp(A.data, -np.frexp(most)[1][of_entry])
    return sp.csr_array((data, A.indices, A.indptr), A.shape)


def _add_light_edges(A: sp.csr_array, mate: Array) -> None:
    """Add the edges whose ends are both free, heaviest first."""
    u, v = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.indices
    addable = np.flatnonzero((u < v) & (mate[u] < 0) & (mate[v] < 0))
    for k in addable[np.argsort(-A.data[addable], kind="stable")]:
        if mate[u[k]] < 0 and mate[v[k]] < 0:
            mate[u[k]], mate[v[k]] = v[k], u[k]


def double_cover(A: sp.csr_array) -> tuple[Array, Array]:
    """The components of the two copies of each vertex in the double cover.

    There each edge joins the first copy of one end with the second copy of the other.  A component
    with an odd cycle stays one component.  A bipartite component becomes two: the vertices of one
    side have their first copies in one of them, those of the other side in the other.
    """
    n = A.shape[0]
    ones = sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), A.shape)
    cover = sp.block_array([[None, ones], [ones, None]], format="csr")
    _, label = csgraph.connected_components(cover, directed=False)
    return label[:n], label[n:]


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
    free = 2.0
    B.data = free - B.data
    B = sp.csr_array(sp.hstack([B, free * sp.eye_array(rows.size)], format="csr"))
    B = sp.csr_array((B.data, B.indices.astype(np.int32), B.indptr.astype(np.int32)), B.shape)
    r, c = csgraph.min_weight_full_bipartite_matching(B)
    real = c < columns.size
    u, v = rows[r[real]], columns[c[real]]
    mate[u], mate[v] = v, u


def general_matching(what: str, A: sp.csr_array, *, prove: bool = False) -> Array:
    """The heaviest matching by Edmonds' algorithm; `prove`: rustworkx checks that it is.

    `what` begins the message where there is no rustworkx.
    """
    try:
        rustworkx: Any = importlib.import_module("rustworkx")
    except ImportError:
        raise EngineUnavailable(f"{what} rustworkx: pip install 'matchwood[exact]'") from None
    upper = sp.triu(A, k=1).tocoo()
    shift = TOP_BIT - math.frexp(float(A.data.max()))[1]
    weights = [int(math.ldexp(w, shift)) for w in upper.data.tolist()]
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(A.shape[0]))
    u, v = (ends.tolist() for ends in upper.coords)
    graph.add_edges_from(list(zip(u, v, weights, strict=True)))
    mate = np.full(A.shape[0], -1)
    for a, b in rustworkx.max_weight_matching(graph, weight_fn=int, verify_optimum=prove):
        mate[a], mate[b] = b, a
    return mate
