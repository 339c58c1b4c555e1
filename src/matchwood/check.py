"""Is this answer right?  Every problem's check, one line each.

A check decides from the definition of a problem, without solving it, in near-linear time.  It
returns None when the answer is right and raises `CheckFailed`, naming what is wrong where, when
it is not.  What cannot be an answer at all, floats or text where vertices are numbered, is a
TypeError.  The functions named is_... say True or False instead of None or `CheckFailed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchwood._lazy import attach as _attach

_HOMES = {
    "check_bfs": "matchwood.traversal.breadth_first.check",  # levels and parents
    "is_bfs": "matchwood.traversal.breadth_first.check",  # yes or no
    "check_connected_components": "matchwood.components.connected.check",  # labels of components
    "is_connected_components": "matchwood.components.connected.check",  # yes or no
    "check_strongly_connected_components": "matchwood.components.strong.check",  # of strong ones
    "is_strongly_connected_components": "matchwood.components.strong.check",  # yes or no
    "check_condensation": "matchwood.components.strong.quotient.check",  # graph of components
    "is_condensation": "matchwood.components.strong.quotient.check",  # yes or no
    "check_maximal_independent_set": "matchwood.independent.maximal.check",  # members of the set
    "is_maximal_independent_set": "matchwood.independent.maximal.check",  # yes or no
    "check_spanning_forest": "matchwood.spanning.forest.check",  # spans, no circle, lightest
    "is_spanning_forest": "matchwood.spanning.forest.check",  # yes or no
    "check_matching": "matchwood.matching.check",  # mates and their weight
    "check_maximal_matching": "matchwood.matching.proposal.check",  # no edge could be added
    "check_locally_dominant": "matchwood.matching.check",  # the greedy matching
    "check_bound": "matchwood.matching.bound.check",  # a proof that no matching is heavier
    "check_coarsening": "matchwood.matching.coarsening.check",  # merged vertices and edges
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
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
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
    from matchwood.components.strong.quotient.check import (
        check_condensation as check_condensation,
    )
    from matchwood.components.strong.quotient.check import is_condensation as is_condensation
    from matchwood.factors.check import check_factor as check_factor
    from matchwood.factors.check import check_maximal_factor as check_maximal_factor
    from matchwood.factors.check import is_factor as is_factor
    from matchwood.factors.check import is_maximal_factor as is_maximal_factor
    from matchwood.forests.check import check_linear_forest as check_linear_forest
    from matchwood.independent.maximal.check import (
        check_maximal_independent_set as check_maximal_independent_set,
    )
    from matchwood.independent.maximal.check import (
        is_maximal_independent_set as is_maximal_independent_set,
    )
    from matchwood.krylov.check import check_solution as check_solution
    from matchwood.matching.bound.check import check_bound as check_bound
    from matchwood.matching.check import check_locally_dominant as check_locally_dominant
    from matchwood.matching.check import check_matching as check_matching
    from matchwood.matching.check import is_locally_dominant as is_locally_dominant
    from matchwood.matching.check import is_matching as is_matching
    from matchwood.matching.check import is_maximal_matching as is_maximal_matching
    from matchwood.matching.coarsening.check import check_coarsening as check_coarsening
    from matchwood.matching.proposal.check import (
        check_maximal_matching as check_maximal_matching,
    )
    from matchwood.ordering.measure.check import check_measures as check_measures
    from matchwood.ordering.permutation.check import check_permuted as check_permuted
    from matchwood.ordering.rcm.check import check_rcm_order as check_rcm_order
    from matchwood.ordering.rcm.check import is_rcm_order as is_rcm_order
    from matchwood.preconditioners.check import check_preconditioner as check_preconditioner
    from matchwood.spanning.forest.check import check_spanning_forest as check_spanning_forest
    from matchwood.spanning.forest.check import is_spanning_forest as is_spanning_forest
    from matchwood.traversal.breadth_first.check import check_bfs as check_bfs
    from matchwood.traversal.breadth_first.check import is_bfs as is_bfs
    from matchwood.tridiagonal.check import (
        check_tridiagonal_solution as check_tridiagonal_solution,
    )
else:  # hidden from type checkers, for which it would make every name exist
    __getattr__, __dir__ = _attach(__name__, _HOMES)
