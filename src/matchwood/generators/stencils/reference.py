"""A stencil on a grid, as all engines take it, and its matrix, one entry after the other."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from matchwood.arguments import index_type

Array = np.ndarray[Any, Any]


class Plan(NamedTuple):
    """Which point has which number, and which points a row holds in which order.

    Point (z, y, x) has the number (z ny + y) nx + x where `starts` is empty.  Otherwise nz = 1
    and the number is starts[y + x] + y - max(0, y + x - (nx - 1)): anti-diagonal s = y + x has
    the numbers from starts[s] on.

    Among the points that lie inside of the grid, the order of `offsets` is that of the numbers,
    so a row is written sorted.
    """

    shape: tuple[int, int, int]
    offsets: Array  # (k, 3) int64
    values: Array  # (k,) float64
    starts: Array  # int64

    @property
    def n(self) -> int:
        return math.prod(self.shape)

    @property
    def nnz(self) -> int:
        """Offset o stays inside of the grid at prod(length - |o|) points."""
        left = np.maximum(np.array(self.shape) - np.abs(self.offsets), 0)
        return sum(math.prod(row) for row in left.tolist())

    @property
    def index(self) -> Any:
        return index_type(max(self.n, self.nnz))


def row_by_row(weights: Array, shape: tuple[int, ...]) -> Plan:
    """Points numbered with the last index running fastest, as the offsets are then too."""
    flat = (1,) * (3 - weights.ndim)
    weights = weights.reshape(flat + weights.shape)
    at = np.argwhere(weights)
    nz, ny, nx = flat + shape
    centre = np.array(weights.shape) // 2
    values = weights[tuple(at.T)].astype(np.float64)
    return Plan((nz, ny, nx), np.ascontiguousarray(at - centre), values, np.empty(0, np.int64))


def along_antidiagonals(weights: Array, shape: tuple[int, ...]) -> Plan:
    """Points of a 2-D grid numbered by (y + x, y), and the offsets in the same order."""
    plan = row_by_row(weights, shape)
    _, ny, nx = plan.shape
    order = np.lexsort((plan.offsets[:, 1], plan.offsets[:, 1] + plan.offsets[:, 2]))
    s = np.arange(max(ny + nx - 1, 0))
    lengths = np.minimum(np.minimum(s, ny + nx - 2 - s), min(ny, nx) - 1) + 1
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return Plan(plan.shape, plan.offsets[order], plan.values[order], starts)


def apply(plan: Plan, dtype: Any, threads: int | None = None) -> tuple[Array, Array, Array]:
    points = list(product(*(range(length) for length in plan.shape)))
    if plan.starts.size:
        points.sort(key=lambda point: (sum(point), point))
    number = {point: k for k, point in enumerate(points)}
    indptr, indices, data = [0], [], []
    for z, y, x in points:
        row = {}
        for (dz, dy, dx), w in zip(plan.offsets.tolist(), plan.values.tolist(), strict=True):
            column = number.get((z + dz, y + dy, x + dx))
            if column is not None:
                row[column] = w
        for column in sorted(row):
            indices.append(column)
            data.append(row[column])
        indptr.append(len(indices))
    index = plan.index
    return np.array(indptr, index), np.array(indices, index), np.array(data, dtype)
