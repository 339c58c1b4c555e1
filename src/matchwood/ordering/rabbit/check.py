"""Is this the rabbit order?  Its tree of joins is replayed round by round, with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood import answers
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.ordering.permutation import inverse
from matchwood.ordering.permutation.check import permutation
from matchwood.primitives.community_merge.check import expected_joins

PROBLEM = "rabbit order"


def check_rabbit_order(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` holds the order that `rabbit_order` must return.

    Parameters
    ----------
    A : as given to `rabbit_order`
    answer : what ``locality_ordering(A, "rabbit")`` returns
        Its `perm` and its `tree` are checked.

    Raises
    ------
    CheckFailed
        If a join is missing, too many or not the one that the rule asks for, or the order does not
        go through the tree depth first; says where.
    TypeError
        If the answer has no tree, or an array does not hold integers.

    Notes
    -----
    Runs on the CPU: what lives on a GPU is moved.  Work as that of the rounds, O(m log m) each;
    memory some 60 bytes for each entry.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(6)
    >>> found = matchwood.locality_ordering(A, "rabbit")
    >>> matchwood.check.check_rabbit_order(A, found)
    >>> matchwood.check.check_rabbit_order(matchwood.generators.cycle(6), found)
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: rabbit order: in round 1 vertex ...
    """
    caller = "check_rabbit_order"
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    n = view.n
    tree: Any = getattr(answer, "tree", None)
    if not all(hasattr(tree, name) for name in ("parent", "round")):
        raise TypeError(
            f"{caller}: answer must be a LocalityOrdering with a tree, got {type(answer).__name__}"
        )
    perm = permutation(caller, PROBLEM, answer, n)
    parent = answers.integers(caller, PROBLEM, "parent", tree.parent, (n,), "cpu")
    joined = answers.integers(caller, PROBLEM, "round", tree.round, (n,), "cpu")
    _check_joins(view, parent, joined)
    _check_depth_first(perm, parent, joined, np.diff(view.indptr))


def is_rabbit_order(A: Any, answer: Any) -> bool:
    """Whether this is the rabbit order; `check_rabbit_order` says why not.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(6)
    >>> matchwood.check.is_rabbit_order(A, matchwood.locality_ordering(A, "rabbit"))
    True
    """
    return answers.holds(check_rabbit_order, A, answer)


def _check_joins(view: Any, parent: Any, joined: Any) -> None:
    n = view.n
    rows = np.repeat(np.arange(n), np.diff(view.indptr))
    columns, weights = view.indices.astype(np.int64), np.ones(view.nnz, np.int64)
    names, volume = np.arange(n), np.diff(view.indptr).astype(np.int64)
    number = 0
    while True:
        number += 1
        target = expected_joins(rows, columns, weights, volume, names, view.nnz, 1.0)
        right = names[target]
        claimed = np.where(joined[names] == number, parent[names], names)
        at = answers.first(claimed != right)
        if at is not None:
            raise CheckFailed(
                f"{PROBLEM}: in round {number} vertex {names[at]} must "
                + (f"join {right[at]}" if right[at] != names[at] else "join none")
                + (f", not {claimed[at]}" if claimed[at] != names[at] else "")
            )
        if (target == np.arange(target.size)).all():
            break
        root = target
        while (root[root] != root).any():
            root = root[root]
        roots, label = np.unique(root, return_inverse=True)
        count = roots.size
        joint = sp.coo_array((weights, (label[rows], label[columns])), (count, count)).tocsr()
        rows = np.repeat(np.arange(count), np.diff(joint.indptr))
        columns, weights = joint.indices.astype(np.int64), joint.data
        volume = np.bincount(label, weights=volume, minlength=count).astype(np.int64)
        names = names[roots]
    # the communities that are left never joined
    at = answers.first((joined[names] != 0) | (parent[names] != names))
    if at is not None:
        raise CheckFailed(f"{PROBLEM}: vertex {names[at]} joins none, but has a parent or a round")


def _check_depth_first(perm: Any, parent: Any, joined: Any, degree: Any) -> None:
    """Check that each vertex follows its parent and all vertices below its elder siblings."""
    n, place = perm.size, inverse(perm)
    size = _sizes(parent)
    above = np.where(parent == np.arange(n), -1, parent)  # roots are siblings
    beside = np.where(above < 0, 0, -degree.astype(np.int64))  # of siblings but roots
    order = np.lexsort((np.arange(n), beside, joined, above))
    before = np.concatenate([[0], np.cumsum(size[order])[:-1]]) if n else size
    first = np.searchsorted(above[order], above[order], "left") if n else order
    offset = np.empty(n, np.int64)
    offset[order] = before - before[first] if n else 0
    right = np.where(above < 0, offset, place[parent] + 1 + offset)
    at = answers.first(place != right)
    if at is not None:
        raise CheckFailed(
            f"{PROBLEM}: vertex {at} has place {place[at]}, but must have {right[at]}"
        )


def _sizes(parent: Any) -> Any:
    """Vertices of each subtree, from the deepest up."""
    n = parent.size
    depth, above = (parent != np.arange(n)).astype(np.int64), parent.copy()
    while (above[above] != above).any():
        depth += depth[above]
        above = above[above]
    size = np.ones(n, np.int64)
    order = np.argsort(-depth, kind="stable")
    ends = np.flatnonzero(np.diff(depth[order], append=-1)) + 1
    begin = 0
    for end in ends.tolist():
        level = order[begin:end]
        if depth[level[0]] > 0:
            np.add.at(size, parent[level], size[level])
        begin = end
    return size
