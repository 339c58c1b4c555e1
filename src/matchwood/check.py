"""Is this answer right?  Every problem's check, one line each.

A check decides from the definition of a problem, without solving it, in near-linear time.  It
returns None when the answer is right and raises `CheckFailed`, naming what is wrong where, when
it is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchwood._lazy import attach as _attach

_HOMES = {
    "check_bfs": "matchwood.traversal.breadth_first.check",  # levels and parents
    "check_connected_components": "matchwood.components.connected.check",  # labels of components
    "check_matching": "matchwood.matching.check",  # mates and their weight
    "check_maximal_matching": "matchwood.matching.proposal.check",  # no edge could be added
    "check_locally_dominant": "matchwood.matching.check",  # the greedy matching
    "check_factor": "matchwood.factors.check",  # at most n neighbours each, mutual
    "check_maximal_factor": "matchwood.factors.check",  # no edge could be added
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from matchwood.components.connected.check import (
        check_connected_components as check_connected_components,
    )
    from matchwood.factors.check import check_factor as check_factor
    from matchwood.factors.check import check_maximal_factor as check_maximal_factor
    from matchwood.matching.check import check_locally_dominant as check_locally_dominant
    from matchwood.matching.check import check_matching as check_matching
    from matchwood.matching.proposal.check import (
        check_maximal_matching as check_maximal_matching,
    )
    from matchwood.traversal.breadth_first.check import check_bfs as check_bfs
else:  # hidden from type checkers, for which it would make every name exist
    __getattr__, __dir__ = _attach(__name__, _HOMES)
