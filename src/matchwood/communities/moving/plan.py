"""The numbers of a run that all engines share."""

from __future__ import annotations

from typing import NamedTuple

MOST_ROUNDS = 32  # on a level, where the caller sets no limit
ROUNDS_BACK = 4  # on each level on the way back from the coarsest graph
REFINEMENT = 1 << 32  # the number of the round in which parts are formed: no other has it


class Plan(NamedTuple):
    """Resolution and seed of a call."""

    resolution: float
    seed: int

    def enough(self, n: int) -> int:
        """A round in which no more vertices than this move is the last one of its level."""
        return 0
