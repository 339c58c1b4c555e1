"""Strong components in the demo: the call and the picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from matchwood.report.drawings import pictures
from matchwood.report.drawings.sketches import Sketch


def ours(G: Any, threads: int | None) -> Any:
    """The call that is timed."""
    return matchwood.strongly_connected_components(G, threads=threads)


def one_way(A: Any, both: float, rng: int) -> Any:
    """A symmetric matrix of which most edges keep one direction, drawn at random."""
    upper = sp.triu(A, 1).tocoo()
    draw = np.random.default_rng(rng).random(upper.nnz)
    there, back = draw > (1 - both) / 2, draw < (1 + both) / 2
    rows = np.append(upper.row[there], upper.col[back])
    cols = np.append(upper.col[there], upper.row[back])
    return sp.csr_array((np.ones(rows.size), (rows, cols)), shape=A.shape)


def sketch(n: int = 1500) -> Sketch:
    """A town of one-way streets: where can one drive to and come back from?"""
    streets = matchwood.generators.random_geometric(n, degree=6.5, rng=4)
    points = matchwood.generators.random_points(n, rng=4)
    town = one_way(streets, 0.1, rng=1)
    found = matchwood.strongly_connected_components(town)
    sizes = np.bincount(found.labels)
    return Sketch(
        (
            pictures.coloured_parts(points, streets, found.labels, "strong components"),
            pictures.distribution(
                sizes,
                "vertices",
                "components",
                "components of each size",
                pictures.SIDE,
                pictures.SIDE + pictures.LEGEND,
            ),
        ),
        f"{n:,} places joined by streets, nine in ten of them one-way: {found.count:,} strong "
        f"components, within which one can drive there and back. The largest has "
        f"{int(sizes.max()):,} places; {int((sizes == 1).sum()):,} places are on their own.",
    )
