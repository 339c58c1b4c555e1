"""Minimum spanning forests in the demo: the call and the picture."""

from __future__ import annotations

from typing import Any

import numpy as np

import matchwood
from matchwood.report.drawings import pictures
from matchwood.report.drawings.sketches import Sketch
from matchwood.report.drawings.svg import FAINT, INK, MAIN, SECOND, Svg


def ours(G: Any, threads: int | None) -> Any:
    """The call that is timed."""
    return matchwood.minimum_spanning_forest(G, threads=threads)


def sketch(n: int = 900, side: int = 28) -> Sketch:
    """The shortest network between points, and a maze."""
    A = matchwood.generators.delaunay(n, rng=5)
    points = matchwood.generators.random_points(n, rng=5)
    u = np.repeat(np.arange(n), np.diff(A.indptr))
    A.data = np.linalg.norm(points[u] - points[A.indices], axis=1)
    found = matchwood.minimum_spanning_forest(A)
    longest = matchwood.minimum_spanning_forest(A, maximum=True).total
    grid = matchwood.generators.random_weights(matchwood.generators.grid((side, side)), rng=2)
    maze = matchwood.minimum_spanning_forest(grid)
    return Sketch(
        (_network(points, A, found), _maze(side, maze)),
        f"Left: the shortest network that joins {n:,} random points, {found.total:.1f} long (the "
        f"longest along the same lines: {longest:.1f}). Right: the spanning tree of a grid "
        f"with random weights is a maze; there is one way between any two places.",
    )


def _network(points: Any, A: Any, found: Any) -> Svg:
    picture = Svg(pictures.SIDE, pictures.SIDE + pictures.LEGEND, "minimum spanning tree")
    at = pictures.placed(points)
    u, v = pictures.upper_edges(A)
    picture.segments(at[u], at[v], color=FAINT, width=0.5, opacity=0.5)
    picture.segments(at[found.edges[:, 0]], at[found.edges[:, 1]], color=MAIN, width=1.6)
    words = f"{found.edges.shape[0]:,} of {u.size:,} edges"
    picture.text(pictures.MARGIN, pictures.SIDE + 18, words, color=INK)
    return picture


def _maze(side: int, found: Any) -> Svg:
    picture = Svg(pictures.SIDE, pictures.SIDE + pictures.LEGEND, "a maze")
    places = np.stack(np.divmod(np.arange(side * side), side), axis=1).astype(float)
    at = pictures.placed(places)
    ends = at[found.edges[:, 0]], at[found.edges[:, 1]]
    picture.segments(*ends, color=SECOND, width=7.0)
    picture.text(pictures.MARGIN, pictures.SIDE + 18, f"{side} x {side} places", color=INK)
    return picture
