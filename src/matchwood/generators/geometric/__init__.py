"""Graphs of random points.  Read on in reference.py, cpu.py, gpu.py + gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.arguments import count
from matchwood.generators import result, streams
from matchwood.generators.geometric import reference
from matchwood.generators.result import Array, Matrix, Ranks, both_ways

BORDER = 0.2  # least share of the expected entries: points near the border have fewer neighbours
QHULL = 400  # bytes of memory for each point that Qhull takes to triangulate; measured
KINDS = (*streams.KINDS, "distance")


def random_points(
    n: int, dim: int = 2, *, rng: Any = 0, engine: str | None = None, threads: int | None = None
) -> Array:
    """Random points of the unit square or cube: those of `random_geometric` and `delaunay`.

    Parameters
    ----------
    n : int
    dim : {2, 3}
    rng : int, numpy.random.Generator or None
        The seed; None is 0.
    engine : {None, "reference", "cpu", "gpu"}
        Where to make them; None is the CPU.
    threads : int or None
        CPU only.

    Returns
    -------
    points : (n, dim) float64 array
        Coordinates are k / 2^31, k = 0 .. 2^31 - 1.  With ``engine="gpu"`` a CuPy array.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind; if it fits no memory.

    Notes
    -----
    Coordinate i of point v is 31 bits of number v dim + i of a counter-based stream, the same on
    every engine.

    Examples
    --------
    >>> from matchwood.generators import random_points
    >>> points = random_points(1000)
    >>> points.shape, points.mean().round(1).item()
    ((1000, 2), 0.5)
    """
    caller = "random_points"
    plan = reference.Points.of(
        count(caller, "n", n),
        arguments.one_of(caller, "dim", dim, (2, 3)),
        arguments.seed(caller, rng),
    )
    chosen = engines.resolve("cpu", engine, caller, threads)
    result.require_room(caller, chosen, 0, 0, np.dtype(np.float64), 12 * plan.n * plan.dim)
    return _coordinates(engines.load(__name__, chosen).points(plan, threads))


def random_geometric(
    n: int,
    radius: float | None = None,
    *,
    degree: float | None = None,
    dim: int = 2,
    weights: str | None = None,
    dtype: Any = np.float32,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Random geometric graph: two points are joined when they are at most `radius` apart.

    The points are ``random_points(n, dim, rng=rng)``.

    Parameters
    ----------
    n : int
    radius : float or None
        Rounded to a multiple of 2^-31.
    degree : float or None
        Instead of `radius`: the average number of neighbours of a point far from the border,
        which sets the radius.
    dim : {2, 3}
        Unit square or unit cube.
    weights : {None, "uniform", "integers", "distance"}
        None stores ones, "distance" how far apart the points are; the others are explained in
        `random_weights`.
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
        Every rank draws all points, and joins those of its cells.
    grid, order
        With `comm`, as for `matchwood.distribute`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        Symmetric, zero diagonal.  With ``engine="gpu"`` a cupyx.scipy.sparse.csr_matrix, with
        `comm` a `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind, or not just one of `radius` and `degree` is given;
        if it fits no memory.

    Notes
    -----
    Distances are compared as squares of whole numbers, exactly, so every engine makes the same
    graph at any number of threads.

    Points are sorted into cells no narrower than the radius, and each is compared with the points
    of its own cell and of those around it.  Work O(n + edges) for a radius that gives a bounded
    degree.  Memory beside the result:  two indices for each edge, and what the assembly takes.

    References
    ----------
    .. [1] M. Penrose. Random geometric graphs. Oxford University Press, 2003.
       doi:10.1093/acprof:oso/9780198506263.001.0001

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.generators import random_geometric, random_points
    >>> A = random_geometric(1000, 0.05, weights="distance", dtype=np.float64)
    >>> bool(A.data.max() <= 0.05)
    True
    >>> p = random_points(1000)
    >>> u, v = A.nonzero()
    >>> bool(np.allclose(np.linalg.norm(p[u] - p[v], axis=1), A.data, rtol=1e-15, atol=0))
    True
    """
    caller, ranks = "random_geometric", Ranks(comm, grid, order, engine, threads)

    def planned() -> tuple[reference.Near, int, Any, Any]:
        points, axes = count(caller, "n", n), arguments.one_of(caller, "dim", dim, (2, 3))
        kind = arguments.one_of(caller, "weights", weights, KINDS)
        value = arguments.value_type(caller, dtype)
        if (radius is None) == (degree is None):
            got = f"radius={arguments.shown(radius)} and degree={arguments.shown(degree)}"
            raise ValueError(f"{caller}: give one of radius and degree, got {got}")
        chosen = engines.resolve("cpu", engine, caller, threads)
        result.require_room(caller, chosen, points, 0, value, 8 * points * axes)
        near = radius
        if degree is not None:
            near = reference.radius_for(points, axes, arguments.real(caller, "degree", degree, 0))
        near = min(
            arguments.real(caller, "radius", near, 0), 2.0
        )  # none are more than sqrt(3) apart
        entries = round(points * reference.neighbours(points, axes, near) * BORDER)
        if comm is None:
            extra = 8 * points * axes + 8 * entries
            result.require_room(caller, chosen, points, entries, value, extra)
        plan = reference.Near.of(points, axes, arguments.seed(caller, rng), near)
        return plan, entries, kind, value

    plan, entries, kind, dtype = ranks.agreed(caller, planned)
    if comm is not None:
        return _near_by_ranks(plan, entries, kind, dtype, ranks)
    chosen = engines.resolve("cpu", engine, caller, threads)
    points, indptr, indices = engines.load(__name__, chosen).near(plan, threads)
    return _weighed(points, indptr, indices, kind, plan.seed, dtype, chosen, threads)


def _near_by_ranks(
    plan: reference.Near, entries: int, kind: str | None, dtype: Any, ranks: Ranks
) -> Any:
    """Every rank joins the points of its range of cells; each cell has the same slots on all."""
    engine, threads = engines.load(__name__, "cpu"), ranks.cpu_threads
    x, cells = engine.sorted_points(plan, threads)
    starts = cells.starts

    def edges(first: int, number: int) -> tuple[Any, Any, None]:
        u, v = engine.near_edges(cells, int(starts[first]), int(starts[first + number]), threads)
        return both_ways(u, v, directed=False)

    def lengths(places: Any, view: Any) -> Array:
        return engine.distances(x, view.indptr, view.indices, dtype, threads, places.names)

    values = streams.drawn_on_ranks(kind, plan.seed, dtype, directed=False)
    if kind == "distance":
        values = lengths
    total = starts.size - 1
    each = entries / total
    return ranks.graph("random_geometric", plan.n, total, edges, values, each=each)


def delaunay(
    n: int,
    *,
    weights: str | None = None,
    dtype: Any = np.float32,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Delaunay triangulation of random points in the unit square, as a graph.

    The points are ``random_points(n, rng=rng)``; two are joined when a circle through both holds
    no other point.  A planar graph: at most 3 n - 6 edges, connected.

    Parameters
    ----------
    n : int
    weights, dtype, rng
        As for `random_geometric`.
    engine : {None, "reference", "cpu", "gpu"}
        Where the result is wanted; None is the CPU.  The triangulation is made on the CPU.
    threads : int or None
        CPU only; Qhull takes one.
    comm : Communicator, optional
        Of `matchwood.dist`: rank 0 makes the graph, and each rank keeps a block.
    grid, order
        With `comm`, as for `matchwood.distribute`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        Symmetric, zero diagonal.  With ``engine="gpu"`` a cupyx.scipy.sparse.csr_matrix, with
        `comm` a `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind; if it fits no memory.

    Notes
    -----
    Triangulated by Qhull [1]_ through SciPy, on the same coordinates everywhere.  Qhull cannot be
    stopped: on Ctrl-C this call ends at once, and the triangulation goes on in a thread of its
    own, whose result is dropped.

    References
    ----------
    .. [1] C. B. Barber, D. P. Dobkin, H. Huhdanpaa. The quickhull algorithm for convex hulls.
       ACM TOMS 22(4), 1996. doi:10.1145/235815.235821

    Examples
    --------
    >>> from matchwood.generators import delaunay
    >>> A = delaunay(1000)
    >>> A.nnz // 2 <= 3 * 1000 - 6
    True
    """
    caller, ranks = "delaunay", Ranks(comm, grid, order, engine, threads)

    def planned() -> tuple[reference.Points, Any, Any]:
        points = count(caller, "n", n)
        kind = arguments.one_of(caller, "weights", weights, KINDS)
        value = arguments.value_type(caller, dtype)
        result.require_room(caller, "cpu", points, 6 * points, value, QHULL * points)
        return reference.Points.of(points, 2, arguments.seed(caller, rng)), kind, value

    def made(engine: str | None) -> Matrix:
        chosen = engines.resolve("cpu", engine, caller, threads)
        made_by = engines.load(__name__, "reference" if chosen == "reference" else "cpu")
        points, indptr, indices = (
            engines.moved(part, engines.home(chosen))
            for part in made_by.triangulated(plan, threads)
        )
        return _weighed(points, indptr, indices, kind, plan.seed, dtype, chosen, threads)

    plan, kind, dtype = ranks.agreed(caller, planned)
    return made(engine) if comm is None else ranks.dealt(caller, lambda: made(None))


def _coordinates(points: Array) -> Array:
    """Whole numbers (dim, n) as coordinates (n, dim); exact."""
    return points.T * 2.0**-reference.BITS


def _weighed(
    points: Array,
    indptr: Array,
    indices: Array,
    kind: str | None,
    seed: int,
    dtype: np.dtype[Any],
    engine: str,
    threads: int | None,
) -> Matrix:
    if kind == "distance":
        data = engines.load(__name__, engine).distances(points, indptr, indices, dtype, threads)
    else:
        data = streams.drawn(
            indptr, indices, kind, seed, dtype, directed=False, engine=engine, threads=threads
        )
    return result.matrix(indptr.size - 1, indptr, indices, data)
