"""Are these the gaps of an order?  Computed with NumPy, without the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.ordering.gap import NAMES, bits, log_array
from matchwood.ordering.permutation import as_permutation
from matchwood.ordering.permutation.check import numbers


def check_gaps(A: Any, answer: Any, perm: Any = None) -> None:
    """Raise `CheckFailed` unless `answer` is what `gaps` must return.

    Parameters
    ----------
    A, perm : as given to `gaps`
    answer : Gaps

    Raises
    ------
    CheckFailed
        If a number is wrong; says which.
    TypeError, ValueError
        If a field of the answer is no number, or `perm` is no permutation.

    Notes
    -----
    Runs on the CPU: a graph and a permutation that live on a GPU are moved.  All four numbers must
    be exact.  Memory: some 16 bytes for each entry.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_gaps(A, matchwood.gaps(A))
    >>> matchwood.check.check_gaps(A, matchwood.Gaps(3, 0.0, 5, 2.0))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: gaps: linear_gap is 5, but must be 4
    """
    caller = "check_gaps"
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    given = numbers(caller, answer, "Gaps", NAMES, "log")
    place = np.arange(view.n)
    if perm is not None:
        place[as_permutation(perm, view.n, caller, "cpu")] = np.arange(view.n)
    expected = expected_gaps(view, place)
    for name, value in zip(NAMES, given, strict=True):
        if value != expected[name]:
            raise CheckFailed(f"gaps: {name} is {value}, but must be {expected[name]}")


def expected_gaps(view: csr.View, place: Any) -> dict[str, Any]:
    """The four numbers, by sorting all entries at once."""
    length = log_length = gap = log_gap = 0
    keys = []
    for _, u, v in answers.arcs(view):
        distance = np.abs(place[u] - place[v])
        length += int(distance.sum())
        log_length += int(log_array(distance).sum())
        keys.append(u * view.n + place[v])
    ordered = np.sort(np.concatenate([np.empty(0, np.int64), *keys]))
    for begin, end in answers.pieces(max(0, ordered.size - 1)):
        part = ordered[begin : end + 1]
        same = part[1:] // max(1, view.n) == part[:-1] // max(1, view.n)
        between = np.diff(part)[same]
        gap += int(between.sum())
        log_gap += int(log_array(between).sum())
    found = (length // 2, bits(log_length // 2), gap, bits(log_gap))  # an edge is two arcs
    return dict(zip(NAMES, found, strict=True))
