"""Is this what the method promises?  Each method's own check."""

from __future__ import annotations

from typing import Any

from matchwood.matching.check import check_locally_dominant, check_matching
from matchwood.matching.exact.check import check_exact
from matchwood.matching.proposal.check import check_maximal_matching
from matchwood.matching.random_weighted.check import check_random_weighted
from matchwood.matching.result import Matching
from matchwood.matching.streaming.check import check_streaming

GREEDY = ("greedy", "dominant", "suitor")


def check_as_found(A: Any, found: Matching) -> None:
    """Raise `CheckFailed` unless `found` is a matching of `A`, and what its method promises."""
    check_matching(A, found)
    if found.seed is None:
        return
    if found.method in GREEDY:
        check_locally_dominant(A, found, rng=found.seed, ties=found.ties)
    elif found.method == "exact":
        check_exact(A, found)
    elif found.method == "streaming":
        check_streaming(A, found)
    elif found.method == "random_weighted":
        check_random_weighted(A, found, seed=found.seed, ties=found.ties)
    else:
        check_maximal_matching(A, found, weighted=bool(found.weighted))
