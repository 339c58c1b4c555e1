"""Is this a dissection?  A permutation whose separators separate."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.ordering.elimination.check import check_fill
from matchwood.ordering.permutation.check import permutation

NAMES = ("perm", "place", "tree", "starts", "separators", "fill")


def check_dissection(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` is a dissection of `A`, and its fill is right.

    Parameters
    ----------
    A : as given to `nested_dissection`
    answer : Dissection

    Raises
    ------
    CheckFailed
        If `perm` is no permutation, `place` not its inverse, the tree not in postorder, a leaf no
        leaf, an edge joins nodes of which none is above the other, or `fill` is wrong.
    TypeError
        If `answer` is no `Dissection`.

    Notes
    -----
    Runs on the CPU.  Work O(entries of L), for `check_fill`.

    Examples
    --------
    >>> import dataclasses, matchwood
    >>> A = matchwood.generators.path(7)
    >>> found = matchwood.nested_dissection(A, leaf=1)
    >>> matchwood.check.check_dissection(A, found)
    >>> wrong = dataclasses.replace(found, perm=found.perm[::-1], place=6 - found.place)
    >>> matchwood.check.check_dissection(A, wrong)
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: dissection: the edge ... joins nodes ...
    """
    caller, problem = "check_dissection", "dissection"
    answers.require(caller, "answer", answer, "Dissection", *NAMES)
    view = csr.as_graph(A, caller).on("cpu").undirected_pattern()
    n = view.n
    perm = permutation(caller, problem, answer.perm, n)
    place = answers.integers(caller, problem, "place", answer.place, (n,), "cpu")
    at = answers.first(place[perm] != np.arange(n))
    if at is not None:
        raise CheckFailed(f"{problem}: place is {place[perm[at]]} at {perm[at]}, but must be {at}")
    nodes = np.size(answer.tree)
    tree = answers.integers(caller, problem, "tree", answer.tree, (nodes,), "cpu")
    starts = answers.integers(caller, problem, "starts", answer.starts, (nodes + 1,), "cpu")
    cut = answers.mask(caller, problem, "separators", answer.separators, nodes, "cpu")
    first = _subtrees(problem, tree)
    if starts[0] != 0 or starts[-1] != n or bool((np.diff(starts) < 0).any()):
        raise CheckFailed(f"{problem}: starts must ascend from 0 to the {n} vertices")
    at = answers.first(cut == (first == np.arange(nodes)))
    if at is not None:
        raise CheckFailed(f"{problem}: node {at} must be a separator if it has children, else none")
    node = np.repeat(np.arange(nodes), np.diff(starts))[place]
    for _, u, v in answers.arcs(view):
        low, high = np.minimum(node[u], node[v]), np.maximum(node[u], node[v])
        at = answers.first(first[high] > low)
        if at is not None:
            raise CheckFailed(
                f"{problem}: the edge {u[at]}, {v[at]} joins nodes {low[at]} and {high[at]}, "
                "of which none is above the other"
            )
    check_fill(A, answer.fill, perm)


def _subtrees(problem: str, tree: Any) -> Any:
    """The first node below each node, if the nodes are in postorder under one root."""
    nodes = tree.size
    first, size = list(range(nodes)), [1] * nodes
    above = tree.tolist()
    for k in range(nodes):
        last = k == nodes - 1
        if (above[k] == -1) != last or (not last and not k < above[k] < nodes):
            raise CheckFailed(f"{problem}: the parent of node {k} is {above[k]}, which cannot be")
        if k - first[k] + 1 != size[k]:
            raise CheckFailed(f"{problem}: nodes {first[k]} to {k} are no subtree: no postorder")
        if not last:
            first[above[k]] = min(first[above[k]], first[k])
            size[above[k]] += size[k]
    return np.array(first, np.int64)
