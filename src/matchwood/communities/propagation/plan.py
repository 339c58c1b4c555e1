"""The numbers of a run that all engines share."""

from __future__ import annotations

from typing import NamedTuple

SPLIT_ROUNDS = 20  # rounds of sub-rounds; after them a vertex moves only if it is first


class Plan(NamedTuple):
    """What a run is asked for."""

    gamma: float  # how much the size of a label counts against it
    max_rounds: int
    tol: float  # a round that moves at most this part of the vertices is the last
    seed: int

    def enough(self, n: int) -> int:
        """A round that moves no more vertices than this is the last."""
        return int(self.tol * n)
