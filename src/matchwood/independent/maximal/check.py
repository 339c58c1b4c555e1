"""Is this a maximal independent set, and the greedy one?  Decided by a look at every edge."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import csr, engines
from matchwood.arguments import one_of, seed
from matchwood.errors import CheckFailed
from matchwood.independent.maximal import METHODS
from matchwood.independent.maximal.order import rank_of


def check_maximal_independent_set(
    A: Any, members: Any, *, method: str | None = None, rng: Any = 0
) -> None:
    """Raise `CheckFailed` unless `members` is a maximal independent set of `A`.

    Independent: no edge joins two members.  Maximal: every other vertex has a neighbour in the
    set.

    Parameters
    ----------
    A : as given to `maximal_independent_set`
    members : (n,) boolean array
    method : {None, "luby", "lexicographic", "luby_sampling"}
        With ``"luby"`` or ``"lexicographic"`` the set must be the one that
        `maximal_independent_set` returns: every other vertex has a member before it, in the
        order of the method, among its neighbours.  That is so for no other set.
        ``"luby_sampling"`` has no such order: as None.
    rng : as given to `maximal_independent_set`

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_maximal_independent_set(A, [True, False, False, True])
    >>> matchwood.check.check_maximal_independent_set(A, [True, False, False, False])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: independent set: vertex 2 could be added: no neighbour is ...
    """
    caller = "check_maximal_independent_set"
    one_of(caller, "method", method, (None, *METHODS))
    G = csr.as_graph(A, caller).on("cpu")
    n = G.n
    inside = np.asarray(engines.moved(members, "cpu"))
    if inside.shape != (n,):
        raise CheckFailed(f"independent set: must have {n} elements, got shape {inside.shape}")
    if inside.dtype != np.bool_ and n:
        raise CheckFailed(f"independent set: must be boolean, got {inside.dtype}")
    view = G.undirected_pattern()
    degree = np.diff(view.indptr)
    u, v = np.repeat(np.arange(n), degree), view.indices
    joined = np.flatnonzero(inside[u] & inside[v])
    if joined.size:
        i, j = int(u[joined[0]]), int(v[joined[0]])
        raise CheckFailed(f"independent set: edge ({i}, {j}) joins two members")
    covered = inside.copy()
    covered[u[inside[v]]] = True
    if not covered.all():
        i = int(np.argmin(covered))
        raise CheckFailed(f"independent set: vertex {i} could be added: no neighbour is a member")
    if method in (None, "luby_sampling"):
        return
    rank = rank_of(degree, method, seed(caller, rng))
    earlier = inside.copy()
    earlier[u[inside[v] & (rank[v] < rank[u])]] = True
    if not earlier.all():
        i = int(np.argmin(earlier))
        raise CheckFailed(
            f"independent set: vertex {i} comes before all members among its neighbours in the "
            f"order of {method!r}, so it is a member of the greedy set"
        )
