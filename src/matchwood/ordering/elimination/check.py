"""Is this the elimination tree, and are these the entries of L?

A forest in which every parent comes later is the elimination tree when (1) of each edge, the later
end is an ancestor of the earlier one, and (2) each parent has a neighbour in the subtree of each
of its children.  By (1) column j of L has entries at ancestors of j only; by (2) its parent is one
of them, through vertices of the subtree alone, which come before j.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.ordering.elimination import totals
from matchwood.ordering.elimination.cpu import climbed
from matchwood.ordering.permutation import as_permutation, inverse

Array = np.ndarray[Any, Any]


def check_elimination_tree(A: Any, parent: Any, perm: Any = None) -> None:
    """Raise `CheckFailed` unless `parent` is the elimination tree of `A` in the order `perm`.

    Parameters
    ----------
    A, perm : as given to `elimination_tree`
    parent : (n,) integer array

    Raises
    ------
    CheckFailed
        If a parent is wrong; says which.
    TypeError, ValueError
        If `parent` does not hold integers, or `perm` is no permutation.

    Notes
    -----
    Runs on the CPU.  Work O(m log n).

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_elimination_tree(A, [1, 2, 3, -1])
    >>> matchwood.check.check_elimination_tree(A, [1, 3, 3, -1])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: elimination tree: 2 is a neighbour of 1 and comes later, ...
    """
    caller = "check_elimination_tree"
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    _checked(caller, "elimination tree", view, _order(perm, view, caller), parent)


def check_fill(A: Any, answer: Any, perm: Any = None) -> None:
    """Raise `CheckFailed` unless `answer` is what `fill` must return.

    Parameters
    ----------
    A, perm : as given to `fill`
    answer : Fill

    Raises
    ------
    CheckFailed
        If a number is wrong; says which.
    TypeError, ValueError
        If `answer` has other fields, or `perm` is no permutation.

    Notes
    -----
    Runs on the CPU.  The tree is checked as by `check_elimination_tree`; then every entry of L is
    counted one by one, by walks up the tree: work O(entries).

    Examples
    --------
    >>> import dataclasses, matchwood
    >>> A = matchwood.generators.cycle(5)
    >>> right = matchwood.fill(A)
    >>> matchwood.check.check_fill(A, right)
    >>> matchwood.check.check_fill(A, dataclasses.replace(right, entries=13))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: fill: entries is 13, but must be 12
    """
    caller = "check_fill"
    names = ("entries", "operations", "counts", "parent", "height")
    answers.require(caller, "answer", answer, "Fill", *names)
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    place = _order(perm, view, caller)
    parent, level = _checked(caller, "fill", view, place, answer.parent)
    given = answers.integers(caller, "fill", "counts", answer.counts, (view.n,), "cpu")
    kind = view.indptr.dtype
    order = inverse(place).astype(kind)
    counts = climbed(view, order, place.astype(kind), parent.astype(kind))
    at = answers.first(given != counts)
    if at is not None:
        raise CheckFailed(f"fill: counts is {given[at]} at {at}, but must be {counts[at]}")
    entries, operations = totals(counts)
    right = {"entries": entries, "operations": operations, "height": int(level.max(initial=0))}
    for name, value in right.items():
        found = answers.whole(caller, name, getattr(answer, name))
        if found != value:
            raise CheckFailed(f"fill: {name} is {found}, but must be {value}")


def _order(perm: Any, view: Any, caller: str) -> Array:
    """``place[old] = new``."""
    if perm is None:
        return np.arange(view.n)
    place: Array = inverse(as_permutation(perm, view.n, caller, "cpu"))
    return place


def _checked(caller: str, problem: str, view: Any, place: Array, parent: Any) -> tuple[Any, Any]:
    """The parents as int64 and the level of each place, a root's 1, if they are right."""
    n = view.n
    above = answers.integers(caller, problem, "parent", parent, (n,), "cpu")
    at = answers.first((above != -1) & ((above <= np.arange(n)) | (above >= n)))
    if at is not None:
        raise CheckFailed(f"{problem}: the parent of {at} is {above[at]}, which must come later")
    first, post, level = _postorder(above)
    # children by (parent, postorder): the subtree of a child is what lies between two of them
    child = np.lexsort((post, above))
    child = child[above[child] >= 0]
    keys = above[child] * n + post[child]
    joined = np.zeros(n, bool)
    for _, u, v in answers.arcs(view):
        low, high = np.minimum(place[u], place[v]), np.maximum(place[u], place[v])
        inside = (first[high] <= post[low]) & (post[low] < post[high])
        at = answers.first(~inside)
        if at is not None:
            raise CheckFailed(
                f"{problem}: {high[at]} is a neighbour of {low[at]} and comes later, "
                "but is none of its ancestors"
            )
        joined[child[np.searchsorted(keys, high * n + post[low])]] = True
    at = answers.first(~joined & (above >= 0))
    if at is not None:
        raise CheckFailed(
            f"{problem}: the parent of {at} is {above[at]}, which has no neighbour in its subtree"
        )
    return above, level


def _postorder(parent: Array) -> tuple[Array, Array, Array]:
    """Of each place: the least postorder number of its subtree, its own, and its level."""
    above, n = parent.tolist(), parent.size
    size, level, post, room = [1] * n, [1] * n, [0] * n, [0] * n
    for j in range(n):
        if above[j] >= 0:
            size[above[j]] += size[j]
    end = n
    for j in reversed(range(n)):
        p = above[j]
        if p < 0:
            post[j] = end - 1
            end -= size[j]
        else:
            post[j] = room[p] - 1
            room[p] -= size[j]
            level[j] = level[p] + 1
        room[j] = post[j]
    numbers = np.array(post, np.int64)
    return numbers - np.array(size, np.int64) + 1, numbers, np.array(level, np.int64)
