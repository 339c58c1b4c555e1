"""Is this a maximal independent set, and the greedy one?  Decided by a pass over every edge."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.arguments import one_of, seed
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.independent.order import BEST, METHODS, degree_class, start_of
from matchwood.primitives import hashing


def check_maximal_independent_set(
    A: Any, members: Any, *, method: str | None = None, rng: Any = 0
) -> None:
    """Raise `CheckFailed` unless `members` is a maximal independent set of `A`.

    Independent: no edge joins two members.  Maximal: every other vertex has a neighbour in the
    set.

    Parameters
    ----------
    A : as given to `maximal_independent_set`
    members : (n,) array of booleans, or of integers 0 and 1; or a set of vertices
        A list of vertices is passed as a set: ``set(vertices)``.
    method : {None, "auto", "luby", "lexicographic", "luby_sampling"}
        With ``"auto"``, ``"luby"`` or ``"lexicographic"`` the set must be the one that
        `maximal_independent_set` returns: every other vertex has a member before it, in the
        order of the method, among its neighbours.  That is so for no other set.
        ``"luby_sampling"`` has no such order: as None.
    rng : as given to `maximal_independent_set`

    Raises
    ------
    CheckFailed
        If the answer is wrong; says what and where.
    TypeError
        If it cannot be an answer: members are floats or text.

    Notes
    -----
    Runs where `A` lives; members that live elsewhere are moved there, and for ``"luby"`` the
    degrees go to the CPU and a byte a vertex back.  A pass over every edge; memory for two
    bytes a vertex, and 9 more for ``"luby"``.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_maximal_independent_set(A, [True, False, False, True])
    >>> matchwood.check.check_maximal_independent_set(A, {1, 3})
    >>> matchwood.check.check_maximal_independent_set(A, [True, False, False, False])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: independent set: vertex 2 could be added: no neighbour is ...
    """
    caller = "check_maximal_independent_set"
    one_of(caller, "method", method, (None, *METHODS))
    method = BEST if method == "auto" else method
    G = csr.as_graph(A, caller)
    inside = answers.mask(caller, "independent set", "members", members, G.n, G.engine)
    view = G.undirected_pattern()
    ordered = method in ("luby", "lexicographic")
    keys = _keys(view, seed(caller, rng)) if method == "luby" else None
    covered = inside.copy()
    earlier = inside.copy() if ordered else inside[:0]
    for _, u, v in answers.arcs(view):
        beside = inside[v]
        at = answers.first(inside[u] & beside)
        if at is not None:
            raise CheckFailed(f"independent set: edge ({u[at]}, {v[at]}) joins two members")
        u, v = u[beside], v[beside]
        covered[u] = True
        if ordered:
            earlier[u[_before(keys, v, u)]] = True
    _raise_left_out(covered, "could be added: no neighbour is a member")
    if ordered:
        _raise_left_out(
            earlier,
            "comes before all members among its neighbours in the order of "
            f"{method!r}, so it is a member of the greedy set",
        )


def is_maximal_independent_set(
    A: Any, members: Any, *, method: str | None = None, rng: Any = 0
) -> bool:
    """Whether this is a maximal independent set; `check_maximal_independent_set` says why not.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.independent import is_maximal_independent_set
    >>> A = matchwood.generators.path(4)
    >>> is_maximal_independent_set(A, [1, 0, 0, 1]), is_maximal_independent_set(A, [1, 0, 0, 0])
    (True, False)
    >>> is_maximal_independent_set(A, {1, 3}, method="lexicographic")
    False
    """
    return answers.holds(check_maximal_independent_set, A, members, method=method, rng=rng)


def _raise_left_out(reached: Any, why: str) -> None:
    at = answers.first(~reached)
    if at is not None:
        raise CheckFailed(f"independent set: vertex {at} {why}")


def _keys(view: csr.View, number: int) -> tuple[Any, Any]:
    """Class of the degree and hash of every vertex; see order.py.  No sort: pairs are compared."""
    xp = answers.module(view.indptr)
    degree = engines.moved(xp.diff(view.indptr), "cpu")
    classes = np.empty(view.n, np.uint8)
    for begin, end in answers.pieces(view.n):
        classes[begin:end] = degree_class(np.maximum(degree[begin:end], 1))
    v = xp.arange(view.n, dtype=np.uint64)
    hashed = hashing.mix64(v ^ np.uint64(start_of(number)))
    return engines.moved(classes, engines.location(view.indptr)), hashed


def _before(keys: tuple[Any, Any] | None, v: Any, u: Any) -> Any:
    """Whether v is before u in the order of the method."""
    if keys is None:
        return v < u
    classes, hashed = keys
    mine, other = classes[v], classes[u]
    return (mine < other) | ((mine == other) & (hashed[v] < hashed[u]))
