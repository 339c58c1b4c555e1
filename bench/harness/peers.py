"""Graphs in the form of other libraries; None where the library is not installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def _undirected_edges(A: sp.csr_array) -> tuple[Any, Any, Any]:
    upper = sp.triu(A, k=1).tocoo()
    return (*upper.coords, upper.data)


def networkit_graph(A: sp.csr_array, *, weighted: bool = False) -> Any:
    """An undirected NetworKit graph of a symmetric matrix."""
    try:
        import networkit
    except ImportError:
        return None
    u, v, w = _undirected_edges(A)
    ends = u.astype(np.uint64), v.astype(np.uint64)  # of any other type it crashes
    edges = (w.astype(np.float64), ends) if weighted else ends
    return networkit.GraphFromCoo(edges, n=A.shape[0], weighted=weighted, directed=False)


def igraph_graph(A: sp.csr_array) -> Any:
    """An undirected igraph graph of a symmetric matrix."""
    try:
        import igraph
    except ImportError:
        return None
    u, v, _ = _undirected_edges(A)
    return igraph.Graph(n=A.shape[0], edges=np.stack([u, v], axis=1))
