"""Coarser graphs from matchings.  Read on in check.py, hierarchy.py and two_hop.py.

The engines are those of primitives/contract, which merges the pairs.  hierarchy.py repeats the
coarsening; two_hop.py pairs the vertices that a matching leaves free, so that stars shrink too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from matchwood import calls, engines
from matchwood.arguments import numbers, plain
from matchwood.gate import graph as csr
from matchwood.gate.views import sparse_matrix
from matchwood.matching import mates
from matchwood.primitives.contract import trusted_contract_pairs


@dataclass(frozen=True, eq=False)
class Coarsening:
    """A coarser graph and where each vertex went; unpacks as ``matrix, map``.

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
    Deterministic: coarse vertices are numbered by their smallest member.  A coarse edge has at most
    four weights; they are added in the order of their ends, that in the smaller coarse vertex
    first.  So every engine, at any number of threads, returns the same bits, and the matrix is
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
    call = calls.enter(A, caller, engine, threads)
    view = call.graph.undirected_weights(caller)
    place = engines.home(call.engine)
    mate = mates.gate(caller, matching, view.n, place, view.indices.dtype)
    members = vertex_weights_of(vertex_weights, view.n, place, caller)
    arrays, map, weights = trusted_contract_pairs(view, mate, members, call.engine, caller, threads)
    _refuse_overflow(call.graph, arrays[2], members, mate, weights)
    indptr, indices, data = call.back(*arrays)
    matrix = sparse_matrix(indptr, indices, data, (weights.size, weights.size))
    return Coarsening(matrix, *call.back(map, weights))


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


def _refuse_overflow(G: csr.Graph, data: Any, members: Any, mate: Any, weights: Any) -> None:
    """Raise where a sum of weights overflows its type.

    The entries are only read where four of the heaviest could overflow.
    """
    most = float(np.finfo(data.dtype).max) / 4
    # where values are not symmetric, two of them make the weight of an edge
    if 2 * G.largest_magnitude > most and not bool(np.isfinite(data).all()):
        raise ValueError(
            f"coarsen: the weights of merged edges must stay below {4 * most:.4g}, got a sum that "
            "is more; divide the weights by a power of two"
        )
    if members.dtype.kind == "f":
        wrong = not bool(np.isfinite(weights).all())
    else:
        far = members.size and (int(members.max()) >= 2**62 or int(members.min()) < -(2**62))
        wrong = bool(far) and _wraps(members, mate)
    if wrong:
        raise ValueError(
            f"coarsen: the vertex_weights of two merged vertices must add up to a number of "
            f"{members.dtype}, got a sum that is none"
        )


def _wraps(members: Any, mate: Any) -> bool:
    """Whether two merged vertices together weigh more, or less, than int64 holds."""
    other = members[mate] * (mate >= 0)
    both = members + other
    return bool((((members < 0) == (other < 0)) & ((both < 0) != (members < 0))).any())
