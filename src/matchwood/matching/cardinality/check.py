"""Does this matching have as many edges as possible?  Proved by a set of vertices.

Tutte and Berge: take any set U of vertices out of the graph.  Every component of odd size that is
left has a vertex that no edge inside it covers, and at most |U| of these are matched with U.  So at
least odd(G - U) - |U| vertices are free in every matching.  Where a matching leaves just as many,
it is a largest one.  In a bipartite graph the search is that for Koenig's vertex cover, and U is
the part of the cover that it reaches.

The set is found by searching for a path that would gain an edge.  Whether it proves anything does
not depend on that search: the components are counted here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.matching.cardinality.cpu import INNER, improve
from matchwood.matching.methods import checked_mates

Array = np.ndarray[Any, Any]


def check_maximum_matching(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` is a matching of `A` with as many edges as possible.

    Parameters
    ----------
    A : as given to `maximum_matching`
    answer : Matching, or mate

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.matching.cardinality.check import check_maximum_matching
    >>> A = matchwood.generators.path(4)
    >>> check_maximum_matching(A, [1, 0, 3, 2])
    >>> check_maximum_matching(A, [-1, 2, 1, -1])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: matching: 1 edges, but there is a matching with 2
    """
    caller = "check_maximum_matching"
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    mate, _tails, _used = checked_mates(view, answer, caller, "matching")
    better, found = mate.astype(view.indices.dtype), np.zeros(2, np.int64)
    label = improve(view, better, found)
    edges = int((mate >= 0).sum()) // 2
    if found[0]:
        raise CheckFailed(
            f"matching: {edges} edges, but there is a matching with {edges + found[0]}"
        )
    free, least = int((mate < 0).sum()), free_at_least(view, label == INNER)
    if free > least:  # never, unless the search itself is wrong
        raise CheckFailed(f"matching: {free} vertices are free, and only {least} are proved to be")


def free_at_least(view: Any, removed: Array) -> int:
    """odd(G - U) - |U|, a lower bound on the vertices that any matching leaves free."""
    left = np.flatnonzero(~removed)
    ones = np.ones(view.nnz, np.int8)
    G = sp.csr_array((ones, view.indices, view.indptr), (view.n, view.n))[left][:, left]
    _count, component = csgraph.connected_components(G, directed=False)
    return int((np.bincount(component, minlength=1) % 2).sum()) - int(removed.sum())
