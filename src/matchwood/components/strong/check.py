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

from matchwood import csr
from matchwood.components.answers import count_and_labels
from matchwood.components.strong.quotient import arcs_between, levels
from matchwood.errors import CheckFailed
from matchwood.traversal.breadth_first import bfs


def check_strongly_connected_components(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` numbers the strongly connected components of `A`.

    Parameters
    ----------
    A : as given to `strongly_connected_components`
    answer : Components, (count, labels) or labels

    Examples
    --------
    >>> import matchwood
    >>> A = (3, [[0, 1], [1, 0], [1, 2]])
    >>> matchwood.check.check_strongly_connected_components(A, [0, 0, 1])
    >>> matchwood.check.check_strongly_connected_components(A, [0, 0, 0])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: strong components: vertex 2 does not reach vertex 0, ...
    >>> matchwood.check.check_strongly_connected_components(A, [0, 1, 2])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: strong components: labels 0 and 1 reach each other, ...
    """
    G = csr.as_graph(A, "check_strongly_connected_components").on("cpu")
    count, labels = count_and_labels(answer)
    first = check_numbering(G.n, count, labels)
    view = G.directed_pattern()
    tails = np.repeat(np.arange(G.n, dtype=view.indices.dtype), np.diff(view.indptr))
    inside = labels[tails] == labels[view.indices]
    u, v = tails[inside], view.indices[inside]
    for ends, says in (((u, v), "is not reached from"), ((v, u), "does not reach")):
        H = csr.as_graph((G.n, np.stack(ends, axis=1)), "check_strongly_connected_components")
        lost = np.flatnonzero(bfs(H, first).level < 0)
        if lost.size:
            i = int(lost[0])
            raise CheckFailed(
                f"strong components: vertex {i} {says} vertex {first[labels[i]]}, "
                f"though both have label {labels[i]}"
            )
    _check_acyclic(labels, first.size, tails[~inside], view.indices[~inside])


def check_numbering(n: int, count: int | None, labels: Any) -> Any:
    """The smallest vertex of each label, if these are numbered by it, as they must be."""
    if labels.shape != (n,):
        raise CheckFailed(
            f"strong components: labels must have {n} elements, got shape {labels.shape}"
        )
    found, first = np.unique(labels, return_index=True)
    if count is not None and count != found.size:
        raise CheckFailed(f"strong components: count is {count}, but there are {found.size} labels")
    if not np.array_equal(found, np.arange(found.size)):
        raise CheckFailed(f"strong components: labels must be 0..{found.size - 1} without gaps")
    late = np.flatnonzero(np.diff(first) < 0)
    if late.size:
        k = int(late[0])
        raise CheckFailed(
            f"strong components: label {k + 1} (smallest vertex {first[k + 1]}) must come before "
            f"label {k} (smallest vertex {first[k]})"
        )
    return first


def _check_acyclic(labels: Any, count: int, u: Any, v: Any) -> None:
    indptr, indices = arcs_between(labels[u], labels[v], count)
    level = levels(indptr, indices)
    left = np.flatnonzero(level < 0)
    if left.size == 0:
        return
    # every label left has an arc from another one that is left: against the arcs, we meet again
    known = (level[labels[u]] < 0) & (level[labels[v]] < 0)
    u, v = u[known], v[known]
    arc_to = np.full(count, -1)
    arc_to[labels[v]] = np.arange(v.size)
    seen: dict[int, int] = {}
    at = int(left[0])
    while at not in seen:
        seen[at] = len(seen)
        at = int(labels[u[arc_to[at]]])
    cycle = [arc_to[label] for label, turn in seen.items() if turn >= seen[at]][::-1]
    arcs = ", ".join(f"({u[k]}, {v[k]})" for k in cycle[:3])
    pair = sorted((int(labels[v[cycle[0]]]), int(labels[u[cycle[0]]])))
    raise CheckFailed(
        f"strong components: labels {pair[0]} and {pair[1]} reach each other, by arcs {arcs}"
        f"{' and more' if len(cycle) > 3 else ''}"
    )
