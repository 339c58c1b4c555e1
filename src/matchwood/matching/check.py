"""Is this a matching, is it maximal, is it the greedy one?  Decided in passes over the edges.

A matching is locally dominant when every edge outside it shares an end with an edge inside that
comes before it in the order of primitives/edge_order.  There is exactly one such matching, the
greedy one: the first of all edges is in it, then the first of those that share no end with it, and
so on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood import answers, calls, engines
from matchwood.arguments import flag, one_of, seed
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.matching.methods import METHODS, check_bound, checked_mates, origin_of, rows_of
from matchwood.matching.proposal.check import check_maximal_matching
from matchwood.primitives.extremes import extremes
from matchwood.primitives.hashing import hash2
from matchwood.primitives.wide_sums import half_of

Array = np.ndarray[Any, Any]
ROUNDING = 1e-9  # error of a sum of weights, relative to the sum


def check_matching(A: Any, answer: Any, *, weighted: bool | None = None) -> None:
    """Raise `CheckFailed` unless `answer` is a matching of the graph of `A`.

    Parameters
    ----------
    A : as given to `weighted_matching`
    answer : Matching, or mate
        Of a `Matching` the weight is checked as well, and that it does not exceed its bound,
        if that is known.  A `DistributedVector` of mates where `A` is a DistributedGraph: then
        all ranks call this, and all raise the same error.
    weighted : bool or None
        True: entries that are zero are no edges.  None: as the `Matching` was found; False for
        an array.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.matching.check import check_matching
    >>> A = matchwood.generators.path(3)
    >>> check_matching(A, [1, 0, -1])
    >>> check_matching(A, [1, 2, 1])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: matching: mate[0] is 1, but mate[1] is 2
    """
    weighted = calls.agreed(A, lambda: _asked_or_known("check_matching", weighted, answer))
    if calls.is_distributed(A):
        calls.enter(A, "check_matching").load_check(__package__).check_matching(
            A, answer, weighted, ROUNDING
        )
        return
    view = _view(A, weighted, "check_matching")
    _mate, own = _mates(view, answer, "check_matching")
    if hasattr(answer, "mate"):
        weight = half_of(own)
        said = answers.number("check_matching", "weight", answer.weight)
        if not math.isclose(said, weight, rel_tol=ROUNDING):
            raise CheckFailed(f"matching: the edges weigh {weight}, not {answer.weight}")
        bound = vars(answer).get("bound", origin_of(answer).bound)
        if bound is not None:
            heaviest = float(extremes(view.data)[1]) if view.nnz else 0.0
            bound = answers.number("check_matching", "bound", bound)
            check_bound(weight, heaviest, bound, ROUNDING)


def check_locally_dominant(A: Any, answer: Any, *, rng: Any = 0, ties: str = "hash") -> None:
    """Raise `CheckFailed` unless `answer` is the greedy matching of `A`.

    Parameters
    ----------
    A : as given to `weighted_matching`
    answer : Matching, or mate
        Where `A` is a DistributedGraph, all ranks call this, and all raise the same error.
    rng, ties : as given to `weighted_matching`
        A `Generator` gives another number now; pass the seed that it gave to the method.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from matchwood.matching.check import check_locally_dominant
    >>> A = sp.csr_array([[0, 4, 0, 0], [4, 0, 5, 0], [0, 5, 0, 4], [0, 0, 4, 0]])
    >>> check_locally_dominant(A, [-1, 2, 1, -1])
    >>> check_locally_dominant(A, [1, 0, 3, 2])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: matching: edge (1, 2) of weight 5.0 comes before those of its ends
    """
    caller = "check_locally_dominant"

    def checked() -> int:
        one_of(caller, "ties", ties, ("hash", "index"))
        return seed(caller, rng)

    number = calls.agreed(A, checked)
    if calls.is_distributed(A):
        calls.enter(A, caller).load_check(__package__).check_locally_dominant(
            A, answer, number, ties
        )
        return
    view = _view(A, True, caller)
    mate, own = _mates(view, answer, caller)
    xp = engines.xp(view.indices)
    u, v = rows_of(view), view.indices.astype(np.int64)
    w = view.data.astype(np.float64)
    # each edge outside the matching once, and only those that no heavier edge blocks
    outside = xp.flatnonzero((u < v) & (mate[u] != v) & (w >= own[u]) & (w >= own[v]))
    u, v, w = u[outside], v[outside], w[outside]
    blocked = xp.zeros(u.size, bool)
    for end in (u, v):
        tied = xp.flatnonzero(own[end] == w)  # own edge of the same weight: the order decides
        first = comes_before(end[tied], mate[end[tied]], u[tied], v[tied], number, ties == "hash")
        blocked[tied[first]] = True
    if not bool(blocked.all()):
        k = int(blocked.argmin())
        raise CheckFailed(
            f"matching: edge ({int(u[k])}, {int(v[k])}) of weight {float(w[k])} comes before "
            "those of its ends"
        )


def is_matching(A: Any, answer: Any, *, weighted: bool | None = None) -> bool:
    """Whether `answer` is a matching of `A`; `check_matching` says at which vertices it is not.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.matching import is_matching
    >>> is_matching(matchwood.generators.path(3), [1, 2, 1])
    False
    """
    return answers.holds(check_matching, A, answer, weighted=weighted)


def is_maximal_matching(A: Any, answer: Any, *, weighted: bool | None = None) -> bool:
    """Whether `answer` is a matching of `A` to which no edge can be added.

    `check_maximal_matching` says which edge could be, or at which vertices it is no matching.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.matching import is_maximal_matching
    >>> is_maximal_matching(matchwood.generators.path(4), [-1, 2, 1, -1])
    True
    >>> is_maximal_matching(matchwood.generators.path(4), [1, 0, -1, -1])
    False
    """
    weighted = _asked_or_known("is_maximal_matching", weighted, answer)
    mate = getattr(answer, "mate", answer)
    return answers.holds(check_maximal_matching, A, mate, weighted=weighted)


def is_locally_dominant(A: Any, answer: Any, *, rng: Any = 0, ties: str = "hash") -> bool:
    """Whether `answer` is the greedy matching; `check_locally_dominant` names the edge that is not.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.matching import is_locally_dominant, weighted_matching
    >>> A = matchwood.generators.path(9)
    >>> is_locally_dominant(A, weighted_matching(A, method="suitor"))
    True
    """
    return answers.holds(check_locally_dominant, A, answer, rng=rng, ties=ties)


def _asked_or_known(caller: str, weighted: Any, answer: Any) -> bool:
    return _is_weighted(answer) if weighted is None else flag(caller, "weighted", weighted)


def _is_weighted(answer: Any) -> bool:
    known = origin_of(answer).weighted
    return getattr(answer, "method", "") in METHODS if known is None else bool(known)


def _view(A: Any, weighted: bool, caller: str) -> csr.View:
    """The edges, where `A` lives."""
    G = csr.as_graph(A, caller)
    if weighted:
        return G.undirected_weights(caller)
    view = G.undirected_pattern()
    return view._replace(data=engines.xp(view.indices).ones(view.nnz))


def _mates(view: csr.View, answer: Any, caller: str) -> tuple[Array, Array]:
    """The mates, checked, and the weight of each vertex's own edge (0 for free vertices)."""
    mate, tails, used = checked_mates(view, answer, caller, "matching")
    own = engines.xp(mate).zeros(view.n)
    own[tails[used]] = view.data[used]
    return mate, own


def comes_before(u1: Array, v1: Array, u2: Array, v2: Array, number: int, by_hash: bool) -> Array:
    """For edges of equal weight: {u1, v1} comes before {u2, v2}."""
    xp = engines.xp(u1)
    low1, high1 = xp.minimum(u1, v1), xp.maximum(u1, v1)
    low2, high2 = xp.minimum(u2, v2), xp.maximum(u2, v2)
    by_ends: Array = (low1 < low2) | ((low1 == low2) & (high1 < high2))
    if not by_hash or u1.size == 0:
        return by_ends
    engine = "gpu" if engines.location(u1) == "gpu" else "reference"
    h1 = hash2(low1, high1, number, engine=engine)
    h2 = hash2(low2, high2, number, engine=engine)
    result: Array = (h1 > h2) | ((h1 == h2) & by_ends)
    return result
