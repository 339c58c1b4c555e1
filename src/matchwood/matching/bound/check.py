"""Is this bound proved?  Looks at every edge."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood import csr
from matchwood.errors import CheckFailed


def check_bound(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` proves that no matching of `A` weighs more.

    Parameters
    ----------
    A : as given to `upper_bound`
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
    view = csr.as_graph(A, "check_bound").on("cpu").undirected_weights("check_bound")
    value, dual = answer
    dual = np.asarray(dual, np.float64)
    if dual.shape != (view.n,):
        raise CheckFailed(f"bound: dual must have {view.n} elements, got shape {dual.shape}")
    if not (dual >= 0).all():
        v = int((~(dual >= 0)).argmax())
        raise CheckFailed(f"bound: dual[{v}] is {dual[v]}")
    u, v = np.repeat(np.arange(view.n), np.diff(view.indptr)), view.indices
    short = np.flatnonzero(dual[u] + dual[v] < view.data)
    if short.size:
        k = int(short[0])
        raise CheckFailed(
            f"bound: edge ({u[k]}, {v[k]}) weighs {view.data[k]}, more than {dual[u[k]]} and "
            f"{dual[v[k]]} together"
        )
    if not math.isclose(value, float(dual.sum()), rel_tol=1e-9):
        raise CheckFailed(f"bound: the value is {value}, but the duals sum to {dual.sum()}")
