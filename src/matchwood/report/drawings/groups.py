"""Communities in the demo: the call and the picture."""

from __future__ import annotations

from typing import Any

import matchwood
from matchwood.report.drawings import pictures
from matchwood.report.drawings.sketches import Sketch


def unweighted(A: Any) -> matchwood.Graph:
    """The graph without its weights, some of which are negative in the demo."""
    if isinstance(A, matchwood.Graph):
        return A.keep("unweighted", lambda: matchwood.graph(A, weight=None))
    return matchwood.graph(A, weight=None)


def ours(A: Any, threads: int | None) -> matchwood.Communities:
    """The call that is timed."""
    return matchwood.louvain(unweighted(A), threads=threads)


def sketch(n: int = 1200) -> Sketch:
    """Louvain's communities and settled labels on random points."""
    A = matchwood.generators.random_geometric(n, degree=9.0, rng=11)
    points = matchwood.generators.random_points(n, rng=11)
    found = matchwood.louvain(A)
    labels = matchwood.label_propagation(A)
    return Sketch(
        (
            pictures.coloured_parts(points, A, found.labels, f"louvain: {found.count} communities"),
            pictures.coloured_parts(points, A, labels.labels, f"labels: {labels.count} of them"),
        ),
        f"{n:,} random points, joined when close. Left: {found.count:,} communities of modularity "
        f"{found.modularity:.3f}, by moving vertices and contracting what they form. Right: each "
        f"vertex has the label that weighs most around it, {labels.count:,} of them, modularity "
        f"{labels.modularity:.3f}. The eight largest have a colour of their own.",
    )
