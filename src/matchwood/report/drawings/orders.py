"""Orders in the demo: the call of reverse Cuthill-McKee, and the pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import matchwood
from matchwood.report.drawings import pictures
from matchwood.report.drawings.sketches import Sketch


@dataclass(frozen=True)
class Order:
    """The permutation, as an answer that the demo can compare."""

    perm: Any


def ours(G: Any, threads: int | None) -> Order:
    """The call that is timed."""
    return Order(matchwood.reverse_cuthill_mckee(G, threads=threads))


def sketch(n: int = 3000) -> Sketch:
    """A triangulation numbered at random, before and after."""
    A = matchwood.generators.delaunay(n, rng=4)
    shuffled = matchwood.permute(A, np.random.default_rng(4).permutation(n))
    found = matchwood.rcm_ordering(shuffled)
    drawings = (
        pictures.spy(shuffled, title="in the order as given"),
        pictures.spy(matchwood.permute(shuffled, found), title="reverse Cuthill-McKee"),
    )
    return Sketch(
        drawings,
        f"The matrix of a triangulation of {n:,} points, numbered at random (left) and by reverse "
        f"Cuthill-McKee (right): the bandwidth falls from {found.before.bandwidth:,} to "
        f"{found.after.bandwidth:,}, the profile from {found.before.profile:,} to "
        f"{found.after.profile:,}.",
    )


def rabbit_sketch(n: int = 3000) -> Sketch:
    """The same triangulation by rabbit order: communities within communities."""
    A = matchwood.generators.delaunay(n, rng=4)
    shuffled = matchwood.permute(A, np.random.default_rng(4).permutation(n))
    found = matchwood.locality_ordering(shuffled, "rabbit")
    gaps = A.nnz - n
    before, after = found.before.log_gap / gaps, found.after.log_gap / gaps
    return Sketch(
        (
            pictures.spy(shuffled, title="in the order as given"),
            pictures.spy(matchwood.permute(shuffled, found.perm), title="rabbit order"),
        ),
        f"The matrix of a triangulation of {n:,} points, numbered at random (left) and by rabbit "
        f"order (right): communities are squares on the diagonal, with smaller ones inside. From "
        f"one neighbour of a vertex to the next it is {before:.1f} bits in the one order, "
        f"{after:.1f} in the other.",
    )
