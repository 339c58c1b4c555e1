"""Breadth-first search.  Read on in reference.py, check.py, cpu/, gpu.py + gpu.cu, ranks/."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from matchwood import arguments, calls, engines
from matchwood.gate import graph as csr

SKEW = 50  # longest row over average row; measured: bench/traversal/breadth_first.py


@dataclass(frozen=True)
class BFS:
    """What `bfs` found; unpacks as ``level, parent``.

    Attributes
    ----------
    level : (n,) integer array
        Arcs on a shortest way from a source; -1 where there is none.
    parent : (n,) integer array
        The vertex before, the smallest of those possible; a source is its own parent; -1 where
        no source leads.
    rounds : int
        The largest level.
    """

    level: Any
    parent: Any
    rounds: int

    def __iter__(self) -> Iterator[Any]:
        return iter((self.level, self.parent))

    def path(self, v: int) -> list[int]:
        """Vertices of a shortest way from a source to `v`; empty where there is none.

        Examples
        --------
        >>> import matchwood
        >>> matchwood.bfs(matchwood.generators.path(4), 3).path(1)
        [3, 2, 1]
        """
        parent = arguments.integers("BFS.path", "parent", self.parent)
        level = arguments.integers("BFS.path", "level", self.level, size=parent.size)
        n, v = int(parent.size), arguments.integer("BFS.path", "v", v)
        if not 0 <= v < n:
            raise ValueError(f"BFS.path: v must be within 0..{n - 1}, got {arguments.shown(v)}")
        if int(level[v]) < 0:
            return []
        way = [v]
        while (before := int(parent[way[-1]])) != way[-1]:
            if not 0 <= before < n or len(way) == n:
                raise ValueError(f"BFS.path: parent must lead to a source, got {before}")
            way.append(before)
        return way[::-1]


def bfs(
    A: Any,
    sources: Any,
    *,
    depth_limit: int | None = None,
    directed: bool = True,
    engine: str | None = None,
    threads: int | None = None,
) -> BFS:
    """Find the distance of every vertex from the nearest source, and a way to it.

    The level of v is the least number of arcs on a way from a source to v.  Among the vertices
    u of the level before with an arc u -> v, the parent of v is the smallest.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes; or a DistributedGraph
        Only the pattern is read: a stored ``A[i, j]``, zero or not, is an arc from i to j.
    sources : int or array of int
        Where to start.  With a DistributedGraph the same on all ranks, or a DistributedVector of
        truth values that marks them.
    depth_limit : int or None
        Vertices further away than this count as not reached.
    directed : bool
        False follows arcs in both directions.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    BFS
        With `level`, `parent` and `rounds`; arrays live where `A` lives, and have the index
        type of the graph.  Those of a DistributedGraph are DistributedVectors.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, a source is no vertex, or the limit is negative.

    Notes
    -----
    Deterministic: parents are unique, so every engine at any number of threads returns the same.

    Direction-optimising [1]_: while the frontier is small its vertices look for unvisited
    neighbours; while it is large, unvisited vertices look for a neighbour in the frontier and stop
    at the first, which in a sorted row is the smallest.  The second way reads arcs backwards; it
    is used where the pattern is symmetric, or where `A` is a `Graph`, which keeps its transpose.

    Work O(n + m).  Memory beside the result: 8 bytes a vertex and three bitmaps.  Of a
    DistributedGraph whose ranks all share a GPU, the first rank gets a copy of the whole graph
    there, if half of the free memory holds it, and searches for all.

    References
    ----------
    .. [1] S. Beamer, K. Asanović, D. Patterson. Direction-optimizing breadth-first search.
       SC 2012. doi:10.1109/SC.2012.50

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import matchwood
    >>> A = sp.csr_array([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    >>> level, parent = matchwood.bfs(A, 0)
    >>> level.tolist(), parent.tolist()
    ([0, 1, 1, 2], [0, 0, 0, 1])

    Arcs are followed forwards only, so nothing leads away from vertex 3:

    >>> matchwood.bfs(A, 3).level.tolist()
    [-1, -1, -1, 0]
    >>> matchwood.bfs(A, 3, directed=False).level.tolist()
    [2, 1, 1, 0]
    """
    calls.agreed(A, lambda: arguments.flag("bfs", "directed", directed))
    call = calls.enter(A, "bfs", engine, threads)
    if call.engine == "ranks":
        run = call.load(__name__)
        found: BFS = run.search(A, sources, depth_limit, directed, threads=threads)
        return found
    G = call.graph
    start = distinct_sources(sources, G.n)
    limit = levels("bfs", depth_limit, G.n)
    if directed:
        outward = G.directed_pattern()
        inward = G.transposed_pattern() if _pays_backwards(G, call.prepared) else None
    else:
        outward = inward = G.undirected_pattern()
    level, parent, rounds = call.load(__name__).search(
        outward, inward, start, limit, threads=threads
    )
    return BFS(call.back(level), call.back(parent), rounds)


def _pays_backwards(G: csr.Graph, prepared: bool) -> bool:
    """Searching backwards pays where a few vertices have most of the arcs.

    It needs the transpose, or symmetry verified.  A `Graph` is used again, so it keeps these; for a
    raw matrix only skewed degrees make up for the pass over the entries.
    """
    return prepared or (G.longest_row * G.n > SKEW * G.nnz and G.has_symmetric_pattern)


def levels(caller: str, depth_limit: int | None, n: int) -> int:
    """How many levels there are at most."""
    if depth_limit is None:
        return n
    depth_limit = arguments.integer(caller, "depth_limit", depth_limit)
    if depth_limit < 0:
        raise ValueError(f"{caller}: depth_limit must not be negative, got {depth_limit}")
    return min(depth_limit, n)


def distinct_sources(sources: Any, n: int, caller: str = "bfs") -> np.ndarray[Any, Any]:
    """Distinct sources, ascending."""
    if type(sources) is int and 0 <= sources < n:  # what follows takes 15 us
        return np.array([sources], np.int64)
    array = np.atleast_1d(arguments.plain(caller, "sources", engines.moved(sources, "cpu")))
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(
            f"{caller}: sources must be an integer or a list of them, got {array.dtype} "
            f"of shape {array.shape}"
        )
    if array.min() < 0 or array.max() >= n:
        bad = int(array[(array < 0) | (array >= n)][0])
        raise ValueError(f"{caller}: sources must be vertices 0..{n - 1}, got {bad}")
    return np.unique(array).astype(np.int64)
