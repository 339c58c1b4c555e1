"""PageRank in the demo: the picture."""

from __future__ import annotations

import numpy as np

import matchwood
from matchwood.report.drawings import colors, pictures
from matchwood.report.drawings.sketches import Sketch
from matchwood.report.drawings.svg import FAINT, Svg

LARGEST = 9.0  # radius of the dot of the highest score


def sketch(n: int = 900) -> Sketch:
    """Random points; every edge is an arc towards the middle."""
    A = matchwood.generators.random_geometric(n, degree=9.0, rng=7)
    points = matchwood.generators.random_points(n, rng=7)
    coo = A.tocoo()
    far = np.hypot(*(points - 0.5).T)
    inward = far[coo.row] > far[coo.col]
    arcs = np.stack((coo.row[inward], coo.col[inward]), axis=1)
    found = matchwood.pagerank((n, arcs))
    picture = Svg(pictures.SIDE, pictures.SIDE + pictures.LEGEND, "pagerank")
    at = pictures.placed(points)
    picture.segments(at[arcs[:, 0]], at[arcs[:, 1]], color=FAINT, width=0.5, opacity=0.5)
    radius = np.maximum(1.0, LARGEST * np.sqrt(found.scores / found.scores.max()))
    step = np.minimum(radius.round().astype(int), int(LARGEST))
    for size in np.unique(step).tolist():
        picture.dots(at[step == size], color=colors.CATEGORIES[0], radius=float(size), opacity=0.8)
    return Sketch(
        (picture,),
        f"{n:,} random points, joined when close; every edge leads towards the middle. The area of "
        f"a dot is its score: where a random surfer spends the time. {found.iterations} "
        "iterations.",
    )
