"""Is this matching as heavy as the greedy one, and does no short exchange make it heavier?

Gains are integers, as the engines compare them (__init__.py).  Arms are sorted by gain; of each
vertex the best arm counts, and the best one to another unit.  A cycle is two edges whose
other ends are mates: for every edge that leaves a unit, the second one is looked up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import answers
from matchwood.arguments import one_of
from matchwood.arguments import seed as seed_of
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.matching.augmented import LEAST_GAIN, rounds_asked, two_factors
from matchwood.matching.check import ROUNDING, check_matching
from matchwood.matching.methods import checked_mates, load
from matchwood.primitives.wide_sums import half_of

Array = np.ndarray[Any, Any]


class Matched(NamedTuple):
    """A matching with integers for weights."""

    n: int
    u: Array  # ends of the entries
    x: Array
    w: Array  # integers
    mate: Array
    own: Array  # the edge at each vertex, 0 for free ones
    unit: Array  # the smaller end of it


def check_augmented(
    A: Any, answer: Any, *, rng: Any = 0, ties: str = "hash", rounds: int | None = None
) -> None:
    """Raise `CheckFailed` unless `answer` is what ``method="augmented"`` promises.

    A matching that weighs no less than the greedy one; and unless it used up its rounds, one
    that no exchange of an edge for one or two arms, no cycle of four and no free edge makes
    heavier.  An array of mates is taken as one that did not use them up.

    Parameters
    ----------
    A : as given to `weighted_matching`
    answer : Matching, or mate
    rng, ties, rounds : as given to `weighted_matching`

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from matchwood.matching.augmented.check import check_augmented
    >>> A = sp.csr_array([[0, 4, 0, 0], [4, 0, 5, 0], [0, 5, 0, 4], [0, 0, 4, 0]])
    >>> check_augmented(A, [1, 0, 3, 2])
    >>> check_augmented(A, [-1, 2, 1, -1])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: matching: the edge (1, 2) can be exchanged for more at its ends
    """
    caller = "check_augmented"
    one_of(caller, "ties", ties, ("hash", "index"))
    seed, most = seed_of(caller, rng), rounds_asked(caller, rounds)
    G = csr.as_graph(A, caller).on("cpu")
    with answers.in_the_name_of(caller):
        check_matching(G, answer, weighted=True)
    view = G.undirected_weights(caller)
    mate, u, used = checked_mates(view, answer, caller, "matching")
    weight = half_of(view.data[used])
    _check_not_lighter(view, weight, seed, ties == "hash")
    if getattr(answer, "rounds", 0) >= most or view.nnz == 0:
        return
    first, second = two_factors(float(view.data.max()))
    w = (view.data.astype(np.float64) * first * second).astype(np.int64)
    own = np.zeros(view.n, np.int64)
    own[u[used]] = w[used]
    vertices = np.arange(view.n)
    unit = np.where(mate >= 0, np.minimum(vertices, mate), vertices)
    found = Matched(view.n, u, view.indices.astype(np.int64), w, mate, own, unit)
    _check_free(found)
    _check_paths(found)
    _check_cycles(found)


def _check_not_lighter(view: Any, weight: float, seed: int, by_hash: bool) -> None:
    least = load("auto", "cpu").match(view, seed, by_hash).weight if view.nnz else 0.0
    if np.isfinite(least) and not weight >= least * (1 - ROUNDING):
        raise CheckFailed(f"matching: the weight {weight} is below that of the greedy one, {least}")


def _check_free(m: Matched) -> None:
    both = (m.mate[m.u] < 0) & (m.mate[m.x] < 0) & (m.w >= LEAST_GAIN)
    if both.any():
        k = int(both.argmax())
        raise CheckFailed(f"matching: {m.u[k]} and {m.x[k]} are free and joined")


def _check_paths(m: Matched) -> None:
    first, where, second = _two_arms(m)
    u = np.flatnonzero(m.mate > np.arange(m.n))
    v = m.mate[u]
    gain = first[u] + first[v]
    one = (first[u] > 0) & (first[v] > 0) & (where[u] == where[v])  # both want the same unit
    instead = np.maximum(first[u] + second[v], second[u] + first[v])
    gain = np.where(one, instead, gain) - m.own[u]
    if (gain >= LEAST_GAIN).any():
        k = int((gain >= LEAST_GAIN).argmax())
        raise CheckFailed(
            f"matching: the edge ({u[k]}, {v[k]}) can be exchanged for more at its ends"
        )


def _two_arms(m: Matched) -> tuple[Array, Array, Array]:
    """The gain of each vertex's best arm, the unit it leads to, and the best to another unit."""
    value = m.w - m.own[m.x]
    arms = np.flatnonzero((value > 0) & (m.mate[m.u] != m.x))
    u, unit, value = m.u[arms], m.unit[m.x[arms]], value[arms]
    order = np.lexsort((-value, u))
    u, unit, value = u[order], unit[order], value[order]
    first, where, second = np.zeros(m.n, np.int64), np.full(m.n, -1), np.zeros(m.n, np.int64)
    leads = np.flatnonzero(np.r_[True, u[1:] != u[:-1]]) if u.size else np.zeros(0, np.int64)
    first[u[leads]], where[u[leads]] = value[leads], unit[leads]
    others = unit != where[u]
    np.maximum.at(second, u[others], value[others])
    return first, where, second


def _check_cycles(m: Matched) -> None:
    key = m.u * m.n + m.x  # ascending: rows are sorted
    leaves = np.flatnonzero((m.mate[m.u] >= 0) & (m.mate[m.x] >= 0) & (m.mate[m.u] != m.x))
    wanted = m.mate[m.u[leaves]] * m.n + m.mate[m.x[leaves]]
    place = np.minimum(np.searchsorted(key, wanted), max(key.size - 1, 0))
    there = key[place] == wanted
    leaves, place = leaves[there], place[there]
    u, x = m.u[leaves], m.x[leaves]
    gain = m.w[leaves] + m.w[place] - m.own[u] - m.own[x]
    if (gain >= LEAST_GAIN).any():
        k = int((gain >= LEAST_GAIN).argmax())
        ends = f"({u[k]}, {x[k]}) and ({m.mate[u[k]]}, {m.mate[x[k]]})"
        raise CheckFailed(f"matching: {ends} are heavier than the edges that they would replace")
