"""Is this the order by degree?  The keys of its rule must ascend, equal ones by vertex."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.arguments import one_of
from matchwood.gate import graph as csr
from matchwood.ordering.degree import METHODS
from matchwood.ordering.permutation.check import check_ascending, permutation

DOUBLED = (64, 32, 16, 8, 4, 2, 1)  # twice the least degree of each group, in average degrees


def check_degree_order(A: Any, perm: Any) -> None:
    """Raise `CheckFailed` unless `perm` is what `degree_order` must return.

    Parameters
    ----------
    A : as given to `degree_order`
    perm : (n,) integer array

    Raises
    ------
    CheckFailed
        If it is no permutation, or the degrees do not descend; says where.
    TypeError
        If `perm` does not hold integers.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.star(4)
    >>> matchwood.check.check_degree_order(A, [0, 1, 2, 3])
    >>> matchwood.check.check_degree_order(A, [1, 0, 2, 3])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: degree order: vertex 0 must come before vertex 1, ...
    """
    view = csr.as_graph(A, "check_degree_order").on("cpu").undirected_pattern()
    order = permutation("check_degree_order", "degree order", perm, view.n)
    check_ascending("degree order", order, -np.diff(view.indptr).astype(np.int64))


def check_hub_order(A: Any, perm: Any, *, method: str = "sort") -> None:
    """Raise `CheckFailed` unless `perm` is what `hub_order` must return.

    Parameters
    ----------
    A, method : as given to `hub_order`
    perm : (n,) integer array

    Raises
    ------
    CheckFailed
        If it is no permutation, or a vertex is placed too early; says which.
    TypeError, ValueError
        If `perm` does not hold integers, or the method is unknown.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.star(4, )
    >>> matchwood.check.check_hub_order(A, [0, 1, 2, 3], method="cluster")
    """
    caller = "check_hub_order"
    one_of(caller, "method", method, METHODS)
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    order = permutation(caller, "hub order", perm, view.n)
    degree = np.diff(view.indptr).astype(np.int64)
    # average times n is a whole number: no rounding
    scaled = [int(d) * view.n for d in degree.tolist()]
    if method == "group":
        groups = np.array([_group(x, view.nnz) for x in scaled], np.int64)
        check_ascending("hub order", order, groups)
        return
    hub = np.array([x > view.nnz for x in scaled], bool)
    if method == "sort":
        check_ascending("hub order", order, ~hub, np.where(hub, -degree, 0))
    else:
        check_ascending("hub order", order, ~hub)


def _group(scaled: int, m: int) -> int:
    return next((k for k, limit in enumerate(DOUBLED) if 2 * scaled >= limit * m), len(DOUBLED))


def is_degree_order(A: Any, perm: Any) -> bool:
    """Whether this is the order by degree; `check_degree_order` says why not.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.check.is_degree_order(matchwood.generators.star(4), [1, 0, 2, 3])
    False
    """
    return answers.holds(check_degree_order, A, perm)
