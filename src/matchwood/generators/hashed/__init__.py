"""Random graphs whose edges are drawn by a hash.  Read on in reference.py, cpu.py, gpu.py.

The random numbers are those of `matchwood.generators.streams`.  Arguments become whole numbers
once, on the host (a plan), which all engines follow.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.arguments import count, index_type
from matchwood.generators import result, streams
from matchwood.generators.hashed.reference import GNM, RMAT, Bernoulli
from matchwood.generators.result import Matrix, Ranks, both_ways

MOST_SCALE = 40  # a graph of 2^40 vertices fills any memory
MOST_VERTICES = 2**31  # pairs of vertices are numbered in 64 bits


def rmat(
    scale: int,
    edge_factor: float = 16,
    *,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    d: float = 0.05,
    directed: bool = False,
    permute: bool = True,
    weights: str | None = None,
    dtype: Any = np.float32,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Skewed random graph with 2^scale vertices: R-MAT, with the parameters of Graph500.

    ``edge_factor * 2**scale`` edges are drawn one by one.  An edge starts with the whole
    adjacency matrix and goes down into one of its quarters, `scale` times: upper left with
    probability `a`, upper right `b`, lower left `c`, lower right `d` [1]_.  Then, as Graph500
    does [2]_, vertices are renumbered at random, self loops dropped and equal edges merged, so
    the graph has fewer edges than were drawn.

    Parameters
    ----------
    scale : int
        0 to 40.
    edge_factor : float
        Edges drawn for each vertex.
    a, b, c, d : float
        Probabilities of the quarters; they add up to 1.
    directed : bool
        False stores each edge both ways.
    permute : bool
        Renumber the vertices; False leaves those of high degree in front.
    weights : {None, "uniform", "integers"}
        None stores ones; the others are explained in `random_weights`.
    dtype : float32 or float64
        Of the stored values.
    rng : int, numpy.random.Generator or None
        The seed; None is 0.
    engine : {None, "reference", "cpu", "gpu"}
        Where to make the graph; None is the CPU.
    threads : int or None
        CPU only.
    comm : Communicator, optional
        Of `matchwood.dist`: its ranks make the graph together, and each keeps a block.
    grid, order
        With `comm`, as for `matchwood.distribute`.

    Returns
    -------
    A : (2**scale, 2**scale) scipy.sparse.csr_array
        Sorted rows, no duplicates, zero diagonal.  With ``engine="gpu"`` a
        cupyx.scipy.sparse.csr_matrix, with `comm` a `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind, or outside of the range given above;
        if it fits no memory.

    Notes
    -----
    Deterministic: every engine makes the same graph from the same arguments, at any number of
    threads.  A draw on one level is 32 bits of a counter-based hash against integer thresholds,
    so the probabilities are multiples of 2^-32.  Vertices are renumbered by four rounds of
    x = (x * odd + number) mod 2^scale, x = x xor (x >> ceil(scale / 2)).

    Work O(scale) for each edge drawn, then one assembly of the edge list.  Memory beside the
    result: two indices for each edge drawn, and what the assembly takes.

    References
    ----------
    .. [1] D. Chakrabarti, Y. Zhan, C. Faloutsos. R-MAT: a recursive model for graph mining.
       SIAM Data Mining 2004. doi:10.1137/1.9781611972740.43
    .. [2] The Graph 500 benchmark, specification 1.2.  https://graph500.org

    Examples
    --------
    >>> from matchwood.generators import rmat
    >>> A = rmat(10)
    >>> A.shape, int(abs(A - A.T).max()), int(A.diagonal().max())
    ((1024, 1024), 0, 0)

    Of the 16 * 1024 edges drawn many are equal:

    >>> A.nnz // 2 < 16 * 1024
    True
    >>> rmat(10, rng=1).nnz == A.nnz
    False
    """
    caller, ranks = "rmat", Ranks(comm, grid, order, engine, threads)

    def planned() -> RMAT:
        levels = arguments.at_most(
            caller, "scale", count(caller, "scale", scale), MOST_SCALE, "more fits no memory"
        )
        factor = arguments.real(caller, "edge_factor", edge_factor, 0)
        quarters = tuple(
            arguments.real(caller, name, p, 0, 1)
            for name, p in zip("abcd", (a, b, c, d), strict=True)
        )
        if abs(sum(quarters) - 1) > 1e-9:
            raise ValueError(f"{caller}: a + b + c + d must be 1, got {sum(quarters)}")
        return RMAT.of(
            levels,
            round(Fraction(factor) * 2**levels),
            quarters,
            arguments.seed(caller, rng),
            directed=arguments.flag(caller, "directed", directed),
            permute=arguments.flag(caller, "permute", permute),
        )

    plan = ranks.agreed(caller, planned)
    entries = min(plan.samples * (1 if plan.directed else 2), plan.n * (plan.n - 1))
    return _made(caller, "rmat", plan, entries, plan.samples, weights, dtype, ranks)


def erdos_renyi(
    n: int,
    m: int,
    *,
    directed: bool = False,
    weights: str | None = None,
    dtype: Any = np.float32,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Random graph with n vertices and exactly m edges: G(n, m) of Erdos and Renyi.

    Every set of m different edges without self loops is equally likely [1]_.

    Parameters
    ----------
    n : int
        Vertices, at most 2^31.
    m : int
        Edges, at most n (n - 1) / 2, or n (n - 1) when directed.
    directed : bool
        False stores each edge both ways, so 2 m entries.
    weights, dtype, rng, engine, threads, comm, grid, order
        As for `rmat`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        Sorted rows, no duplicates, zero diagonal.  With ``engine="gpu"`` a
        cupyx.scipy.sparse.csr_matrix, with `comm` a `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind, or outside of the range given above;
        if it fits no memory.

    Notes
    -----
    All N possible edges are numbered, and edge k of the graph is the one whose number is p(k),
    k = 0 .. m - 1, for a permutation p of 0 .. N - 1 that is computed, not stored: a Feistel
    network [2]_ on the next power of two, applied again while its result is outside of 0 .. N - 1.
    So there is nothing to reject, and every engine makes the same graph at any number of
    threads.  Number t is the directed edge from t div (n - 1) to the (t mod (n - 1))-th other
    vertex, or the undirected edge of t mod n and the vertex 1 + t div n further on, modulo n.

    Work O(m) hashes, then one assembly of the edge list.  Memory beside the result: 2 m indices,
    and what the assembly takes.

    References
    ----------
    .. [1] P. Erdos, A. Renyi. On random graphs I. Publ. Math. Debrecen 6, 1959.
    .. [2] M. Luby, C. Rackoff. How to construct pseudorandom permutations from pseudorandom
       functions. SIAM J. Comput. 17(2), 1988. doi:10.1137/0217022

    Examples
    --------
    >>> from matchwood.generators import erdos_renyi
    >>> erdos_renyi(1000, 3000).nnz, erdos_renyi(1000, 3000, directed=True).nnz
    (6000, 3000)

    All edges there are:

    >>> erdos_renyi(4, 6).toarray().astype(int).tolist()
    [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
    """
    caller, ranks = "erdos_renyi", Ranks(comm, grid, order, engine, threads)

    def planned() -> GNM:
        vertices, edges = _vertices(caller, n), count(caller, "m", m)
        one_way = arguments.flag(caller, "directed", directed)
        most = vertices * (vertices - 1) // (1 if one_way else 2)
        arguments.at_most(caller, "m", edges, most, f"all edges of {vertices} vertices")
        return GNM.of(vertices, edges, arguments.seed(caller, rng), directed=one_way)

    plan = ranks.agreed(caller, planned)
    entries = plan.m if plan.directed else 2 * plan.m
    return _made(caller, "gnm", plan, entries, plan.m, weights, dtype, ranks)


def dense_random(
    n: int,
    density: float,
    *,
    directed: bool = False,
    weights: str | None = None,
    dtype: Any = np.float32,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Random graph that has each possible edge with probability `density`: G(n, p).

    Made for many edges: every pair of vertices is tried, and rows are written sorted.

    Parameters
    ----------
    n : int
        Vertices, at most 2^31.
    density : float
        Probability of an edge, 0 to 1; about ``density * n * (n - 1)`` entries are stored.
    directed : bool
        True draws (u, v) and (v, u) separately; False draws once for both.
    weights, dtype, rng, engine, threads, comm, grid, order
        As for `rmat`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        Sorted rows, no duplicates, zero diagonal.  With ``engine="gpu"`` a
        cupyx.scipy.sparse.csr_matrix, with `comm` a `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind, or outside of the range given above;
        if it fits no memory.

    Notes
    -----
    Edge (u, v) is there when number u n + v of a counter-based stream, 53 bits of it, is less
    than density 2^53; an undirected graph takes the smaller vertex for u.  A larger density with
    the same seed keeps all edges of a smaller one.  Every engine makes the same graph at any
    number of threads.

    Work O(n^2), twice: to count and to fill.  Memory beside the result: O(n) for each thread.

    Examples
    --------
    >>> from matchwood.generators import dense_random
    >>> A = dense_random(500, 0.45, directed=True)
    >>> round(A.nnz / (500 * 499), 2)
    0.45
    >>> dense_random(3, 1.0).nnz, dense_random(3, 0.0).nnz
    (6, 0)
    """
    caller, ranks = "dense_random", Ranks(comm, grid, order, engine, threads)
    plan = ranks.agreed(
        caller,
        lambda: Bernoulli.of(
            _vertices(caller, n),
            arguments.real(caller, "density", density, 0, 1),
            arguments.seed(caller, rng),
            directed=arguments.flag(caller, "directed", directed),
        ),
    )
    entries = plan.n * plan.n * plan.threshold >> 53
    return _made(caller, "bernoulli", plan, entries, 0, weights, dtype, ranks)


def _vertices(caller: str, n: Any) -> int:
    n = count(caller, "n", n)
    return arguments.at_most(caller, "n", n, MOST_VERTICES, "pairs are numbered in 64 bits")


def _made(
    caller: str,
    method: str,
    plan: Any,
    entries: int,
    drawn: int,
    weights: str | None,
    dtype: Any,
    ranks: Ranks,
) -> Matrix:
    if ranks.comm is not None:
        return _made_by_ranks(caller, method, plan, entries, weights, dtype, ranks)
    threads = ranks.threads
    kind = arguments.one_of(caller, "weights", weights, streams.KINDS)
    dtype = arguments.value_type(caller, dtype)
    chosen = engines.resolve("cpu", ranks.engine, caller, threads)
    # the ends of the edges as drawn lie beside the graph, and a counter for each vertex
    extra = 2 * drawn * index_type(plan.n).itemsize + 8 * plan.n
    result.require_room(caller, chosen, plan.n, entries, dtype, extra)
    indptr, indices = getattr(engines.load(__name__, chosen), method)(plan, threads)
    data = streams.drawn(
        indptr, indices, kind, plan.seed, dtype, directed=plan.directed, engine=chosen,
        threads=threads,
    )  # fmt: skip
    return result.matrix(plan.n, indptr, indices, data)


def _made_by_ranks(
    caller: str, method: str, plan: Any, entries: int, weights: Any, dtype: Any, ranks: Ranks
) -> Any:
    """The same by all ranks together: each draws its part of the edges, or of the rows."""
    kind, dtype = ranks.agreed(
        caller,
        lambda: (
            arguments.one_of(caller, "weights", weights, streams.KINDS),
            arguments.value_type(caller, dtype),
        ),
    )
    engine, threads = engines.load(__name__, "cpu"), ranks.cpu_threads
    values = streams.drawn_on_ranks(kind, plan.seed, dtype, directed=plan.directed)

    def edges(first: int, number: int) -> tuple[Any, Any, None]:
        draw = engine.rmat_edges if method == "rmat" else engine.gnm_edges
        u, v = draw(plan, threads, first, number)
        return both_ways(u, v, directed=plan.directed)

    def rows(first: int, number: int) -> tuple[Any, Any, None]:
        indptr, indices = engine.bernoulli(plan, threads, first, number)
        names = np.arange(first, first + number, dtype=indices.dtype)
        return np.repeat(names, np.diff(indptr)), indices, None

    if method == "bernoulli":
        each = entries / max(plan.n, 1)
        return ranks.graph(caller, plan.n, plan.n, rows, values, each=each)
    total = plan.samples if method == "rmat" else plan.m
    each = 1 if plan.directed else 2
    return ranks.graph(caller, plan.n, total, edges, values, each=each)
