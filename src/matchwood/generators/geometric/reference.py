"""Graphs of points in NumPy: every point against every other.

Engines get points, radius and cells as whole numbers only, so that none can round differently.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from matchwood.arguments import index_type
from matchwood.gate.resources import interruptible
from matchwood.generators import streams

Array = np.ndarray[Any, Any]

BITS = 31  # of a coordinate: a sum of three squares then fits 64 bits
SIDE = 2**BITS
POINTS_PER_CELL = 2  # at least, on average; smaller cells would be many and mostly empty


class Points(NamedTuple):
    """Coordinate i of point v: the upper 31 bits of number v dim + i of the stream."""

    n: int
    dim: int
    seed: int
    key: int

    @classmethod
    def of(cls, n: int, dim: int, seed: int) -> Points:
        return cls(n, dim, seed, streams.key(seed, streams.POINTS))


class Near(NamedTuple):
    """Points at most `radius` apart; `cells` cells of `width` >= radius along each axis."""

    n: int
    dim: int
    seed: int
    key: int
    radius: int
    cells: int
    width: int

    @classmethod
    def of(cls, n: int, dim: int, seed: int, radius: float) -> Near:
        whole = round(min(radius, 1.75) * SIDE)  # nothing is more than sqrt(3) apart
        enough = int((n / POINTS_PER_CELL) ** (1 / dim))
        cells = max(1, min(SIDE // max(whole, 1), enough))
        return cls(*Points.of(n, dim, seed), whole, cells, -(-SIDE // cells))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Cells along z, y, x; the square is a cube of one layer."""
        return (self.cells if self.dim == 3 else 1, self.cells, self.cells)


def neighbours(n: int, dim: int, radius: float) -> float:
    """Neighbours that a point far from the border has on average."""
    ball = math.pi * radius**2 if dim == 2 else 4 / 3 * math.pi * radius**3
    return n * min(ball, 1.0)


def radius_for(n: int, dim: int, degree: float) -> float:
    """The radius of a circle or ball that holds `degree` of n points on average."""
    share = degree / max(n, 1)
    return math.sqrt(share / math.pi) if dim == 2 else (3 * share / (4 * math.pi)) ** (1 / 3)


def points(plan: Points | Near, threads: int | None = None) -> Array:
    """(dim, n) whole numbers, 31 bits."""
    k = np.arange(plan.n * plan.dim, dtype=np.uint64)
    drawn = streams.values(plan.key, k) >> np.uint64(64 - BITS)
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
    """Both ends of the three sides of every triangle; sides of two triangles occur twice."""
    n = x.shape[1]
    if n < 4:  # Qhull needs more points; here every two are joined
        u, v = np.triu_indices(n, 1)
        return u, v
    from scipy.spatial import Delaunay

    corners = interruptible(lambda: Delaunay(x.T.astype(np.float64)).simplices)
    return corners.T.ravel(), np.roll(corners, -1, axis=1).T.ravel()


def distances(
    x: Array, indptr: Array, indices: Array, dtype: Any, threads: int | None = None
) -> Array:
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    apart = np.abs(x[:, rows].astype(np.int64) - x[:, indices]).astype(np.uint64)
    squares = (apart * apart).sum(axis=0)
    return (np.sqrt(squares.astype(np.float64)) * 2.0**-BITS).astype(dtype)
