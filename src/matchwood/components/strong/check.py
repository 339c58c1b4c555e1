"""Are these the strongly connected components?  Decided without an algorithm that finds them.

Labels are right when each label's vertices reach each other (so no two components are merged)
and no way leads from a label to another and back (so none is split).  The first is decided by
two searches, along the arcs and against them, from the smallest vertex of every label at once, in
the graph without the arcs between labels; the second by putting the labels in topological
order, taking away labels without arcs to them until none is left.  All in near-linear time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.components.answers import Labels, numbered
from matchwood.components.strong.condensation import arcs_between, levels
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.traversal.breadth_first import bfs


def check_strongly_connected_components(A: Any, answer: Any, *, numbering: str = "exact") -> None:
    """Raise `CheckFailed` unless `answer` numbers the strongly connected components of `A`.

    Parameters
    ----------
    A : as given to `strongly_connected_components`
    answer : Components, (count, labels), labels or sets of vertices
        As matchwood, SciPy, igraph (an object with `membership`) or NetworkX (sets of the
        vertices 0..n-1) return it.  The number of rounds is not checked.
    numbering : {"exact", "any"}
        ``"exact"``: labels are 0, 1, ... in the order of their smallest vertices.  ``"any"``:
        they may be any integers; only which vertices share one is checked, and `count` where it
        is given.  Sets have no numbers.

    Raises
    ------
    CheckFailed
        If the answer is wrong; says what and where.
    TypeError
        If it cannot be an answer: labels do not hold integers.

    Notes
    -----
    Runs where `A` lives; labels that live elsewhere are moved there.  Memory: the arcs inside
    components, the same against their direction, and the arcs between components.

    Examples
    --------
    >>> import matchwood
    >>> A = (3, [[0, 1], [1, 0], [1, 2]])
    >>> matchwood.check.check_strongly_connected_components(A, [0, 0, 1])
    >>> matchwood.check.check_strongly_connected_components(A, [5, 5, 2], numbering="any")
    >>> matchwood.check.check_strongly_connected_components(A, [0, 0, 0])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: strong components: vertex 2 does not reach vertex 0, ...
    >>> matchwood.check.check_strongly_connected_components(A, [0, 1, 2])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: strong components: labels 0 and 1 reach each other, ...
    """
    caller = "check_strongly_connected_components"
    G = csr.as_graph(A, caller)
    found = numbered(caller, "strong components", answer, G.n, G.engine, numbering)
    check_parts(G, found, caller)


def is_strongly_connected_components(A: Any, answer: Any, *, numbering: str = "exact") -> bool:
    """Whether these are the strong components; `check_strongly_connected_components` says why not.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.components import is_strongly_connected_components
    >>> A = (3, [[0, 1], [1, 0], [1, 2]])
    >>> is_strongly_connected_components(A, [0, 0, 1])
    True
    >>> is_strongly_connected_components(A, [0, 0, 0])
    False
    """
    return answers.holds(check_strongly_connected_components, A, answer, numbering=numbering)


def check_parts(G: csr.Graph, found: Labels, caller: str) -> tuple[Any, Any]:
    """Raise unless labels are strong components; returns the arcs between them as CSR arrays."""
    inside, tails, heads = _split(G.directed_pattern(), found.labels)
    ways = ((inside, "is not reached from"), (_turned(inside, caller), "does not reach"))
    for H, says in ways:
        lost = answers.first(bfs(H, found.first).level < 0)
        if lost is not None:
            raise CheckFailed(
                f"strong components: vertex {lost} {says} vertex "
                f"{found.first[found.labels[lost]]}, though both have label {found.given[lost]}"
            )
    count = int(found.first.size)
    indptr, indices = arcs_between(found.labels[tails], found.labels[heads], count)
    level = levels(indptr, indices)
    left = answers.first(level < 0)
    if left is not None:
        _raise_cycle(left, level, found, tails, heads)
    return indptr, indices


def _split(view: csr.View, labels: Any) -> tuple[csr.Graph, Any, Any]:
    """The graph of the arcs inside labels, and the ends of the others."""
    xp = answers.module(labels)
    lengths = xp.zeros(view.n + 1, np.int64)
    kept, tails, heads = [view.indices[:0]], [view.indices[:0]], [view.indices[:0]]
    for _, u, v in answers.arcs(view):
        same = labels[u] == labels[v]
        rows, low = u[same], int(u[0])
        lengths[low + 1 : int(u[-1]) + 2] += xp.bincount(rows - low, minlength=int(u[-1]) + 1 - low)
        kept.append(v[same])
        tails.append(u[~same].astype(v.dtype))
        heads.append(v[~same])
    indptr = xp.cumsum(lengths).astype(view.indptr.dtype)
    inside = csr.as_graph((indptr, xp.concatenate(kept)), "check of components")
    return inside, xp.concatenate(tails), xp.concatenate(heads)


def _turned(G: csr.Graph, caller: str) -> csr.Graph:
    view = G.transposed_pattern()
    return csr.as_graph((view.indptr, view.indices), caller)


def _raise_cycle(at: int, level: Any, found: Labels, tails: Any, heads: Any) -> None:
    # every label left has an arc from another one that is left: against the arcs, we meet again
    level, labels, given, u, v = (
        engines.moved(array, "cpu") for array in (level, found.labels, found.given, tails, heads)
    )
    known = (level[labels[u]] < 0) & (level[labels[v]] < 0)
    u, v = u[known], v[known]
    arc_to = np.full(level.size, -1)
    arc_to[labels[v]] = np.arange(v.size)
    seen: dict[int, int] = {}
    while at not in seen:
        seen[at] = len(seen)
        at = int(labels[u[arc_to[at]]])
    cycle = [arc_to[label] for label, turn in seen.items() if turn >= seen[at]][::-1]
    arcs = ", ".join(f"({u[k]}, {v[k]})" for k in cycle[:3])
    pair = sorted((int(given[v[cycle[0]]]), int(given[u[cycle[0]]])))
    raise CheckFailed(
        f"strong components: labels {pair[0]} and {pair[1]} reach each other, by arcs {arcs}"
        f"{' and more' if len(cycle) > 3 else ''}"
    )
