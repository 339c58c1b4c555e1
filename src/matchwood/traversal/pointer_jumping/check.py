"""Are these the roots?  Decided without going up.

A root has itself as its answer, and no other vertex has.  Every other vertex has the answer of its
parent.  So, from a root down, all answers are right, where the parents are a forest.  That is what
a breadth-first search from the roots along the children shows: it reaches every vertex.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.errors import CheckFailed
from matchwood.traversal.breadth_first import bfs
from matchwood.traversal.pointer_jumping import forest, has_cycle, is_distributed


def check_forest_roots(parent: Any, root: Any) -> None:
    """Raise `CheckFailed` unless `root` holds the root of each vertex of a forest.

    Parameters
    ----------
    parent : as given to `forest_roots`
    root : (n,) array of integers; a DistributedVector where `parent` is one

    Raises
    ------
    CheckFailed
        If the answer is wrong; says what and where.
    TypeError, ValueError
        If it cannot be an answer: `root` does not hold integers; or if `parent` is no forest.

    Notes
    -----
    Runs where `parent` lives.  A breadth-first search over n - 1 arcs at most; memory for some
    arrays of n.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.check.check_forest_roots([0, 0, 1], [0, 0, 0])
    >>> matchwood.check.check_forest_roots([0, 0, 1], [0, 0, 1])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: forest roots: root of 2 is 1, but that of its parent 1 is 0
    """
    caller = "check_forest_roots"
    if is_distributed(parent):
        engines.load(__package__, "ranks").check(parent, root)
        return
    given = forest(caller, parent)
    n, place = given.size, engines.location(given)
    xp = answers.module(given)
    found = answers.integers(caller, "forest roots", "root", root, (n,), place)
    vertices = xp.arange(n)
    up = xp.where(given < 0, vertices, given)
    tops = up == vertices
    _require_forest(caller, up, tops)
    at = answers.first(tops & (found != vertices))
    if at is not None:
        raise CheckFailed(f"forest roots: root of {at} is {found[at]}, but {at} is a root itself")
    at = answers.first(~tops & (found != found[up]))
    if at is not None:
        raise CheckFailed(
            f"forest roots: root of {at} is {found[at]}, "
            f"but that of its parent {up[at]} is {found[up[at]]}"
        )


def is_forest_roots(parent: Any, root: Any) -> bool:
    """Whether `root` holds the root of each vertex; `check_forest_roots` says where it does not.

    Examples
    --------
    >>> from matchwood.traversal import is_forest_roots
    >>> is_forest_roots([0, 0, -1], [0, 0, 2]), is_forest_roots([0, 0, -1], [0, 1, 2])
    (True, False)
    """
    return answers.holds(check_forest_roots, parent, root)


def _require_forest(caller: str, up: Any, tops: Any) -> None:
    """A search from the roots, along the arcs to children, reaches every vertex of a forest."""
    xp, n = answers.module(up), up.size
    if n == 0:
        return
    children = xp.argsort(up, kind="stable")
    indptr = xp.zeros(n + 1, np.int64)
    xp.cumsum(xp.bincount(up, minlength=n), out=indptr[1:])
    reached = bfs((indptr, children), engines.moved(xp.flatnonzero(tops), "cpu")).level
    lost = answers.first(reached < 0)
    if lost is not None:
        raise has_cycle(caller, lost)
