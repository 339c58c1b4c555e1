"""Edges of which no two share an end.

    weighted_matching     a heavy one: greedy, locally dominant, suitor, streaming, random, exact
    streaming_matching    the same from a stream of edges that need not fit in memory
    upper_bound           how heavy any matching can be at most, proved by a dual solution

    is_matching           do these mates belong together?
    is_maximal_matching   ... and no edge could be added?
    is_locally_dominant   ... and is it the greedy matching?

``method="auto"`` of `weighted_matching` is the one to begin with.  All methods but three return
the same edges, those of the greedy matching, which lacks a few per cent of the best; ``"exact"``
shows how many on small graphs, `Matching.quality` a bound on all.
"""

from matchwood.matching.result import Matching
from matchwood.matching.weighted import weighted_matching

__all__ = ["Matching", "weighted_matching"]
