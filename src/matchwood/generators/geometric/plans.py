"""What the engines are told about the points, the radius and the cells: whole numbers only."""

from __future__ import annotations

import math
from typing import NamedTuple

from matchwood.generators import streams

BITS = 31  # of a coordinate: a sum of three squares then fits 64 bits
SIDE = 2**BITS
POINTS_PER_CELL = 2  # at least, on average; smaller cells would be many and mostly empty


class Points(NamedTuple):
    """Coordinate i of point v: the upper 31 bits of number v dim + i of the stream."""

    n: int
    dim: int
    seed: int
    key: int


class Near(NamedTuple):
    """Points at most `radius` apart; `cells` cells of `width` >= radius along each axis."""

    n: int
    dim: int
    seed: int
    key: int
    radius: int
    cells: int
    width: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Cells along z, y, x; the square is a cube of one layer."""
        return (self.cells if self.dim == 3 else 1, self.cells, self.cells)


def points(n: int, dim: int, seed: int) -> Points:
    return Points(n, dim, seed, streams.key(seed, streams.POINTS))


def near(n: int, dim: int, seed: int, radius: float) -> Near:
    whole = round(min(radius, 1.75) * SIDE)  # nothing is more than sqrt(3) apart
    enough = int((n / POINTS_PER_CELL) ** (1 / dim))
    cells = max(1, min(SIDE // max(whole, 1), enough))
    return Near(*points(n, dim, seed), whole, cells, -(-SIDE // cells))


def neighbours(n: int, dim: int, radius: float) -> float:
    """Neighbours that a point far from the border has on average."""
    ball = math.pi * radius**2 if dim == 2 else 4 / 3 * math.pi * radius**3
    return n * min(ball, 1.0)


def radius_for(n: int, dim: int, degree: float) -> float:
    """The radius of a circle or ball that holds `degree` of n points on average."""
    share = degree / max(n, 1)
    return math.sqrt(share / math.pi) if dim == 2 else (3 * share / (4 * math.pi)) ** (1 / 3)
