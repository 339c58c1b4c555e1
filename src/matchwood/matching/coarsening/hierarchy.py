"""Repeated coarsening: the hierarchy that multilevel methods work on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from matchwood import calls, engines
from matchwood.arguments import count, flag, integers, one_of, plain, seed
from matchwood.gate import graph as csr
from matchwood.gate.resources import require_memory
from matchwood.gate.views import sparse_matrix
from matchwood.matching.coarsening import Coarsening, coarsen, vertex_weights_of
from matchwood.matching.coarsening.two_hop import pair_free
from matchwood.matching.maximal import maximal_matching
from matchwood.matching.methods import METHODS
from matchwood.matching.weighted import weighted_matching

MAXIMAL = ("proposal", "random")  # maximal matchings, of heavy edges and of any
STALLED = 0.95  # fraction of the vertices; a level that keeps more ends the hierarchy


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
    """A level where the user's graph lives."""
    shape, matrix = level.matrix.shape, level.matrix
    indptr, indices, data = call.back(matrix.indptr, matrix.indices, matrix.data)
    moved = sparse_matrix(indptr, indices, data, shape)
    return Coarsening(moved, *call.back(level.map, level.vertex_weights))
