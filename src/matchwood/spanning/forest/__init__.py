"""Minimum spanning forests.  Read on in reference.py, check.py and order.py, then in a method.

costs.py    the weights of undirected edges, from any matrix
order.py    the total order on edges; for kernels cpu.py and order.cuh
boruvka/, kruskal/, stars/    the methods: each marks the edges of the forest
cpu.py, gpu.py + gpu.cu       what the methods share, and the forest from its marks
ranks/      Boruvka's rounds over ranks
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from matchwood import calls, engines
from matchwood.arguments import count, flag, integers, numbers, one_of, plain
from matchwood.gate.resources import require_memory
from matchwood.spanning.forest.costs import undirected_costs

LARGEST_FLOAT = float(np.finfo(np.float64).max)
METHODS = {  # the folder of each method
    "auto": "boruvka",
    "boruvka": "boruvka",
    "awerbuch_shiloach": "stars",
    "kruskal": "kruskal",
    "filter_kruskal": "kruskal",
}


@dataclass(frozen=True)
class Forest:
    """What `minimum_spanning_forest` found; unpacks as ``edges, weights``.

    Attributes
    ----------
    edges : (m, 2) integer array
        The ends of each edge, the smaller one first; edges ascend by them.
    weights : (m,) array of float32, float64 or int64
        Their weights, as they are in the graph.
    total : float or int
        The sum of the weights: an int, exact, for integers; else added up in float64.
    components : int
        Trees of the forest, single vertices among them.
    n : int
        Vertices of the graph.
    rounds : int
        Rounds of the method.
    """

    edges: Any
    weights: Any
    total: Any
    components: int
    n: int = 0
    rounds: int = 0

    def __iter__(self) -> Iterator[Any]:
        return iter((self.edges, self.weights))

    def tocsr(self) -> Any:
        """The forest as a sparse matrix: the upper triangle, as SciPy's function returns it.

        A weight of zero is stored as any other.

        Examples
        --------
        >>> import matchwood
        >>> matchwood.minimum_spanning_forest((3, [[0, 2], [1, 2]], [0.0, 5.0])).tocsr().toarray()
        array([[0., 0., 0.],
               [0., 0., 5.],
               [0., 0., 0.]])
        """
        if engines.location(self.edges) == "gpu":
            import cupyx.scipy.sparse as sparse

            xp, make = engines.cupy(), sparse.csr_matrix
        else:
            import scipy.sparse

            xp, make = np, scipy.sparse.csr_array
        caller, n = "Forest.tocsr", count("Forest.tocsr", "n", self.n)
        edges = plain(caller, "edges", self.edges)
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
            got = f"{edges.dtype} of shape {edges.shape}"
            raise ValueError(f"{caller}: edges must be integers of shape (m, 2), got {got}")
        columns = xp.ascontiguousarray(edges[:, 1])
        rows = xp.ascontiguousarray(edges[:, 0])
        if n > (limit := np.iinfo(columns.dtype).max - 1):
            raise ValueError(f"{caller}: n must be at most {limit} for {columns.dtype}, got {n}")
        if xp is np:
            require_memory(caller, 16 * n, f"a matrix of {n} rows")
        for name, ends in (("first ends", rows), ("second ends", columns)):
            integers(caller, name, ends, low=0, high=n - 1)
        if bool((rows[1:] < rows[:-1]).any()):
            raise ValueError(f"{caller}: edges must ascend by their first ends")
        weights = numbers(caller, "weights", self.weights, size=rows.size)
        indptr = xp.searchsorted(rows, xp.arange(n + 1, dtype=edges.dtype))
        return make((weights, columns, indptr.astype(columns.dtype)), (n, n))


def minimum_spanning_forest(
    A: Any,
    *,
    method: str = "auto",
    maximum: bool = False,
    engine: str | None = None,
    threads: int | None = None,
) -> Forest:
    """Find the lightest edges that join everything that can be joined.

    A spanning forest is a set of edges without a cycle that joins all vertices of each connected
    component.  Of all of them this is one with the least sum of weights, and of those the one
    that Kruskal's algorithm finds when it takes edges in the order

        (weight, smaller end, larger end)

    With this total order the forest is unique.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes, or a DistributedGraph
        Every stored entry off the diagonal is an edge, those of value zero too; without values
        all weigh 1.  Weights may be any finite numbers.  Where ``A[i, j]`` and ``A[j, i]`` differ
        the lighter one counts (the heavier one with `maximum`); where just one is stored, it
        does.  Entries of a matrix stored twice are added up; of parallel edges of an edge list or
        a NetworkX graph the lightest (heaviest) counts; `graph` has ``duplicates=`` for the rest.
    method : {"auto", "boruvka", "awerbuch_shiloach", "kruskal", "filter_kruskal"}
        ``"boruvka"`` hooks every tree along its first edge, all at once, round by round [1]_, and
        takes the light edges first where there are many for each vertex [2]_.
        ``"awerbuch_shiloach"`` hooks only trees of height one, and needs no list of edges [3]_
        [4]_.  ``"kruskal"`` sorts the edges and takes them in turn [5]_; ``"filter_kruskal"``
        sorts the lightest and drops most others unsorted [6]_.  ``"auto"`` takes Boruvka.
    maximum : bool
        The heaviest forest instead: by falling weight, equal ones still by their ends.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Forest
        With `edges` (sorted by their ends), `weights`, `total`, `components`, `rounds` and
        ``tocsr()``; arrays live where `A` lives.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, a weight is not finite or no real number, an integer or a sum
        of duplicates does not fit int64, the total overflows, or the method is unknown.

    Notes
    -----
    Deterministic: the order is total, so every method and engine, at any number of threads or
    ranks, returns the same edges.  `total` of floats is a sum in float64, which may differ in the
    last digits between engines.

    Of a `DistributedGraph`, all ranks call this, with the same arguments; `method` is ``"auto"`` or
    ``"boruvka"``.  `edges` and `weights` are then arrays of this rank's share, the edges whose
    smaller end it owns; `total`, `components` and `rounds` are those of the whole forest.

    Weights stay what they are: float32, float64, or int64 (all integers), which are compared
    exactly, also above 2**53.

    Every method ends: Boruvka after log2(n) rounds, Awerbuch and Shiloach after 1.71 log2(n) + 2.
    Work O(m log n).  Memory beside the graph, with 32-bit indices and float32: a bit for each
    stored entry, and for each edge 16 bytes at most (``"boruvka"``; far less when light edges go
    first), none (``"awerbuch_shiloach"``), 32 (``"kruskal"``), or 20 (``"filter_kruskal"``).  A
    matrix whose values are not symmetric, or that has a diagonal, is copied first; a `Graph` keeps
    the copy.

    References
    ----------
    .. [1] O. Boruvka. O jistem problemu minimalnim. Prace Moravske prirodovedecke spolecnosti
       3, 1926.
    .. [2] A. Fallin, A. Gonzalez, J. Seo, M. Burtscher. A high-performance MST implementation for
       GPUs. SC 2023. doi:10.1145/3581784.3607093
    .. [3] B. Awerbuch, Y. Shiloach. New connectivity and MSF algorithms for shuffle-exchange
       network and PRAM. IEEE Trans. Comput. C-36(10), 1987. doi:10.1109/TC.1987.1676869
    .. [4] T. Baer, R. Kanakagiri, E. Solomonik. Parallel minimum spanning forest computation
       using sparse matrix kernels. SIAM PP 2022. doi:10.1137/1.9781611977141.7
    .. [5] J. B. Kruskal. On the shortest spanning subtree of a graph and the traveling salesman
       problem. Proc. AMS 7(1), 1956. doi:10.1090/S0002-9939-1956-0078686-7
    .. [6] V. Osipov, P. Sanders, J. Singler. The filter-Kruskal minimum spanning tree algorithm.
       ALENEX 2009. doi:10.1137/1.9781611972894.5

    Examples
    --------
    A cycle of four edges, one of them of weight zero, and a vertex alone:

    >>> import matchwood
    >>> A = (5, [[0, 1], [1, 2], [2, 3], [0, 3]], [2.0, 0.0, -1.0, 3.0])
    >>> found = matchwood.minimum_spanning_forest(A)
    >>> found.edges.tolist(), found.total, found.components
    ([[0, 1], [1, 2], [2, 3]], 1.0, 2)
    >>> matchwood.minimum_spanning_forest(A, maximum=True).edges.tolist()
    [[0, 1], [0, 3], [1, 2]]
    """
    caller = "minimum_spanning_forest"
    calls.agreed(A, lambda: one_of(caller, "method", method, tuple(METHODS)))
    maximum = calls.agreed(A, lambda: flag(caller, "maximum", maximum))
    call = calls.enter(A, caller, engine, threads)
    if call.engine == "ranks":
        found: Forest = call.load(__name__).minimum_spanning_forest(
            A, method=method, maximum=maximum, threads=threads
        )
        return found
    costs = undirected_costs(call.graph, caller, maximum)
    run = call.load(__name__).span
    edges, weights, rounds = run(costs, method, maximum, threads=threads)
    total, trees = sum_of(weights), costs.n - int(edges.shape[0])
    edges, weights = call.back(edges, weights)
    return Forest(edges, weights, total, trees, costs.n, rounds)


def sum_of(weights: Any) -> Any:
    """Sum of the weights: of floats in float64, of integers exactly, whatever its size."""
    if weights.dtype.kind == "f":
        return _float_sum(weights) if weights.size else 0.0
    if not weights.size:
        return 0
    high, low = (weights >> 32).sum(), (weights & 0xFFFF_FFFF).sum()
    return (int(high) << 32) + int(low)


def _float_sum(weights: Any) -> float:
    """The sum in float64; where a partial sum overflows, of scaled weights."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(weights.sum(dtype=np.float64))
    if math.isfinite(total):
        return total
    scale = 2.0**-64  # of at most 2^63 weights no partial sum overflows
    total = float((weights.astype(np.float64) * scale).sum())
    if abs(total) <= LARGEST_FLOAT * scale:
        return total / scale
    raise total_overflows()


def total_overflows() -> ValueError:
    """The error of a sum that no float holds."""
    return ValueError(
        "minimum_spanning_forest: the sum of the weights must be finite in float64, got overflow; "
        "scale them"
    )
