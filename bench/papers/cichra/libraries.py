"""The same problems by other libraries that are installed: SciPy, NetworKit, igraph, GraphBLAS.

A call takes a `Case` and returns the number of components, the members of a set, or a forest, as
its weight or as a graph.  Graphs are brought into a library's own form once; that is not timed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

Call = Callable[[Any], Any]


@dataclass(frozen=True)
class Library:
    """What a library has of the four problems: CC, SCC, MIS, MSF."""

    version: str
    calls: Mapping[str, Call]


def installed() -> dict[str, Library]:
    """The libraries that can be imported here, and work: each is asked for a name that it has."""
    found = {}
    for name, (package, module, probe, calls) in _KNOWN.items():
        try:
            getattr(importlib.import_module(module), probe)
            version = importlib.metadata.version(package)
        except (ImportError, AttributeError, OSError):
            continue
        found[name] = Library(version, calls)
    return found


# SciPy: one thread.  No independent sets.


def _floats(case: Any) -> Any:
    """As SciPy wants them, so that it makes no copy at each call."""
    return case.form("scipy", lambda c: c.matrix.astype(np.float64))


_SCIPY: dict[str, Call] = {
    "CC": lambda case: csgraph.connected_components(_floats(case), directed=False)[0],
    "SCC": lambda case: csgraph.connected_components(_floats(case), connection="strong")[0],
    "MSF": lambda case: csgraph.minimum_spanning_tree(case.counterpart).sum(),
}


# NetworKit: all threads where it is parallel.


def _networkit(case: Any, *, directed: bool) -> Any:
    networkit = importlib.import_module("networkit")

    def make(c: Any) -> Any:
        coo = (c.matrix if directed else sp.triu(c.counterpart, 1)).tocoo()
        ends = coo.row.astype(np.uint64), coo.col.astype(np.uint64)  # any other type crashes
        edges = ends if directed else (coo.data.astype(np.float64), ends)
        return networkit.GraphFromCoo(edges, n=c.n, weighted=not directed, directed=directed)

    return case.form(f"networkit {directed}", make)


def _networkit_components(case: Any) -> Any:
    module = importlib.import_module("networkit.components")
    found = module.ParallelConnectedComponents(_networkit(case, directed=False)).run()
    return found.numberOfComponents()


def _networkit_strong(case: Any) -> Any:
    module = importlib.import_module("networkit.components")
    found = module.StronglyConnectedComponents(_networkit(case, directed=True)).run()
    return found.numberOfComponents()


def _networkit_set(case: Any) -> Any:
    module = importlib.import_module("networkit.independentset")
    return module.Luby().run(_networkit(case, directed=False))


def _networkit_forest(case: Any) -> Any:
    found = importlib.import_module("networkit.graph").KruskalMSF(_networkit(case, directed=False))
    found.run()
    return found.getForest()


def total(case: Any, forest: Any) -> float:
    """The weight of a forest: NetworKit's has edges only."""
    if not hasattr(forest, "iterEdges"):
        return float(forest)
    edges = np.array(list(forest.iterEdges()), np.int64).reshape(-1, 2)
    return float(case.counterpart[edges[:, 0], edges[:, 1]].sum())


_NETWORKIT: dict[str, Call] = {
    "CC": _networkit_components,
    "SCC": _networkit_strong,
    "MIS": _networkit_set,
    "MSF": _networkit_forest,
}


# igraph: one thread.  Its independent sets are those of the largest size, another problem.


def _igraph(case: Any, *, directed: bool) -> Any:
    igraph = importlib.import_module("igraph")

    def make(c: Any) -> Any:
        coo = (c.matrix if directed else sp.triu(c.counterpart, 1)).tocoo()
        ends = np.stack([coo.row, coo.col], axis=1)
        made = igraph.Graph(n=c.n, edges=ends, directed=directed)
        return made, None if directed else coo.data

    return case.form(f"igraph {directed}", make)


def _igraph_forest(case: Any) -> Any:
    graph, weights = _igraph(case, directed=False)
    return weights[graph.spanning_tree(weights=weights, return_tree=False)].sum()


_IGRAPH: dict[str, Call] = {
    "CC": lambda case: len(_igraph(case, directed=False)[0].connected_components()),
    "SCC": lambda case: len(_igraph(case, directed=True)[0].connected_components(mode="strong")),
    "MSF": _igraph_forest,
}


# GraphBLAS has semirings and no algorithms: the plainest forms in its language.


def _graphblas(case: Any) -> Any:
    graphblas = importlib.import_module("graphblas")

    def make(c: Any) -> Any:
        U = c.counterpart
        ones = sp.csr_array((np.ones(U.nnz, np.bool_), U.indices, U.indptr), shape=U.shape)
        return graphblas.io.from_scipy_sparse(ones)

    return case.form("graphblas", make)


def _graphblas_components(case: Any) -> int:
    """The smallest label among neighbours, and that of one's label, until none changes."""
    gb = importlib.import_module("graphblas")
    A = _graphblas(case)
    label = gb.Vector.from_dense(np.arange(case.n))
    while True:
        before = label.dup()
        label(gb.binary.min) << A.mxv(label, gb.semiring.min_second)
        dense = label.to_dense()
        label = gb.Vector.from_dense(dense[dense])
        if label.isequal(before):
            return int((dense[dense] == np.arange(case.n)).sum())


def _graphblas_set(case: Any) -> Any:
    """Luby's rounds: the largest number among live neighbours joins."""
    gb = importlib.import_module("graphblas")
    A = _graphblas(case)
    numbers = 1 + np.random.default_rng(0).permutation(case.n)
    live = gb.Vector.from_dense(numbers)
    members = np.zeros(case.n, bool)
    while live.nvals:
        around = A.mxv(live, gb.semiring.max_second).new(mask=live.S)
        joining = live.ewise_union(around, gb.binary.gt, 0, 0).new()
        joining = joining.select("==", True).new()
        members[joining.to_coo(values=False)[0]] = True
        beside = A.mxv(joining, gb.semiring.lor_land).new()
        live = live.dup(mask=~joining.S)
        live = live.dup(mask=~beside.S)
    return members


_GRAPHBLAS: dict[str, Call] = {"CC": _graphblas_components, "MIS": _graphblas_set}


_KNOWN: dict[str, tuple[str, str, str, Mapping[str, Call]]] = {
    "SciPy": ("scipy", "scipy", "sparse", _SCIPY),
    "NetworKit": ("networkit", "networkit", "Graph", _NETWORKIT),
    "igraph": ("igraph", "igraph", "Graph", _IGRAPH),
    "GraphBLAS": ("python-graphblas", "graphblas", "Vector", _GRAPHBLAS),
}
