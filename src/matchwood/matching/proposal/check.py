"""Is this a maximal matching?  Decided from the definition, by passes over vertices and entries."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from matchwood.arguments import flag
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.matching.methods import checked_mates
from matchwood.primitives.wide_sums import half_of


def check_maximal_matching(A: Any, answer: Any, *, weighted: bool = False) -> None:
    """Raise `CheckFailed` unless `answer` is a matching of `A` to which no edge can be added.

    Parameters
    ----------
    A : as given to `maximal_matching`
    answer : Matching, or mate
        Of a `Matching` the weight and the counts of its rounds are checked as well.
    weighted : bool
        As given to `maximal_matching`.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.matching.proposal.check import check_maximal_matching
    >>> A = matchwood.generators.path(4)
    >>> check_maximal_matching(A, [-1, 2, 1, -1])
    >>> check_maximal_matching(A, [1, 0, -1, -1])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: maximal matching: edge (2, 3) can be added
    """
    caller = "check_maximal_matching"
    flag(caller, "weighted", weighted)
    G = csr.as_graph(A, caller)
    view = G.undirected_weights(caller) if weighted else G.undirected_pattern()
    mate, rows, used = checked_mates(view, answer, caller, "maximal matching")
    free = mate < 0
    addable = free[rows] & free[view.indices]
    if bool(addable.any()):
        e = int(addable.argmax())
        raise CheckFailed(
            f"maximal matching: edge ({int(rows[e])}, {int(view.indices[e])}) can be added"
        )
    if hasattr(answer, "mate"):
        weight = half_of(view.data[used]) if weighted else used.size / 2
        _check_numbers(answer, weight, int(used.size))


def _check_numbers(answer: Any, weight: float, matched: int) -> None:
    if not math.isclose(answer.weight, weight, rel_tol=1e-12):
        raise CheckFailed(f"maximal matching: the weight is {weight}, not {answer.weight}")
    counts = answer.matched_by_round
    if counts is None:
        return
    counts = list(counts)
    falls = any(a > b for a, b in pairwise([0, *counts]))
    if falls or len(counts) != answer.rounds or (counts[-1] if counts else 0) != matched:
        raise CheckFailed(
            f"maximal matching: {matched} vertices are matched after {answer.rounds} rounds, "
            f"but matched_by_round is {counts}"
        )
