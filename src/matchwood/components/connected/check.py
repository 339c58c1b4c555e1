"""Are these the connected components?  Decided without a component algorithm of ours.

Labels are right when no edge joins two labels (so no component is split) and each label's
vertices are connected (so no two are merged).  The second is decided by growing, from the
smallest vertex of each label, along edges: near-linear, by breadth-first levels.
"""

from __future__ import annotations

from typing import Any

from matchwood import answers, calls
from matchwood.components.answers import numbered
from matchwood.errors import CheckFailed
from matchwood.traversal.breadth_first import bfs


def check_connected_components(A: Any, answer: Any, *, numbering: str = "exact") -> None:
    """Raise `CheckFailed` unless `answer` numbers the connected components of `A`.

    Parameters
    ----------
    A : as given to `connected_components`
    answer : Components, (count, labels), labels or sets of vertices
        As matchwood, SciPy, igraph (an object with `membership`) or NetworkX (sets of the
        vertices 0..n-1) return it.  The number of rounds is not checked.  With a
        DistributedGraph labels are a DistributedVector, and all ranks raise the same error.
    numbering : {"exact", "any"}
        ``"exact"``: labels are 0, 1, ... in the order of their smallest vertices, as
        `connected_components` returns them.  ``"any"``: they may be any integers; only which
        vertices share one is checked, and `count` where it is given.  Sets have no numbers.

    Raises
    ------
    CheckFailed
        If the answer is wrong; says what and where.
    TypeError
        If it cannot be an answer: labels do not hold integers.

    Notes
    -----
    Runs where `A` lives; labels that live elsewhere are moved there.  A pass over every edge and a
    breadth-first search; memory for some arrays of n.  With ``numbering="any"``, labels that are
    not within 4 n consecutive numbers are sorted first.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(3)
    >>> matchwood.check.check_connected_components(A, [0, 0, 0])
    >>> matchwood.check.check_connected_components(A, [7, 7, 7], numbering="any")
    >>> matchwood.check.check_connected_components(A, [0, 0, 1])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: components: edge (1, 2) joins labels 0 and 1
    """
    caller = "check_connected_components"
    call = calls.enter(A, caller)
    if call.engine == "ranks":
        call.load_check(__package__).check_components(A, answer, numbering)
        return
    G = call.graph
    labels, first, given = numbered(caller, "components", answer, G.n, G.engine, numbering)
    for _, u, v in answers.arcs(G.undirected_pattern()):
        at = answers.first(labels[u] != labels[v])
        if at is not None:
            i, j = int(u[at]), int(v[at])
            raise CheckFailed(f"components: edge ({i}, {j}) joins labels {given[i]} and {given[j]}")
    lost = answers.first(bfs(G, first, directed=False).level < 0)
    if lost is not None:
        raise CheckFailed(
            f"components: no path joins vertex {lost} to vertex {first[labels[lost]]}, "
            f"though both have label {given[lost]}"
        )


def is_connected_components(A: Any, answer: Any, *, numbering: str = "exact") -> bool:
    """Whether these are the connected components; `check_connected_components` says why not.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.components import is_connected_components
    >>> A = (3, [[0, 1]])
    >>> is_connected_components(A, [0, 0, 1]), is_connected_components(A, [1, 1, 0])
    (True, False)
    >>> is_connected_components(A, [1, 1, 0], numbering="any")
    True
    """
    return answers.holds(check_connected_components, A, answer, numbering=numbering)
