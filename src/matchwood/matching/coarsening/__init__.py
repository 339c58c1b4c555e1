"""Coarser graphs from matchings.  Read on in reference.py, check.py, cpu.py, gpu.py +
gpu.cu; multilevel.py repeats it, two_hop.py keeps stars from stalling it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood import csr, engines
from matchwood.matching import mates
from matchwood.matching.result import Matching


@dataclass(frozen=True, eq=False)
class Coarsening:
    """A coarser graph and what became of the vertices; unpacks as ``matrix, map``.

    Attributes
    ----------
    matrix : (k, k) csr_array, or CuPy's csr_matrix
        Symmetric, without diagonal: the weight between two coarse vertices is the sum over all
        edges between their members.
    map : (n,) integer array
        ``map[v]`` is the coarse vertex that v went to.
    vertex_weights : (k,) array
        Sum of the members' weights.
    """

    matrix: Any
    map: Any
    vertex_weights: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.matrix, self.map))

    def __repr__(self) -> str:
        return f"<Coarsening: {self.map.shape[0]} -> {self.matrix.shape[0]} vertices>"


def coarsen(
    A: Any,
    matching: Any,
    *,
    vertex_weights: Any = None,
    engine: str | None = None,
    threads: int | None = None,
) -> Coarsening:
    """Merge the two ends of every matched edge into one vertex.

    Edges that then join the same two vertices become one, and their weights are added up; an edge
    inside a merged pair disappears.  The weights of merged vertices are added up too, so the
    total weight of vertices stays the same.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Weights as in `weighted_matching`: ``|a_ij|``, or ``|a_ij| + |a_ji|`` where `A` is not
        symmetric.
    matching : Matching, or (n,) array of mates
        ``mate[v]`` is the vertex that v is merged with, -1 for none.  Pairs need not be joined.
    vertex_weights : (n,) array or None
        Integers or floats; None counts each vertex as 1.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Coarsening
        With `matrix`, `map` and `vertex_weights`, where `A` lives.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, a weight is not finite, or the mates are not mutual.

    Notes
    -----
    Deterministic: coarse vertices are numbered by their smallest member, and the at most four
    weights of a coarse edge are added in the order of their ends, the smaller coarse vertex's
    first; so every engine, at any number of threads, returns the same bits, and the matrix is
    exactly symmetric.

    Work O(m); on a GPU entries are sorted within each row.  Memory besides the result: about 24
    bytes for each edge on the CPU (double precision).  On a GPU 16 bytes for each vertex and 8 for
    each entry of rows of more than 32 (4-byte indices), or 60 for each edge where a row of the
    result has more than 512.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.matching import coarsen
    >>> A = matchwood.generators.path(4)
    >>> matrix, map = coarsen(A, [1, 0, 3, 2])
    >>> matrix.toarray().tolist(), map.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [0, 0, 1, 1])
    """
    caller = "coarsen"
    G = csr.as_graph(A, caller)
    chosen = engines.resolve(G.engine, engine)
    H = G.on(chosen)
    view = H.undirected_weights(caller)
    place = engines.home(chosen)
    mate = matching.mate if isinstance(matching, Matching) else matching
    if not hasattr(mate, "dtype"):
        mate = np.asarray(mate, np.int64 if len(mate) == 0 else None)
    if mate.dtype.kind not in "iu":
        raise TypeError(f"{caller}: mates must be integers, got {mate.dtype}")
    mate = engines.moved(mate, place)
    wrong = mates.fault(mate, view.n)
    if wrong:
        raise ValueError(f"{caller}: {wrong}")
    mate = mate.astype(view.indices.dtype)
    members = _vertex_weights(vertex_weights, view.n, place, caller)
    arrays, map, weights = engines.load(__name__, chosen).coarsen(view, mate, members, threads)
    arrays = [engines.moved(array, G.engine) for array in arrays]
    return Coarsening(
        as_matrix(arrays),
        engines.moved(map, G.engine),
        engines.moved(weights, G.engine),
    )


def _vertex_weights(given: Any, n: int, place: str, caller: str) -> Any:
    if given is None:
        xp = engines.cupy() if place == "gpu" else np
        return xp.ones(n, np.int64)
    if not hasattr(given, "dtype"):
        given = np.asarray(given)
    if given.dtype.kind not in "iuf":
        raise TypeError(f"{caller}: vertex_weights must be real numbers, got {given.dtype}")
    if given.shape != (n,):
        raise ValueError(
            f"{caller}: vertex_weights must have {n} elements, got shape {given.shape}"
        )
    wide = np.float64 if given.dtype.kind == "f" else np.int64
    return engines.moved(given, place).astype(wide)


def as_matrix(arrays: list[Any]) -> Any:
    indptr, indices, data = arrays
    k = indptr.shape[0] - 1
    if engines.location(data) == "gpu":
        import cupyx.scipy.sparse as gpu_sparse

        return gpu_sparse.csr_matrix((data, indices, indptr), shape=(k, k))
    return sp.csr_array((data, indices, indptr), shape=(k, k))
