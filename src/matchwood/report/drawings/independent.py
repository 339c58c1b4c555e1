"""Maximal independent sets in the demo: the call and the picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matchwood
from matchwood.report.drawings import pictures
from matchwood.report.drawings.sketches import Sketch
from matchwood.report.drawings.svg import FAINT, INK, MAIN, SECOND, Svg


@dataclass(frozen=True)
class Members:
    """The mask, as an answer that the demo can compare."""

    members: Any


def ours(G: Any, threads: int | None) -> Members:
    """The call that is timed."""
    return Members(matchwood.maximal_independent_set(G, threads=threads))


def sketch(n: int = 700) -> Sketch:
    """The sets of two methods on a triangulation."""
    A = matchwood.generators.delaunay(n, rng=9)
    points = matchwood.generators.random_points(n, rng=9)
    sets = {
        method: matchwood.maximal_independent_set(A, method=method)
        for method in ("luby", "lexicographic")
    }
    drawings = [_drawn(points, A, *item) for item in sets.items()]
    return Sketch(
        tuple(drawings),
        f"No two of the vertices in colour are neighbours, and every other one is beside one of "
        f"them. By small degrees first (left) {int(sets['luby'].sum()):,} of {n:,} vertices, by "
        f"index (right) {int(sets['lexicographic'].sum()):,}.",
    )


def _drawn(points: Any, A: Any, method: str, members: Any) -> Svg:
    picture = Svg(pictures.SIDE, pictures.SIDE + pictures.LEGEND, f"independent set, {method}")
    at = pictures.placed(points)
    u, v = pictures.upper_edges(A)
    picture.segments(at[u], at[v], color=FAINT, width=0.6, opacity=0.6)
    picture.dots(at[~members], color=FAINT, radius=1.3)
    picture.dots(at[members], color=MAIN if method == "luby" else SECOND, radius=3.2)
    words = f"{method}: {int(members.sum()):,} members"
    picture.text(pictures.MARGIN, pictures.SIDE + 18, words, color=INK)
    return picture
