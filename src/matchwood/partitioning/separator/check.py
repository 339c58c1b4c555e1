"""Is this a separator?  No edge joins the sides, and none of them is too heavy."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.arguments import real
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.partitioning.separator import limits_of, whole_weights


def check_separator(
    A: Any, side: Any, *, imbalance: float = 0.1, vertex_weights: Any = None
) -> None:
    """Raise `CheckFailed` unless `side` is an answer that `vertex_separator` may return.

    Parameters
    ----------
    A, imbalance, vertex_weights : as given to `vertex_separator`
    side : (n,) integer array

    Raises
    ------
    CheckFailed
        If a side is none of 0, 1, 2, an edge joins 0 and 1, or a side is heavier than its limit.
    TypeError, ValueError
        If `side` does not hold integers, or the weights are not right.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_separator(A, [0, 2, 1, 1])
    >>> matchwood.check.check_separator(A, [0, 0, 1, 1])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: separator: the edge 1, 2 joins both sides
    """
    caller, problem = "check_separator", "separator"
    real(caller, "imbalance", imbalance, 0)
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    weight = whole_weights(caller, vertex_weights, view.n)
    found = answers.integers(caller, problem, "side", side, (view.n,), "cpu")
    at = answers.first((found < 0) | (found > 2))
    if at is not None:
        raise CheckFailed(f"{problem}: side holds {found[at]} at {at}, but must be 0, 1 or 2")
    for _, u, v in answers.arcs(view):
        at = answers.first((found[u] != found[v]) & (found[u] < 2) & (found[v] < 2))
        if at is not None:
            raise CheckFailed(f"{problem}: the edge {u[at]}, {v[at]} joins both sides")
    limit = int(limits_of(weight.sum(keepdims=True), imbalance)[0])
    for k in (0, 1):
        weighs = int(weight[np.flatnonzero(found == k)].sum())
        if weighs > limit:
            raise CheckFailed(f"{problem}: side {k} weighs {weighs}, but may weigh {limit}")
