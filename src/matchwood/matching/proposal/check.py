"""Is this a maximal matching?  Decided from the definition, by passes over vertices and entries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood import csr, engines
from matchwood.errors import CheckFailed
from matchwood.matching import mates


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
    G = csr.as_graph(A, caller).on("cpu")
    view = G.undirected_weights(caller) if weighted else G.undirected_pattern()
    n = view.n
    mate = np.asarray(engines.moved(getattr(answer, "mate", answer), "cpu"), np.int64)
    wrong = mates.fault(mate, n)
    if wrong:
        raise CheckFailed(f"maximal matching: {wrong}")
    ends = np.flatnonzero(mate >= 0)
    rows, columns = np.repeat(np.arange(n), np.diff(view.indptr)), view.indices
    used = mate[rows] == columns
    strange = np.setdiff1d(ends, rows[used])
    if strange.size:
        v = int(strange[0])
        raise CheckFailed(f"maximal matching: {v} and {mate[v]} are matched, but not joined")
    addable = np.flatnonzero((mate[rows] < 0) & (mate[columns] < 0))
    if addable.size:
        e = addable[0]
        raise CheckFailed(f"maximal matching: edge ({rows[e]}, {columns[e]}) can be added")
    if hasattr(answer, "mate"):
        weight = float(view.data[used].sum(dtype=np.float64)) / 2 if weighted else ends.size / 2
        _check_numbers(answer, weight, ends.size)


def _check_numbers(answer: Any, weight: float, matched: int) -> None:
    if not math.isclose(answer.weight, weight, rel_tol=1e-12):
        raise CheckFailed(f"maximal matching: the weight is {weight}, not {answer.weight}")
    counts = answer.matched_by_round
    if counts is None:
        return
    if len(counts) != answer.rounds or (counts[-1] if counts else 0) != matched:
        raise CheckFailed(
            f"maximal matching: {matched} vertices are matched after {answer.rounds} rounds, "
            f"but matched_by_round is {counts}"
        )
