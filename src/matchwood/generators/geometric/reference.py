"""Graphs of points in NumPy: every point against every other."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood.arguments import index_type
from matchwood.gate.resources import interruptible
from matchwood.generators.geometric.plans import BITS, Near, Points
from matchwood.generators.streams.reference import values

Array = np.ndarray[Any, Any]


def points(plan: Points | Near, threads: int | None = None) -> Array:
    """(dim, n) whole numbers, 31 bits."""
    k = np.arange(plan.n * plan.dim, dtype=np.uint64)
    drawn = values(plan.key, k) >> np.uint64(64 - BITS)
    return np.ascontiguousarray(drawn.astype(np.int32).reshape(plan.n, plan.dim).T)


def near(plan: Near, threads: int | None = None) -> tuple[Array, Array, Array]:
    x = points(plan)
    rows = [np.flatnonzero(_squares(x, u) <= plan.radius**2) for u in range(plan.n)]
    rows = [row[row != u] for u, row in enumerate(rows)]
    indptr = np.cumsum([0] + [row.size for row in rows])
    index = index_type(max(plan.n, int(indptr[-1])))
    indices = np.concatenate(rows) if rows else np.empty(0)
    return x, indptr.astype(index), indices.astype(index)


def _squares(x: Array, u: int) -> Array:
    """Squared distances of all points from u; a sum of three squares needs all 64 bits."""
    apart = np.abs(x.astype(np.int64) - x[:, u, None]).astype(np.uint64)
    return np.asarray((apart * apart).sum(axis=0))


def triangulated(plan: Points, threads: int | None = None) -> tuple[Array, Array, Array]:
    x = points(plan)
    u, v = triangle_sides(x)
    keys = np.unique(np.concatenate((u * plan.n + v, v * plan.n + u)))
    A = sp.csr_array(
        (np.ones(keys.size), (keys // max(plan.n, 1), keys % max(plan.n, 1))),
        shape=(plan.n, plan.n),
    )
    return x, A.indptr.astype(np.int32), A.indices.astype(np.int32)


def triangle_sides(x: Array) -> tuple[Array, Array]:
    """Both ends of the three sides of every triangle; sides of two triangles come twice."""
    n = x.shape[1]
    if n < 4:  # Qhull asks for more points; every two of so few are joined
        u, v = np.triu_indices(n, 1)
        return u, v
    from scipy.spatial import Delaunay

    corners = interruptible(lambda: Delaunay(x.T.astype(np.float64)).simplices)
    return corners.T.ravel(), np.roll(corners, -1, axis=1).T.ravel()


def distances(
    x: Array, indptr: Array, indices: Array, dtype: Any, threads: int | None = None
) -> Array:
    """Length of every stored edge."""
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    apart = np.abs(x[:, rows].astype(np.int64) - x[:, indices]).astype(np.uint64)
    squares = (apart * apart).sum(axis=0)
    return (np.sqrt(squares.astype(np.float64)) * 2.0**-BITS).astype(dtype)
