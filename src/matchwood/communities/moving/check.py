"""Are these communities, connected, and is their modularity as stated?

A right answer is numbered by smallest vertices, every community is connected, and the modularity is
that of the labels.  The check does not ask whether other communities would be better.
"""

from __future__ import annotations

from typing import Any

from matchwood import answers, arguments, csr
from matchwood.communities.answers import counted, graph_and_level, stated
from matchwood.components.answers import numbered
from matchwood.errors import CheckFailed
from matchwood.traversal.breadth_first import bfs


def check_communities(
    A: Any, answer: Any, *, resolution: float = 1.0, numbering: str = "exact"
) -> None:
    """Raise `CheckFailed` unless `answer` has connected communities of `A`, rightly described.

    Parameters
    ----------
    A : as given to `louvain` or `leiden`
    answer : Communities, (count, labels), labels or sets of vertices
        Where it has a `modularity`, that must be the one of the labels, to 1e-9.
    resolution : float
        That of the call.
    numbering : {"exact", "any"}
        ``"exact"``: labels are 0, 1, ... in the order of their smallest vertices.  ``"any"``: they
        may be any integers.  Sets have no numbers.

    Raises
    ------
    CheckFailed
        If the answer is wrong; says what and where.
    TypeError, ValueError
        If it cannot be an answer: labels do not hold integers; or `A` has negative weights.

    Notes
    -----
    Runs where `A` lives.  A look at every edge, and a breadth-first search inside the communities;
    memory for a copy of the edges inside communities.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_communities(A, [0, 0, 1, 1])
    >>> matchwood.check.check_communities(A, [0, 1, 1, 0])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: communities: no path inside community 0 joins vertices 3 and 0
    """
    caller = "check_communities"
    resolution = arguments.real(caller, "resolution", resolution, 0)
    G, level = graph_and_level(A, caller)
    labels, first, given = numbered(caller, "communities", answer, G.n, G.engine, numbering)
    inside = _edges_inside(level, labels)
    lost = answers.first(bfs(inside, first, directed=False).level < 0) if G.n else None
    if lost is not None:
        raise CheckFailed(
            f"communities: no path inside community {given[lost]} joins vertices {lost} and "
            f"{first[labels[lost]]}"
        )
    counted(caller, "communities", answer)
    if hasattr(answer, "modularity") and not callable(answer.modularity):
        stated("communities", level, labels, resolution, answer.modularity)


def _edges_inside(level: Any, labels: Any) -> csr.Graph:
    """The graph without the edges between communities."""
    xp = answers.module(labels)
    columns, lengths = [], xp.zeros(level.n + 1, level.indptr.dtype)
    for _, u, v in answers.arcs(csr.View(level.indptr, level.indices)):
        same = labels[u] == labels[v]
        columns.append(v[same])
        lengths[1:] += xp.bincount(u[same], minlength=level.n).astype(lengths.dtype)
    indices = xp.concatenate(columns) if columns else level.indices[:0]
    indptr = xp.cumsum(lengths).astype(lengths.dtype)
    return csr.as_graph((indptr, indices), "check_communities")


def is_communities(
    A: Any, answer: Any, *, resolution: float = 1.0, numbering: str = "exact"
) -> bool:
    """Whether these are connected communities; `check_communities` says why not.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.communities import is_communities
    >>> A = matchwood.generators.path(4)
    >>> is_communities(A, [0, 0, 1, 1]), is_communities(A, [0, 1, 1, 0])
    (True, False)
    """
    return answers.holds(check_communities, A, answer, resolution=resolution, numbering=numbering)
