"""Coarser graphs from matchings: one level, and a hierarchy.  primitives/contract merges pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from matchwood import calls, engines
from matchwood.arguments import count, flag, integers, numbers, one_of, plain, seed
from matchwood.gate import graph as csr
from matchwood.gate.resources import require_memory
from matchwood.gate.views import sparse_matrix
from matchwood.matching.maximal import maximal_matching
from matchwood.matching.methods import METHODS, mates_in
from matchwood.matching.weighted import weighted_matching
from matchwood.primitives.contract import trusted_contract_pairs
from matchwood.primitives.row_reduce import trusted_strongest_neighbours as strongest_neighbours
from matchwood.primitives.sort import radix_sort

MAXIMAL = ("proposal", "random")  # maximal matchings, of heavy edges and of any
STALLED = 0.95  # fraction of the vertices; a level that keeps more ends the hierarchy


@dataclass(frozen=True, eq=False)
class Coarsening:
    """A coarser graph and where each vertex went; unpacks as ``matrix, map``.

    Attributes
    ----------
    matrix : (k, k) csr_array, CuPy's csr_matrix, or DistributedGraph
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
        before, after = (
            each.n if hasattr(each, "n") else each.shape[0] for each in (self.map, self.matrix)
        )
        return f"<Coarsening: {before} -> {after} vertices>"


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
        symmetric.  A `DistributedGraph` is coarsened by the first rank, with the whole graph, and
        the coarse one is a DistributedGraph on the same grid.
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
    if calls.is_distributed(A):
        calls.check_on_ranks(A, caller, engine, threads)
        return _of_first_rank(A, matching, vertex_weights, threads)
    call = calls.enter(A, caller, engine, threads)
    view = call.graph.undirected_weights(caller)
    place = engines.home(call.engine)
    mate = mates_in(caller, matching, view.n, place, view.indices.dtype)
    members = vertex_weights_of(vertex_weights, view.n, place, caller)
    arrays, map, weights = trusted_contract_pairs(view, mate, members, call.engine, caller, threads)
    _refuse_overflow(call.graph, arrays[2], members, mate, weights)
    indptr, indices, data = call.back(*arrays)
    matrix = sparse_matrix(indptr, indices, data, (weights.size, weights.size))
    return Coarsening(matrix, *call.back(map, weights))


def _of_first_rank(G: Any, matching: Any, vertex_weights: Any, threads: Any) -> Coarsening:
    """Both arguments are spread as the graph is.  The coarse graph goes to all ranks again."""
    from matchwood.engines.ranks.agreement import same
    from matchwood.engines.ranks.vectors import own_part
    from matchwood.gate.distributed import distribute, whole

    comm, caller, made = G.comm, "coarsen", list[Coarsening]()
    same(comm, caller, vertex_weights=vertex_weights is None)
    given = {"matching": getattr(matching, "mate", matching), "vertex_weights": vertex_weights}
    if vertex_weights is None:
        del given["vertex_weights"]
    here = {k: G.vector(own_part(G, caller, k, each)).gather(0) for k, each in given.items()}

    def work(graph: Any) -> Any:
        made.append(coarsen(graph, threads=threads, **here))
        return made[0].map

    map = whole.answer(G, caller, work)
    matrix, weights = (made[0].matrix, made[0].vertex_weights) if made else (None, None)
    coarse = distribute(matrix, comm=comm, grid=(G.grid.R, G.grid.C)).on(G.engine)
    own = comm.broadcast(weights)[coarse.ids]
    return Coarsening(coarse, map, coarse.vector(engines.moved(own, G.engine)))


def vertex_weights_of(given: Any, n: int, place: str, caller: str) -> Any:
    """The weights of n vertices as int64 or float64, where `place` says; None: 1 for each."""
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
    """Raise where a sum of weights overflows; reads entries only if four of the heaviest could."""
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


# Hierarchies


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Ever coarser graphs.  Iterates over its levels, finest first.

    Attributes
    ----------
    levels : tuple of Coarsening
        Each made from the one before, the first from the graph itself.
    n : int
        Vertices of the graph itself.
    engine : {"cpu", "gpu"}
        Where the levels live.
    """

    levels: tuple[Coarsening, ...]
    n: int
    engine: str = "cpu"

    def __iter__(self) -> Iterator[Coarsening]:
        return iter(self.levels)

    def __len__(self) -> int:
        return len(self.levels)

    def __repr__(self) -> str:
        return f"<Hierarchy: {' > '.join(map(str, self.sizes))} vertices>"

    @property
    def sizes(self) -> list[int]:
        """Number of vertices of the graph and of every level."""
        return [self.n, *(level.matrix.shape[0] for level in self.levels)]

    @cached_property
    def map(self) -> Any:
        """(n,) array: the vertex of the coarsest graph that each vertex went to."""
        xp = engines.cupy() if self.engine == "gpu" else np
        if not self.levels and xp is np:
            require_memory("Hierarchy", 8 * count("Hierarchy", "n", self.n), f"{self.n} vertices")
        whole = xp.arange(self.n) if not self.levels else None
        for k, level in enumerate(self.levels):
            size, most = self.sizes[k : k + 2]
            name = f"levels[{k}].map"
            map = integers("Hierarchy", name, level.map, size=size, low=0, high=most - 1)
            whole = map.copy() if whole is None else map[whole]
        return engines.frozen(whole)

    def project(self, values: Any) -> Any:
        """Give every vertex of the graph the value of its vertex in the coarsest graph.

        Examples
        --------
        >>> import matchwood
        >>> A = matchwood.generators.grid((4, 4))
        >>> H = matchwood.coarsening_hierarchy(A, until=2)
        >>> part = H.project([0, 1])
        >>> part.shape, sorted(set(part.tolist()))
        ((16,), [0, 1])
        """
        values = plain("project", "values", values)
        if values.shape[:1] != (self.sizes[-1],):
            raise ValueError(
                f"project: values must have one row for each of {self.sizes[-1]} vertices of the "
                f"coarsest graph, got shape {values.shape}"
            )
        return engines.moved(values, self.engine)[self.map]


def coarsening_hierarchy(
    A: Any,
    *,
    until: int = 100,
    method: str = "auto",
    rng: Any = 0,
    ties: str = "hash",
    vertex_weights: Any = None,
    two_hop: bool = True,
    engine: str | None = None,
    threads: int | None = None,
) -> Hierarchy:
    """Coarsen a graph level by level, until few vertices are left.

    Every level matches the vertices of the one before and merges the pairs (`coarsen`).  Vertices
    that stay free are paired with others that have the same heaviest neighbour, so that stars,
    and graphs with many leaves or isolated vertices, shrink as well [1]_.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Weights as in `weighted_matching`.
    until : int
        Stop at the first level with at most this number of vertices.
    method : {"auto", "greedy", "dominant", "suitor", "random_weighted", "proposal", "random", ...}
        How vertices are matched: a method of `weighted_matching`; ``"proposal"``, the weighted
        `maximal_matching`; or ``"random"``, a maximal matching that does not look at weights.
    rng : int, Generator or None
        Seed of the matchings; level k uses the seed plus k.
    ties : {"hash", "index"}
        Which of two edges of equal weight comes first, as in `weighted_matching`; ``"proposal"``
        goes by hash.
    vertex_weights : (n,) array or None
        None counts each vertex as 1.
    two_hop : bool
        False merges matched pairs only.  Then a star stalls: a level that keeps more than 95 %
        of the vertices ends the hierarchy.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Hierarchy
        With `levels`, `sizes`, `map` and `project`.

    Raises
    ------
    TypeError, ValueError
        As `weighted_matching` and `coarsen`.

    Notes
    -----
    With `two_hop` every level has at most 3 / 4 of the vertices of the one before, plus one, so
    there are O(log n) levels.  Deterministic: the same levels on every engine.  Work and memory:
    a few times those of the first level.

    References
    ----------
    .. [1] G. Karypis, V. Kumar. A fast and high quality multilevel scheme for partitioning
       irregular graphs. SIAM J. Sci. Comput. 20(1), 1998. doi:10.1137/S1064827595287997

    Examples
    --------
    >>> import matchwood
    >>> matchwood.coarsening_hierarchy(matchwood.generators.star(1000), until=10).sizes
    [1000, 500, 250, 125, 63, 32, 16, 8]
    """
    caller = "coarsening_hierarchy"
    one_of(caller, "method", method, (*METHODS, *MAXIMAL))
    one_of(caller, "ties", ties, ("hash", "index"))
    until = count(caller, "until", until, least=1)
    two_hop = flag(caller, "two_hop", two_hop)
    number = seed(caller, rng)
    call = calls.enter(A, caller, engine, threads)
    G = call.graph
    if vertex_weights is not None:  # `coarsen` would name itself, or not be called at all
        vertex_weights_of(vertex_weights, G.n, engines.home(call.engine), caller)
    levels: list[Coarsening] = []
    while G.n > until:
        options: dict[str, Any] = {
            "rng": (number + len(levels)) % 2**64,
            "engine": engine,
            "threads": threads,
        }
        if method in MAXIMAL:
            mate = maximal_matching(G, weighted=method == "proposal", **options).mate
        else:
            mate = weighted_matching(G, method=method, ties=ties, **options).mate
        if two_hop:
            mate = pair_free(G.undirected_weights(caller), mate, threads=threads)
        level = coarsen(G, mate, vertex_weights=vertex_weights, engine=engine, threads=threads)
        if level.matrix.shape[0] > STALLED * G.n and not two_hop:
            break
        levels.append(level)
        vertex_weights = level.vertex_weights
        G = csr.as_graph(level.matrix, caller, index_dtype=G.indptr.dtype)
    if engines.home(call.engine) != call.given.engine:
        levels = [_back(call, level) for level in levels]
    return Hierarchy(tuple(levels), call.given.n, call.given.engine)


def _back(call: calls.Call, level: Coarsening) -> Coarsening:
    shape, matrix = level.matrix.shape, level.matrix
    indptr, indices, data = call.back(matrix.indptr, matrix.indices, matrix.data)
    moved = sparse_matrix(indptr, indices, data, shape)
    return Coarsening(moved, *call.back(level.map, level.vertex_weights))


def pair_free(
    view: Any, mate: Any, *, threads: int | None = None, blocks: Any = None, weights: Any = None,
    limit: int = 0,
) -> Any:  # fmt: skip
    """A copy of `mate` in which free vertices with the same heaviest neighbour are paired.

    Where `blocks` (int32) says in which block each vertex lies, only within these; where `weights`
    are given, those of the pairs that together weigh at most `limit`.

    Without it coarsening stalls on stars: a matching has one edge, and merging it removes one
    vertex of a million.  Free vertices with the same heaviest neighbour, like the leaves of a star,
    make up a group (of equally heavy neighbours the smaller index counts), and vertices without any
    neighbour another.  Each group is paired in the order of its vertices.

    Of each group at most one vertex stays free.  After a maximal matching of M edges the heaviest
    neighbours are matched vertices, so at most 2 M + 1 stay free, and of n vertices at most
    3 n / 4 + 1 are left: a hierarchy of any graph has O(log n) levels.
    """
    mate = mate.copy()
    if engines.location(mate) == "gpu":
        engines.load("matchwood.matching", "gpu").pair_free(view, mate, blocks, weights, limit)
        return mate
    free = np.flatnonzero(mate < 0).astype(mate.dtype)
    if free.size < 2:
        return mate
    heaviest, _ = strongest_neighbours(view.indptr, view.indices, view.data, 1, threads=threads)
    keys = np.ascontiguousarray(heaviest[free, 0])
    if blocks is not None:
        keys = keys.astype(np.int64) * (int(blocks.max()) + 2) + blocks[free]
    keys, free = radix_sort(keys, free, threads=threads)
    place = np.arange(free.size)
    within = place - np.searchsorted(keys, keys, "left")  # place in the group
    first = np.flatnonzero((within[:-1] % 2 == 0) & (keys[1:] == keys[:-1]))
    u, v = free[first], free[first + 1]
    if weights is not None:
        good = weights[u] + weights[v] <= limit
        u, v = u[good], v[good]
    mate[u], mate[v] = v, u
    return mate
