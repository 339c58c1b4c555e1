"""Are these the measures of an order?  Computed with NumPy, without the kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.ordering.measure import NAMES
from matchwood.ordering.permutation import as_permutation
from matchwood.ordering.permutation.check import numbers

ROUNDING = 1e-12  # relative error of the mean of squares


def check_measures(A: Any, answer: Any, perm: Any = None) -> None:
    """Raise `CheckFailed` unless `answer` is what `order_measures` must return.

    Parameters
    ----------
    A, perm : as given to `order_measures`
    answer : Measures

    Raises
    ------
    CheckFailed
        If a number is wrong; says which.
    TypeError, ValueError
        If a field of the answer is no number, or `perm` is no permutation.

    Notes
    -----
    Runs on the CPU: a graph and a permutation that live on a GPU are moved.  Whole numbers must be
    exact, `rms_wavefront` right to 12 digits.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_measures(A, matchwood.order_measures(A))
    >>> matchwood.check.check_measures(A, matchwood.Measures(1, 4, 2, 1.5))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: measures: profile is 4, but must be 3
    """
    caller = "check_measures"
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    n = view.n
    given = numbers(caller, answer, "Measures", NAMES, "rms")
    place = np.arange(n)
    if perm is not None:
        place[as_permutation(perm, n, caller, "cpu")] = np.arange(n)
    first = np.arange(n)
    for _, u, v in answers.arcs(view):
        np.minimum.at(first, place[u], place[v])
    # row j is active from first[j] to j
    fronts = np.cumsum(np.bincount(first, minlength=n)) - np.arange(n)
    reach = np.arange(n) - first
    expected = [
        int(reach.max(initial=0)),
        int(reach.sum()),
        int(fronts.max(initial=0)),
        math.sqrt(float((fronts.astype(float) ** 2).mean())) if n else 0.0,
    ]
    for name, value, right in zip(NAMES, given, expected, strict=True):
        slack = ROUNDING * right if name == "rms_wavefront" else 0
        if not abs(value - right) <= slack:
            raise CheckFailed(f"measures: {name} is {value}, but must be {right}")
