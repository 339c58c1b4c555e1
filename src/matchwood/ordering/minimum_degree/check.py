"""Is this an order of minimum degree?  Small graphs are eliminated again, with sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.arguments import integers
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.ordering.minimum_degree import ranked
from matchwood.ordering.minimum_degree.reference import order as eliminated
from matchwood.ordering.permutation.check import permutation

REPLAYED = 400  # vertices up to which the reference is run: a second


def check_minimum_degree(A: Any, perm: Any, *, stages: Any = None) -> None:
    """Raise `CheckFailed` unless `perm` is what `minimum_degree` must return.

    Parameters
    ----------
    A, stages : as given to `minimum_degree`
    perm : (n,) integer array

    Raises
    ------
    CheckFailed
        If it is no permutation, the stages do not ascend, or a vertex comes too early.
    TypeError, ValueError
        If `perm` or `stages` do not hold integers.

    Notes
    -----
    Of more than 400 vertices, whose order only another elimination could confirm, the permutation
    and its stages are checked.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.star(4)
    >>> matchwood.check.check_minimum_degree(A, [1, 2, 0, 3])
    >>> matchwood.check.check_minimum_degree(A, [0, 1, 2, 3])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: minimum degree: place 0 has vertex 0, but must have 1
    """
    caller, problem = "check_minimum_degree", "minimum degree"
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    order = permutation(caller, problem, perm, view.n)
    stage = np.zeros(view.n, np.int64)
    if stages is not None:
        stage = ranked(integers(caller, "stages", stages, size=view.n))
    at = answers.first(np.diff(stage[order]) < 0)
    if at is not None:
        u, v = order[at], order[at + 1]
        raise CheckFailed(f"{problem}: vertex {v} must come before {u}, which is of a later stage")
    if view.n <= REPLAYED:
        right = eliminated(view, stage)
        at = answers.first(order != right)
        if at is not None:
            raise CheckFailed(
                f"{problem}: place {at} has vertex {order[at]}, but must have {right[at]}"
            )
