"""Graphs of random points.  Read on in plans.py, reference.py, cpu.py, gpu.py + gpu.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.arguments import count
from matchwood.generators import matrices
from matchwood.generators import weights as edge_weights
from matchwood.generators.geometric import plans
from matchwood.generators.matrices import Array, Matrix

BORDER = 0.2  # least share of the expected entries: points near the border have fewer neighbours
QHULL = 400  # bytes of memory for each point that Qhull takes to triangulate; measured
KINDS = (*edge_weights.KINDS, "distance")


def random_points(
    n: int,
    dim: int = 2,
    *,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
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
    plan = plans.points(
        count(caller, "n", n),
        arguments.one_of(caller, "dim", dim, (2, 3)),
        arguments.seed(caller, rng),
    )
    chosen = engines.resolve("cpu", engine, caller, threads)
    matrices.require_room(caller, chosen, 0, 0, np.dtype(np.float64), 12 * plan.n * plan.dim)
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
) -> Matrix:
    """Random geometric graph: two points are joined when they are at most `radius` apart.

    The points are ``random_points(n, dim, rng=rng)``.

    Parameters
    ----------
    n : int
    radius : float or None
        Rounded to a multiple of 2^-31.
    degree : float or None
        Instead of `radius`: the radius for which a point far from the border has so many
        neighbours on average.
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

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        Symmetric, zero diagonal.  With ``engine="gpu"`` a cupyx.scipy.sparse.csr_matrix.

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
    caller = "random_geometric"
    n = count(caller, "n", n)
    dim = arguments.one_of(caller, "dim", dim, (2, 3))
    kind = arguments.one_of(caller, "weights", weights, KINDS)
    dtype = arguments.value_type(caller, dtype)
    if (radius is None) == (degree is None):
        raise ValueError(
            f"{caller}: give one of radius and degree, got radius={radius} and degree={degree}"
        )
    chosen = engines.resolve("cpu", engine, caller, threads)
    matrices.require_room(caller, chosen, n, 0, dtype, 8 * n * dim)
    if degree is not None:
        radius = plans.radius_for(n, dim, arguments.real(caller, "degree", degree, 0))
    radius = arguments.real(caller, "radius", radius, 0)
    entries = round(n * plans.neighbours(n, dim, radius) * BORDER)
    matrices.require_room(caller, chosen, n, entries, dtype, 8 * n * dim + 8 * entries)
    plan = plans.near(n, dim, arguments.seed(caller, rng), radius)
    points, indptr, indices = engines.load(__name__, chosen).near(plan, threads)
    return _weighed(points, indptr, indices, kind, plan.seed, dtype, chosen, threads)


def delaunay(
    n: int,
    *,
    weights: str | None = None,
    dtype: Any = np.float32,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> Matrix:
    """Delaunay triangulation of random points in the unit square, as a graph.

    The points are ``random_points(n, rng=rng)``; two are joined when a circle through both holds
    no other point.  A planar graph: at most 3 n - 6 edges, connected.

    Parameters
    ----------
    n : int
    weights : {None, "uniform", "integers", "distance"}
        None stores ones, "distance" how far apart the points are; the others are explained in
        `random_weights`.
    dtype : float32 or float64
        Of the stored values.
    rng : int, numpy.random.Generator or None
        The seed; None is 0.
    engine : {None, "reference", "cpu", "gpu"}
        Where the result is wanted; None is the CPU.  The triangulation is made on the CPU.
    threads : int or None
        CPU only; Qhull takes one.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        Symmetric, zero diagonal.  With ``engine="gpu"`` a cupyx.scipy.sparse.csr_matrix.

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
    caller = "delaunay"
    n = count(caller, "n", n)
    kind = arguments.one_of(caller, "weights", weights, KINDS)
    dtype = arguments.value_type(caller, dtype)
    chosen = engines.resolve("cpu", engine, caller, threads)
    matrices.require_room(caller, "cpu", n, 6 * n, dtype, QHULL * n)
    plan = plans.points(n, 2, arguments.seed(caller, rng))
    made_by = engines.load(__name__, "reference" if chosen == "reference" else "cpu")
    points, indptr, indices = (
        engines.moved(part, engines.home(chosen)) for part in made_by.triangulated(plan, threads)
    )
    return _weighed(points, indptr, indices, kind, plan.seed, dtype, chosen, threads)


def _coordinates(points: Array) -> Array:
    """Whole numbers (dim, n) as coordinates (n, dim); exact."""
    return points.T * 2.0**-plans.BITS


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
        data = edge_weights.drawn(
            indptr, indices, kind, seed, dtype, directed=False, engine=engine, threads=threads
        )
    return matrices.matrix(indptr.size - 1, indptr, indices, data)
