"""Is this bound proved?  Looks at every edge."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.primitives.wide_sums import total


def check_bound(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` proves that no matching of `A` weighs more.

    Parameters
    ----------
    A : as given to `matching_bound`
    answer : Bound, or (value, dual)

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.matching.bound.check import check_bound
    >>> A = matchwood.generators.path(3)
    >>> check_bound(A, (1.0, [0.0, 1.0, 0.0]))
    >>> check_bound(A, (0.5, [0.5, 0.0, 0.0]))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: bound: edge (0, 1) weighs 1.0, more than 0.5 and 0.0 together
    """
    caller = "check_bound"
    view = csr.as_graph(A, caller).on("cpu").undirected_weights(caller)
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    if not pair and not (hasattr(answer, "value") and hasattr(answer, "dual")):
        kind = type(answer).__name__
        raise TypeError(f"{caller}: answer must be a Bound or (value, dual), got {kind}")
    value, dual = answer
    value = answers.number(caller, "the value", value)
    dual = answers.reals(caller, "bound", "dual", dual, (view.n,), "cpu").astype(np.float64)
    wrong = answers.first(~((dual >= 0) & (dual < np.inf)))  # also where it is NaN
    if wrong is not None:
        raise CheckFailed(f"bound: dual[{wrong}] is {dual[wrong]}")
    u, v = np.repeat(np.arange(view.n), np.diff(view.indptr)), view.indices
    with np.errstate(over="ignore"):  # an infinite sum is more than any edge weighs
        short = np.flatnonzero(dual[u] + dual[v] < view.data)
    if short.size:
        k = int(short[0])
        raise CheckFailed(
            f"bound: edge ({u[k]}, {v[k]}) weighs {view.data[k]}, more than {dual[u[k]]} and "
            f"{dual[v[k]]} together"
        )
    proved = total(dual)
    if not math.isclose(value, proved, rel_tol=1e-9):
        raise CheckFailed(f"bound: the value is {value}, but the duals sum to {proved}")
