"""Is this an order that was refined?  Its sweeps are replayed with NumPy.

All entries of the graph are one sorted list of keys (row, place).  A row's part of the metric is
the sum over the gaps between its places, so a place p with the places l and r beside it brings

    bend(l, p, r) = L(p - l) + L(r - p) - L(r - l)

where terms of a missing place are left out.  Replacing a by b lowers the row's sum by the bend
around a, less the bend around b after a is removed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.arguments import count, flag, one_of
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.ordering.gap import log_array
from matchwood.ordering.gap.check import expected_gaps
from matchwood.ordering.permutation import as_permutation, inverse
from matchwood.ordering.permutation.check import permutation
from matchwood.ordering.refine import AROUND, METRICS, PARTNERS, chosen_vertices, exact_fraction

PROBLEM = "refinement"
NUMBERS = ("proposed", "kept", "sweeps")
PAIRS = 1 << 16  # swaps that are measured at a time
NONE = -1


def check_refinement(
    A: Any, answer: Any, order: Any = None, *, metric: str = "log_gap", fraction: float = 0.01,
    sweeps: int | None = 1, partners: str = "neighbours", replay: bool = True,
) -> None:  # fmt: skip
    """Raise `CheckFailed` unless `answer` is the refinement of that order.

    `before` and `after` are the metric of the order given and of `perm`, each swap kept lowers it,
    and at most two vertices have moved for each.  Last, the sweeps are replayed: each vertex must
    have proposed the swap that gains most, and the swaps that still gained, in their order, must
    give `perm`.

    Parameters
    ----------
    A, order, metric, fraction, sweeps, partners : as given to `refine_order`
    answer : Refinement
    replay : bool
        False leaves the replay out.  Then the metrics are right and may be what these swaps
        gave, but other swaps may have done so: `fraction`, `sweeps` and `partners` are not used.

    Raises
    ------
    CheckFailed
        If something is wrong; says what.
    TypeError, ValueError
        If the answer has no such numbers, `order` is no permutation, or an option is unknown.

    Notes
    -----
    Runs on the CPU: what lives on a GPU is moved.  The rule has one answer, so a permutation that
    is only as good is wrong.  Swaps are weighed by sums over whole rows, and completed one after
    the other, some 0.3 ms each: nothing else takes as long.  Memory: some 40 bytes for each entry.

    Examples
    --------
    >>> import dataclasses, matchwood
    >>> A = matchwood.generators.grid((4, 4))
    >>> found = matchwood.refine_order(A, fraction=1)
    >>> matchwood.check.check_refinement(A, found, fraction=1)
    >>> matchwood.check.check_refinement(A, dataclasses.replace(found, kept=99), fraction=1)
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: refinement: 99 swaps were kept of ...
    """
    caller = "check_refinement"
    one_of(caller, "metric", metric, METRICS)
    one_of(caller, "partners", partners, PARTNERS)
    flag(caller, "replay", replay)
    part = exact_fraction(caller, fraction)
    limit = None if sweeps is None else count(caller, "sweeps", sweeps, 1)
    for name in ("perm", "before", "after", *NUMBERS):
        if not hasattr(answer, name):
            raise TypeError(f"{caller}: answer must be a Refinement, got {type(answer).__name__}")
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    n = view.n
    given = np.arange(n) if order is None else as_permutation(order, n, caller, "cpu")
    perm = permutation(caller, PROBLEM, answer, n)
    numbers = [answers.whole(caller, name, getattr(answer, name)) for name in NUMBERS]
    for name, vertices in (("before", given), ("after", perm)):
        right = expected_gaps(view, inverse(vertices))[metric]
        value = answers.number(caller, name, getattr(answer, name))
        if type(value) is not type(right) or value != right:
            raise CheckFailed(f"{PROBLEM}: {metric} {name} is {value!r}, but must be {right}")
    _plausible(answer, metric, numbers, int(np.count_nonzero(perm != given)))
    if not replay:
        return
    chosen = chosen_vertices(view, part, None)
    place, *expected = _replayed(view, inverse(given), chosen, metric, partners == "median", limit)
    for name, value, right in zip(NUMBERS, numbers, expected, strict=True):
        if value != right:
            raise CheckFailed(f"{PROBLEM}: {name} is {value}, but must be {right}")
    at = answers.first(place[perm] != np.arange(n))
    if at is not None:
        raise CheckFailed(f"{PROBLEM}: vertex {perm[at]} has place {at}, not {place[perm[at]]}")


def _plausible(answer: Any, metric: str, numbers: list[int], moved: int) -> None:
    """Test what needs no replay, for clearer messages."""
    proposed, kept, sweeps = numbers
    if not 0 <= kept <= proposed:
        raise CheckFailed(f"{PROBLEM}: {kept} swaps were kept of {proposed} proposed")
    if sweeps < 1:
        raise CheckFailed(f"{PROBLEM}: sweeps is {sweeps}, but must be at least 1")
    step = 1 if metric == "linear_gap" else 2.0**-20
    if not answer.before - answer.after >= kept * step:
        raise CheckFailed(
            f"{PROBLEM}: {kept} swaps were kept, but {metric} went from {answer.before} to "
            f"{answer.after}"
        )
    if moved > 2 * kept:
        raise CheckFailed(f"{PROBLEM}: {moved} vertices moved by {kept} swaps")


# The replay


class SortedRows:
    """The places of all neighbours, sorted row by row, and where the vertices are."""

    def __init__(self, view: csr.View, place: Any, metric: str) -> None:
        self.n = view.n
        self.begin = view.indptr.astype(np.int64)
        self.degree = np.diff(self.begin)
        self.indices = view.indices.astype(np.int64)
        self.place = place
        self.length = log_array if metric == "log_gap" else np.asarray
        rows = np.repeat(np.arange(self.n), self.degree)
        self.keys = np.sort(rows * self.n + place[self.indices])

    def neighbours(self, vertices: Any) -> tuple[Any, Any]:
        """The rows of these vertices one after the other, and which one each entry is of."""
        size = self.degree[vertices]
        which = np.repeat(np.arange(size.size), size)
        inside = np.arange(which.size) - np.repeat(np.cumsum(size) - size, size)
        return self.indices[self.begin[vertices][which] + inside], which

    def gains(self, u: Any, v: Any) -> Any:
        """By how much the metric falls when u[i] and v[i] swap, for each i alone."""
        gain = np.zeros(u.size, np.int64)
        for mover, other in ((u, v), (v, u)):
            rows, which = self.neighbours(mover)
            fall = self._falls(rows, self.place[mover][which], self.place[other][which])
            np.add.at(gain, which, fall)
        return gain

    def _falls(self, rows: Any, a: Any, b: Any) -> Any:
        """By how much each row falls when b replaces a."""
        at, to = (np.searchsorted(self.keys, rows * self.n + p) for p in (a, b))
        low, high = self.begin[rows], self.begin[rows + 1]
        both = (to < high) & (self._key(to) == rows * self.n + b)  # such a row stays as it is
        left, right = np.where(to - 1 == at, at - 1, to - 1), np.where(to == at, at + 1, to)
        fall = self._bend(at - 1, a, at + 1, low, high) - self._bend(left, b, right, low, high)
        return np.where(both, 0, fall)

    def _bend(self, left: Any, p: Any, right: Any, low: Any, high: Any) -> Any:
        has_left, has_right = left >= low, right < high
        before = np.where(has_left, self._key(left) % self.n, p - 1)
        after = np.where(has_right, self._key(right) % self.n, p + 1)
        whole = np.where(has_left & has_right, self.length(after - before), 0)
        return (
            np.where(has_left, self.length(p - before), 0)
            + np.where(has_right, self.length(after - p), 0)
            - whole
        )

    def _key(self, at: Any) -> Any:
        return self.keys[np.clip(at, 0, self.keys.size - 1)]

    def swap(self, u: int, v: int) -> None:
        a, b = self.place[u], self.place[v]
        self.place[u], self.place[v] = b, a
        ends = np.array([u, v])
        for w in np.unique(self.neighbours(ends)[0]):
            row = slice(self.begin[w], self.begin[w + 1])
            self.keys[row] = np.sort(w * self.n + self.place[self.indices[row]])


def _partners(rows: SortedRows, chosen: Any, median: bool) -> tuple[Any, Any]:
    """Pairs (number of a chosen vertex, a vertex that it may swap with)."""
    others, which = rows.neighbours(chosen)
    if not median:
        return which, others
    vertex = np.empty(rows.n, np.int64)
    vertex[rows.place] = np.arange(rows.n)
    middle = rows.keys[rows.begin[chosen] + rows.degree[chosen] // 2] % rows.n
    beside = middle[:, None] + np.array(AROUND)
    near = (beside >= 0) & (beside < rows.n)
    found = vertex[np.where(near, beside, 0)]
    near &= found != chosen[:, None]
    more = np.repeat(np.arange(chosen.size), near.sum(axis=1))
    return np.concatenate([which, more]), np.concatenate([others, found[near]])


def _desires(rows: SortedRows, chosen: Any, median: bool) -> Any:
    """The partner whose swap gains most for each of the chosen, or NONE."""
    which, others = _partners(rows, chosen, median)
    gain = np.empty(which.size, np.int64)
    for begin in range(0, which.size, PAIRS):
        part = slice(begin, begin + PAIRS)
        gain[part] = rows.gains(chosen[which[part]], others[part])
    order = np.lexsort((-others, gain, which))  # the last of each is the best, and the smallest
    ends = np.flatnonzero(np.diff(which[order], append=-1))
    best = np.full(chosen.size, NONE)
    gains_most = order[ends]
    worth = gain[gains_most] > 0
    best[which[gains_most[worth]]] = others[gains_most[worth]]
    return best


def _replayed(
    view: csr.View, place: Any, chosen: Any, metric: str, median: bool, limit: int | None
) -> tuple[Any, int, int, int]:
    """Places, swaps proposed, swaps kept and sweeps of a refinement that starts from `place`."""
    rows = SortedRows(view, place.astype(np.int64), metric)
    chosen = chosen.astype(np.int64)
    proposed = kept = done = 0
    while limit is None or done < limit:
        done += 1
        partner = _desires(rows, chosen, median) if chosen.size else chosen
        here = np.flatnonzero(partner != NONE)
        if here.size == 0:
            break
        proposed += int(here.size)
        for u, v in zip(chosen[here].tolist(), partner[here].tolist(), strict=True):
            if rows.gains(np.array([u]), np.array([v]))[0] > 0:
                rows.swap(u, v)
                kept += 1
    return rows.place, proposed, kept, done
