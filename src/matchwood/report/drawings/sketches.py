"""A picture of each problem, on a graph small enough to see every vertex."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import matchwood
from matchwood.report.drawings import pictures
from matchwood.report.drawings.svg import Svg


class Sketch(NamedTuple):
    """Drawings that belong together, and the sentence below them."""

    drawings: tuple[Svg, ...]
    caption: str


def levels(n: int = 1500) -> Sketch:
    """Breadth-first levels on a triangulation, from the vertex nearest to the centre."""
    A = matchwood.generators.delaunay(n, rng=7)
    points = matchwood.generators.random_points(n, rng=7)
    centre = int(np.argmin(((points - 0.5) ** 2).sum(axis=1)))
    found = matchwood.bfs(A, centre)
    return Sketch(
        (
            pictures.mesh_levels(points, A, found.level, found.parent),
            pictures.level_sizes(found.level, height=pictures.SIDE + pictures.LEGEND),
        ),
        f"Search from the red vertex in a triangulation of {n:,} random points. Colour is the "
        f"level, the number of edges from the source; lines in colour join each vertex to its "
        f"parent, always the neighbour of the level before with the smallest number.",
    )


def components(n: int = 1600) -> Sketch:
    """Components of a random geometric graph that is about to fall apart."""
    radius = float((4.0 / np.pi / n) ** 0.5)  # about four neighbours each
    A = matchwood.generators.random_geometric(n, radius, rng=5)
    points = matchwood.generators.random_points(n, rng=5)
    found = matchwood.connected_components(A)
    return Sketch(
        (
            pictures.coloured_parts(points, A, found.labels),
            pictures.distribution(
                np.bincount(found.labels),
                "vertices",
                "components",
                "components of each size",
                pictures.SIDE,
                pictures.SIDE + pictures.LEGEND,
            ),
        ),
        f"{n:,} random points, joined when closer than {radius:.3f}: {found.count:,} components. "
        f"The eight largest have a colour of their own, the others are grey.",
    )


def matching(n: int = 700) -> Sketch:
    """The greedy matching of a triangulation, short edges being heavy."""
    A = matchwood.generators.delaunay(n, rng=3)
    points = matchwood.generators.random_points(n, rng=3)
    ends = np.repeat(np.arange(n), np.diff(A.indptr))
    A.data = 1.0 / np.linalg.norm(points[ends] - points[A.indices], axis=1)
    found = matchwood.weighted_matching(A)
    free = int((found.mate < 0).sum())
    parts = matchwood.coarsening_hierarchy(A, until=8).map
    return Sketch(
        (
            pictures.matched_edges(points, A, found.mate),
            pictures.coloured_parts(points, A, parts, "merged again and again"),
        ),
        f"A triangulation of {n:,} random points in which short edges are heavy: of the "
        f"{found.cardinality:,} matched ones, no two meet; {free} vertices stay free. No matching "
        f"is heavier than {1 / found.quality:.2f} times this one, which a dual solution proves. "
        f"Right: pairs merged, matched and merged again, until eight vertices or fewer are left.",
    )
