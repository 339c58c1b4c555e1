"""What `pagerank` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ranking:
    """Scores of the vertices, and how they were found.

    Attributes
    ----------
    scores : (n,) float array
        Not negative; they add up to 1.
    iterations : int
    error : float
        By how much the last iteration changed the scores, added up over all vertices.
    converged : bool
        The error is less than `tol`.
    seconds : dict
        ``prepare`` and ``iterate``.
    """

    scores: Any
    iterations: int
    error: float
    converged: bool
    seconds: dict[str, float]
