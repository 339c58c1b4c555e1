"""Is this answer right?  Every problem's check, one line each.

A check decides from the definition of a problem, without solving it, in near-linear time.  It
returns None when the answer is right and raises `CheckFailed`, naming what is wrong where, when
it is not.  Where only the steps of a problem decide, they are replayed: always, or with `replay`.
What cannot be an answer at all, floats or text where vertices are numbered, is a TypeError.  The
functions named is_... say True or False instead of None or `CheckFailed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchwood._lazy import attach as _attach

_HOMES = {
    "check_bfs": "matchwood.traversal.breadth_first.check",  # levels and parents
    "is_bfs": "matchwood.traversal.breadth_first.check",  # yes or no
    "check_forest_roots": "matchwood.traversal.pointer_jumping.check",  # of every vertex
    "is_forest_roots": "matchwood.traversal.pointer_jumping.check",  # yes or no
    "check_connected_components": "matchwood.components.connected.check",  # labels of components
    "is_connected_components": "matchwood.components.connected.check",  # yes or no
    "check_strongly_connected_components": "matchwood.components.strong.check",  # of strong ones
    "is_strongly_connected_components": "matchwood.components.strong.check",  # yes or no
    "check_condensation": "matchwood.components.strong.condensation.check",  # graph of components
    "is_condensation": "matchwood.components.strong.condensation.check",  # yes or no
    "check_communities": "matchwood.communities.louvain_leiden.check",  # connected, settled
    "is_communities": "matchwood.communities.louvain_leiden.check",  # yes or no
    "check_label_propagation": "matchwood.communities.propagation.check",  # heaviest labels
    "is_label_propagation": "matchwood.communities.propagation.check",  # yes or no
    "check_modularity": "matchwood.communities.quality.check",  # how good communities are
    "check_maximal_independent_set": "matchwood.independent.check",  # members of the set
    "is_maximal_independent_set": "matchwood.independent.check",  # yes or no
    "check_spanning_forest": "matchwood.spanning.forest.check",  # spans, no cycle, lightest
    "is_spanning_forest": "matchwood.spanning.forest.check",  # yes or no
    "check_matching": "matchwood.matching.check",  # mates and their weight
    "check_maximal_matching": "matchwood.matching.proposal.check",  # no edge could be added
    "check_maximum_matching": "matchwood.matching.cardinality.check",  # proved to be a largest
    "check_augmented": "matchwood.matching.augmented.check",  # no short exchange gains
    "check_locally_dominant": "matchwood.matching.check",  # the greedy matching
    "check_bound": "matchwood.matching.bound.check",  # a proof that no matching is heavier
    "check_coarsening": "matchwood.matching.coarsening.check",  # merged vertices and edges
    "check_hierarchy": "matchwood.matching.coarsening.check",  # level by level
    "is_matching": "matchwood.matching.check",  # the same as answers yes or no
    "is_maximal_matching": "matchwood.matching.check",
    "is_locally_dominant": "matchwood.matching.check",
    "check_factor": "matchwood.factors.check",  # at most n neighbours each, mutual
    "is_factor": "matchwood.factors.check",  # yes or no
    "is_maximal_factor": "matchwood.factors.check",
    "check_maximal_factor": "matchwood.factors.check",  # no edge could be added
    "check_linear_forest": "matchwood.forests.check",  # disjoint paths, cycles cut at their weakest
    "check_tridiagonal_solution": "matchwood.tridiagonal.check",  # plain or with 2x2 blocks
    "check_preconditioner": "matchwood.preconditioners.check",  # linear, and what it says it is
    "check_solution": "matchwood.krylov.check",  # of a linear system, by its residual
    "check_rcm_order": "matchwood.ordering.rcm.check",  # the order of Cuthill and McKee
    "is_rcm_order": "matchwood.ordering.rcm.check",  # yes or no
    "check_measures": "matchwood.ordering.measure.check",  # bandwidth, profile, wavefronts
    "check_permuted": "matchwood.ordering.permutation.check",  # a matrix in another order
    "check_gaps": "matchwood.ordering.gap.check",  # how far apart neighbours lie
    "check_rabbit_order": "matchwood.ordering.rabbit.check",  # the tree of joins and the order
    "is_rabbit_order": "matchwood.ordering.rabbit.check",  # yes or no
    "check_shingle_order": "matchwood.ordering.shingle.check",  # keys ascend
    "check_layered_order": "matchwood.ordering.llp.check",  # layers, propagated anew
    "check_degree_order": "matchwood.ordering.degree.check",  # degrees descend
    "is_degree_order": "matchwood.ordering.degree.check",  # yes or no
    "check_hub_order": "matchwood.ordering.degree.check",  # hubs come first
    "check_refinement": "matchwood.ordering.refine.check",  # its swaps, replayed
    "check_pagerank": "matchwood.ranking.check",  # by the first step and one more
    "is_pagerank": "matchwood.ranking.check",  # yes or no
    "check_capture": "matchwood.applications.sensing.capture.check",  # packets of a file
    "check_anonymized": "matchwood.applications.sensing.anonymity.check",  # prefixes, one to one
    "check_archive": "matchwood.applications.sensing.archive.check",  # matrices in a file
    "check_traffic_matrix": "matchwood.applications.sensing.traffic.check",  # packets counted
    "check_statistics": "matchwood.applications.sensing.statistics.check",  # the nine quantities
    "check_histograms": "matchwood.applications.sensing.statistics.check",  # of links and addresses
    "check_sliding": "matchwood.applications.sensing.sliding.check",  # after every step
    "check_sensing": "matchwood.applications.sensing.stream.check",  # windows, sum, blocks
    "check_fuzzy_join": "matchwood.applications.join.check",  # none missing, false or misjudged
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from matchwood.applications.join.check import check_fuzzy_join as check_fuzzy_join
    from matchwood.applications.sensing.anonymity.check import check_anonymized as check_anonymized
    from matchwood.applications.sensing.archive.check import check_archive as check_archive
    from matchwood.applications.sensing.capture.check import check_capture as check_capture
    from matchwood.applications.sensing.sliding.check import check_sliding as check_sliding
    from matchwood.applications.sensing.statistics.check import check_histograms as check_histograms
    from matchwood.applications.sensing.statistics.check import check_statistics as check_statistics
    from matchwood.applications.sensing.stream.check import check_sensing as check_sensing
    from matchwood.applications.sensing.traffic.check import (
        check_traffic_matrix as check_traffic_matrix,
    )
    from matchwood.communities.louvain_leiden.check import check_communities as check_communities
    from matchwood.communities.louvain_leiden.check import is_communities as is_communities
    from matchwood.communities.propagation.check import (
        check_label_propagation as check_label_propagation,
    )
    from matchwood.communities.propagation.check import (
        is_label_propagation as is_label_propagation,
    )
    from matchwood.communities.quality.check import check_modularity as check_modularity
    from matchwood.components.connected.check import (
        check_connected_components as check_connected_components,
    )
    from matchwood.components.connected.check import (
        is_connected_components as is_connected_components,
    )
    from matchwood.components.strong.check import (
        check_strongly_connected_components as check_strongly_connected_components,
    )
    from matchwood.components.strong.check import (
        is_strongly_connected_components as is_strongly_connected_components,
    )
    from matchwood.components.strong.condensation.check import (
        check_condensation as check_condensation,
    )
    from matchwood.components.strong.condensation.check import is_condensation as is_condensation
    from matchwood.factors.check import check_factor as check_factor
    from matchwood.factors.check import check_maximal_factor as check_maximal_factor
    from matchwood.factors.check import is_factor as is_factor
    from matchwood.factors.check import is_maximal_factor as is_maximal_factor
    from matchwood.forests.check import check_linear_forest as check_linear_forest
    from matchwood.independent.check import (
        check_maximal_independent_set as check_maximal_independent_set,
    )
    from matchwood.independent.check import (
        is_maximal_independent_set as is_maximal_independent_set,
    )
    from matchwood.krylov.check import check_solution as check_solution
    from matchwood.matching.augmented.check import check_augmented as check_augmented
    from matchwood.matching.bound.check import check_bound as check_bound
    from matchwood.matching.cardinality.check import (
        check_maximum_matching as check_maximum_matching,
    )
    from matchwood.matching.check import check_locally_dominant as check_locally_dominant
    from matchwood.matching.check import check_matching as check_matching
    from matchwood.matching.check import is_locally_dominant as is_locally_dominant
    from matchwood.matching.check import is_matching as is_matching
    from matchwood.matching.check import is_maximal_matching as is_maximal_matching
    from matchwood.matching.coarsening.check import check_coarsening as check_coarsening
    from matchwood.matching.coarsening.check import check_hierarchy as check_hierarchy
    from matchwood.matching.proposal.check import (
        check_maximal_matching as check_maximal_matching,
    )
    from matchwood.ordering.degree.check import check_degree_order as check_degree_order
    from matchwood.ordering.degree.check import check_hub_order as check_hub_order
    from matchwood.ordering.degree.check import is_degree_order as is_degree_order
    from matchwood.ordering.gap.check import check_gaps as check_gaps
    from matchwood.ordering.llp.check import check_layered_order as check_layered_order
    from matchwood.ordering.measure.check import check_measures as check_measures
    from matchwood.ordering.permutation.check import check_permuted as check_permuted
    from matchwood.ordering.rabbit.check import check_rabbit_order as check_rabbit_order
    from matchwood.ordering.rabbit.check import is_rabbit_order as is_rabbit_order
    from matchwood.ordering.rcm.check import check_rcm_order as check_rcm_order
    from matchwood.ordering.rcm.check import is_rcm_order as is_rcm_order
    from matchwood.ordering.refine.check import check_refinement as check_refinement
    from matchwood.ordering.shingle.check import check_shingle_order as check_shingle_order
    from matchwood.preconditioners.check import check_preconditioner as check_preconditioner
    from matchwood.ranking.check import check_pagerank as check_pagerank
    from matchwood.ranking.check import is_pagerank as is_pagerank
    from matchwood.spanning.forest.check import check_spanning_forest as check_spanning_forest
    from matchwood.spanning.forest.check import is_spanning_forest as is_spanning_forest
    from matchwood.traversal.breadth_first.check import check_bfs as check_bfs
    from matchwood.traversal.breadth_first.check import is_bfs as is_bfs
    from matchwood.traversal.pointer_jumping.check import (
        check_forest_roots as check_forest_roots,
    )
    from matchwood.traversal.pointer_jumping.check import is_forest_roots as is_forest_roots
    from matchwood.tridiagonal.check import (
        check_tridiagonal_solution as check_tridiagonal_solution,
    )
else:  # hidden from type checkers, for which it would make every name exist
    __getattr__, __dir__ = _attach(__name__, _HOMES)
