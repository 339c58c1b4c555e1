"""Is this matching the heaviest?  On a small graph by trying all, on others by a proof.

Up to MOST_TRIED vertices all matchings are tried.  For larger graphs certificate.py searches
prices of the vertices that prove it.  Before that come tests whose errors say more: the matching is
lighter than the greedy one, heavier than a bound, or one edge weighs more than the matched edges at
its ends together.

Components that are not bipartite may need prices of odd sets as well.  Those are solved again by
rustworkx, with a proof; where it is not installed, that is an error, as it is for the method.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.matching.bound import matching_bound
from matchwood.matching.check import ROUNDING, check_matching
from matchwood.matching.exact import reference
from matchwood.matching.exact.certificate import prove_heaviest
from matchwood.matching.mates import checked_mates, settled_weight
from matchwood.matching.methods import heavy_matching

MOST_TRIED = 14  # vertices; there are 2^14 sets of them to try


def check_exact(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` is a matching of `A`, and the heaviest.

    `EngineUnavailable` where that cannot be decided without rustworkx.
    """
    check_matching(A, answer, weighted=True)
    G = csr.as_graph(A, "check_exact").on("cpu")
    view = G.undirected_weights("check_exact")
    if view.n <= MOST_TRIED:
        other = reference.match(view, 0, True).weight
    else:
        greedy = heavy_matching(view)
        other = settled_weight("check_exact", view, greedy.mate, greedy.weight)
    if answer.weight < other * (1 - ROUNDING):
        raise CheckFailed(f"matching: the weight is {answer.weight}, but there is one of {other}")
    _check_single_edges(view, answer)
    bound = matching_bound(G, answer).value
    if answer.weight > bound * (1 + ROUNDING):
        raise CheckFailed(f"matching: the weight is {answer.weight}, more than the bound {bound}")
    if view.n > MOST_TRIED:
        mate, *_ = checked_mates(view, answer, "check_exact", "matching")
        prove_heaviest(view, mate)


def _check_single_edges(view: csr.View, answer: Any) -> None:
    _mate, rows, used = checked_mates(view, answer, "check_exact", "matching")
    own = np.zeros(view.n)
    own[rows[used]] = view.data[used]
    unseen = answer.weight * view.n * np.finfo(np.float64).eps  # what a sum of weights may lose
    with np.errstate(over="ignore"):
        gain = view.data > (own[rows] + own[view.indices]) * (1 + ROUNDING) + unseen
    if gain.any():
        k = int(gain.argmax())
        raise CheckFailed(
            f"matching: edge ({rows[k]}, {view.indices[k]}) weighs {view.data[k]}, more than the "
            "edges of its ends together"
        )
