"""Coarser graphs from matchings.  Read on in reference.py, check.py, cpu.py, gpu.py +
gpu.cu; multilevel.py repeats it, two_hop.py keeps stars from stalling it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood import csr, engines
from matchwood.arguments import numbers, plain
from matchwood.matching import mates


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
        If `A` is no square matrix, a weight is not finite, or the mates are not mutual; if weights
        of merged edges or vertices add up to more than their type holds.

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
    chosen = engines.resolve(G.engine, engine, threads=threads)
    H = G.on(chosen)
    view = H.undirected_weights(caller)
    place = engines.home(chosen)
    mate = mates.gate(caller, matching, view.n, place, view.indices.dtype)
    members = vertex_weights_of(vertex_weights, view.n, place, caller)
    arrays, map, weights = engines.load(__name__, chosen).coarsen(view, mate, members, threads)
    _refuse_overflow(caller, H, arrays[2], members, mate, weights)
    arrays = [engines.moved(array, G.engine) for array in arrays]
    return Coarsening(
        as_matrix(arrays),
        engines.moved(map, G.engine),
        engines.moved(weights, G.engine),
    )


def vertex_weights_of(given: Any, n: int, place: str, caller: str) -> Any:
    """The weights of n vertices as int64 or float64, on that engine; 1 each where None came."""
    if given is None:
        xp = engines.cupy() if place == "gpu" else np
        return xp.ones(n, np.int64)
    array = plain(caller, "vertex_weights", given)
    if array.dtype.kind == "b" or (array.size == 0 and array is not given):
        array = array.astype(np.int64)
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
    numbers(caller, "vertex_weights", array, size=n)
    if array.dtype.kind == "f":
        wide = array
    else:
        most = np.iinfo(np.int64).max
        if array.dtype == np.uint64 and n and int(array.max()) > most:
            raise ValueError(
                f"{caller}: vertex_weights must be at most {most}, got {int(array.max())}"
            )
        wide = array.astype(np.int64)
    return engines.moved(wide, place)


def _refuse_overflow(
    caller: str, H: csr.Graph, data: Any, members: Any, mate: Any, weights: Any
) -> None:
    """Raise where a sum of weights is no longer a number of its type.

    The entries are only looked at where four of the heaviest would be too much.
    """
    most = float(np.finfo(data.dtype).max) / 4
    if _heaviest(H) > most and not bool(np.isfinite(data).all()):
        raise ValueError(
            f"{caller}: the weights of merged edges must stay below {4 * most:.4g}, got a sum that "
            "is more; divide the weights by a power of two"
        )
    if members.dtype.kind == "f":
        wrong = not bool(np.isfinite(weights).all())
    else:
        far = members.size and (int(members.max()) >= 2**62 or int(members.min()) < -(2**62))
        wrong = bool(far) and _wraps(members, mate)
    if wrong:
        raise ValueError(
            f"{caller}: the vertex_weights of two merged vertices must add up to a number of "
            f"{members.dtype}, got a sum that is none"
        )


def _heaviest(H: csr.Graph) -> float:
    """At least the weight of the heaviest edge; known to the graph, which looked at all values."""
    if not H.weighted:
        return 1.0
    facts = H.value_facts()
    return 2 * max(facts.maximum, -facts.minimum)  # where values are not symmetric, two are added


def _wraps(members: Any, mate: Any) -> bool:
    """Whether two merged vertices together weigh more, or less, than int64 holds."""
    other = members[mate] * (mate >= 0)
    both = members + other
    return bool((((members < 0) == (other < 0)) & ((both < 0) != (members < 0))).any())


def as_matrix(arrays: list[Any]) -> Any:
    indptr, indices, data = arrays
    k = indptr.shape[0] - 1
    if engines.location(data) == "gpu":
        import cupyx.scipy.sparse as gpu_sparse

        return gpu_sparse.csr_matrix((data, indices, indptr), shape=(k, k))
    return sp.csr_array((data, indices, indptr), shape=(k, k))
