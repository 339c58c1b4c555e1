"""Is this a smallest vertex cover?  It covers, and a matching has as many edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.matching.check import check_matching


def check_vertex_cover(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` covers all edges of `A`, and no cover is smaller.

    Parameters
    ----------
    A : as given to `minimum_vertex_cover`
    answer : Cover

    Raises
    ------
    CheckFailed
        If an edge is not covered, a number is wrong, or the matching is none or has fewer edges.
    TypeError
        If `answer` is no `Cover`.

    Examples
    --------
    >>> import dataclasses, matchwood
    >>> A = matchwood.generators.path(5)
    >>> cover = matchwood.minimum_vertex_cover(A)
    >>> matchwood.check.check_vertex_cover(A, cover)
    >>> wrong = dataclasses.replace(cover, members=[True, False, True, False, True], size=3)
    >>> matchwood.check.check_vertex_cover(A, wrong)
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: vertex cover: 3 vertices, but its matching proves only 2
    """
    caller, problem = "check_vertex_cover", "vertex cover"
    answers.require(caller, "answer", answer, "Cover", "members", "size", "matching", "side")
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    members = answers.mask(caller, problem, "members", answer.members, view.n, "cpu")
    side = answers.integers(caller, problem, "side", answer.side, (view.n,), "cpu")
    at = answers.first((side < 0) | (side > 1))
    if at is not None:
        raise CheckFailed(f"{problem}: side holds {side[at]} at {at}, but must be 0 or 1")
    for _, u, v in answers.arcs(view):
        at = answers.first(~(members[u] | members[v]))
        if at is not None:
            raise CheckFailed(f"{problem}: the edge {u[at]}, {v[at]} is not covered")
        at = answers.first(side[u] == side[v])
        if at is not None:
            raise CheckFailed(f"{problem}: both ends of {u[at]}, {v[at]} are on side {side[u[at]]}")
    size = answers.whole(caller, "size", answer.size)
    if size != int(np.count_nonzero(members)):
        raise CheckFailed(f"{problem}: size is {size}, but must be {np.count_nonzero(members)}")
    check_matching(A, answer.matching)
    mate = answers.integers(caller, problem, "mate", answer.matching.mate, (view.n,), "cpu")
    edges = int(np.count_nonzero(mate >= 0)) // 2
    if edges != size:
        raise CheckFailed(f"{problem}: {size} vertices, but its matching proves only {edges}")
