"""Matchings: sets of edges, no two of which share an end.

    weighted_matching     a heavy one: greedy, locally dominant, suitor, augmented, streaming, exact
    maximum_matching      one with as many edges as there can be, whatever their weights
    maximal_matching      one to which no edge can be added: random proposals, random order
    streaming_matching    a heavy one from a stream of edges that need not fit in memory
    matching_bound        how heavy any matching can be at most, proved by a dual solution
    coarsen               the graph in which matched vertices are one
    coarsening_hierarchy  the same, repeated: a hierarchy of ever coarser graphs

    is_matching           is this array of mates a matching?
    is_maximal_matching   ... and can no edge be added?
    is_locally_dominant   ... and is it the greedy matching?

``method="auto"`` of `weighted_matching` is the one to begin with.  Its methods "greedy",
"dominant" and "suitor" return the same edges, those of the greedy matching.  It weighs 0.82 to 0.94
of the best one on most graphs.  "augmented" wins most of the rest, in two to six times the time.
"exact" finds the best one on small graphs; `Matching.quality` is a lower bound on weight / best
weight for any graph.
"""

from matchwood._lazy import old_names
from matchwood.matching.bound import Bound, matching_bound
from matchwood.matching.cardinality import maximum_matching
from matchwood.matching.check import is_locally_dominant, is_matching, is_maximal_matching
from matchwood.matching.coarsening import Coarsening, Hierarchy, coarsen, coarsening_hierarchy
from matchwood.matching.maximal import maximal_matching
from matchwood.matching.result import Matching
from matchwood.matching.weighted import streaming_matching, weighted_matching

__all__ = [
    "Bound",
    "Coarsening",
    "Hierarchy",
    "Matching",
    "coarsen",
    "coarsening_hierarchy",
    "is_locally_dominant",
    "is_matching",
    "is_maximal_matching",
    "matching_bound",
    "maximal_matching",
    "maximum_matching",
    "streaming_matching",
    "weighted_matching",
]

__getattr__ = old_names(
    __name__, {"multilevel": "coarsening_hierarchy", "upper_bound": "matching_bound"}
)
