"""Linear forests in the demo: the call and the picture."""

from __future__ import annotations

from typing import Any

import numpy as np

import matchwood
from matchwood.report.drawings import pictures
from matchwood.report.drawings.sketches import Sketch
from matchwood.report.drawings.svg import FAINT, INK, MAIN, SECOND, Svg


def ours(G: Any, threads: int | None) -> Any:
    """The call that is timed."""
    return matchwood.linear_forest(G, ties="hash", threads=threads)


def sketch(n: int = 700, side: int = 26) -> Sketch:
    """Paths of short edges between points, and the paths that an anisotropic matrix asks for."""
    A = matchwood.generators.delaunay(n, rng=5)
    points = matchwood.generators.random_points(n, rng=5)
    u = np.repeat(np.arange(n), np.diff(A.indptr))
    A.data = 1.0 / np.linalg.norm(points[u] - points[A.indices], axis=1)
    found = matchwood.linear_forest(A, rounds=None)
    grid = matchwood.generators.aniso(2, (side, side))
    along = matchwood.linear_forest(grid)
    places = np.stack(np.divmod(np.arange(side * side), side), axis=1).astype(float)
    return Sketch(
        (
            _paths(points, A, found, "short edges"),
            _paths(places, grid, along, "strong along one diagonal"),
        ),
        f"Left: a triangulation of {n:,} random points in which short edges are heavy; "
        f"{found.count:,} paths with {found.coverage:.0%} of the weight. Right: a grid whose "
        f"matrix is strong along one diagonal; the paths follow it, though the order of the rows "
        f"does not show it. Edges in the other colour were removed: the weakest of their cycles.",
    )


def _paths(points: Any, A: Any, found: Any, title: str) -> Svg:
    picture = Svg(pictures.SIDE, pictures.SIDE + pictures.LEGEND, title)
    at = pictures.placed(points)
    u, v = pictures.upper_edges(A)
    picture.segments(at[u], at[v], color=FAINT, width=0.5, opacity=0.5)
    edges = found.edges()
    picture.segments(at[edges[:, 0]], at[edges[:, 1]], color=MAIN, width=2.0)
    cut = found.removed
    if len(cut):
        picture.segments(at[cut[:, 0]], at[cut[:, 1]], color=SECOND, width=2.0)
    words = f"{found.count:,} paths, {len(cut)} cycles cut, coverage {found.coverage:.0%}"
    picture.text(pictures.MARGIN, pictures.SIDE + 18, words, color=INK)
    return picture
