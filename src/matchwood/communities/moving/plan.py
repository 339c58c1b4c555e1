"""The numbers of a run that all engines share."""

from __future__ import annotations

from typing import NamedTuple

MOST_ROUNDS = 32  # on a level, where the caller sets no limit
ROUNDS_BACK = 4  # on each level on the way back from the coarsest graph
REFINEMENT = 1 << 32  # the number of the round in which parts are formed: no other has it


# A round that moves at most one in so many vertices is the last one of its level; measured in
# bench/communities/limits.py.
FEW_MOVERS = 2  # of Louvain: the way back mends what is left
FEW_MOVERS_LEIDEN = 5  # of Leiden, whose coarser graphs are made of parts of the communities
FEW_MOVERS_BACK = 256  # on the way back: there is no coarser level that would mend it


# Levels that stall: see levels.py.  On 70 real graphs no more than 3 did in a row, but for one
# whose weights are graded.
STALL = 8  # one in so many vertices, or more, is to become part of another on a level
MOST_STALLS = 4  # levels in a row
CHAIN_DOUBLINGS = 5  # 32 joins; trees of joins had up to 12 where weights do not grow along paths


class Plan(NamedTuple):
    """Resolution and seed of a call."""

    resolution: float
    seed: int


class Limit(NamedTuple):
    """When moving on a level ends: after so many rounds, or one that moves few of the vertices."""

    rounds: int
    few: int

    def enough(self, tied: int) -> int:
        """A round that moves no more than this is the last; `tied` vertices have neighbours."""
        return tied // self.few
