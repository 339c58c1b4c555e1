"""Are these communities, connected, settled, and is their modularity as stated?

A right answer is numbered by smallest vertices, every community is connected, the modularity is
that of the labels, and few vertices would gain by moving.  None would if moving went on for long
enough; but Louvain and Leiden stop before that, and vertices look around at the same time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, arguments
from matchwood.communities.answers import (
    counted,
    float_modularity,
    graph_and_level,
    no_replay,
    replayed,
    stated,
    weights_around,
)
from matchwood.communities.louvain_leiden import leiden, louvain
from matchwood.components.answers import numbered
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.traversal.breadth_first import bfs

FUNCTIONS = {"louvain": louvain, "leiden": leiden}
UNSETTLED = 3 / 4  # the part of the vertices with neighbours that may gain by moving.  In 66,000
# runs that were not cut short one in 6 did at most, of up to six vertices half of them: paths,
# grids, random and R-MAT graphs, equal, random and graded weights, resolutions from 0.05 to 30


def check_communities(
    A: Any,
    answer: Any,
    *,
    resolution: float = 1.0,
    numbering: str = "exact",
    settled: bool = True,
    replay: str | None = None,
    **options: Any,
) -> None:
    """Raise `CheckFailed` unless `answer` has connected, settled communities, rightly described.

    Labels are numbered by smallest vertices, each community is connected, the modularity is that of
    the labels, and no more than three quarters of the vertices with neighbours would gain by
    moving to a community around them.  Louvain and Leiden stop before none would, so that cannot be
    asked.

    What it does not decide: whether it is the answer of a call.  Two communities merged, or all
    vertices in one, may be settled as well; one vertex that moved is not seen.  `replay` decides
    that.

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
    settled : bool
        False: not asked how many would gain, for runs that were cut short by `max_levels`,
        `max_rounds` or `iterations`.
    replay : {None, "louvain", "leiden"}
        The function that answered.  The reference finds the communities once more, with the
        `resolution` and the `options` of the call (`rng` and others); labels, modularity, levels
        and rounds must be the same.  In plain Python, some microseconds for an edge and round.
        `settled` is not asked then.

    Raises
    ------
    CheckFailed
        If the answer is wrong; says what and where.
    TypeError, ValueError
        If it cannot be an answer: labels do not hold integers; or `A` has negative weights.

    Notes
    -----
    Runs where `A` lives, a replay on the CPU.  Entries are sorted by vertex and label; a look at
    every edge, and a breadth-first search inside the communities.  Memory: some arrays of the
    entries.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_communities(A, [0, 0, 1, 1])
    >>> matchwood.check.check_communities(A, [0, 1, 1, 0])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: communities: no path inside community 0 joins vertices 3 and 0
    >>> matchwood.check.check_communities(A, [0, 1, 2, 3])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: communities: 4 of 4 vertices gain by moving; vertex 0 does by ...

    All in one is connected and settled, but not what Louvain returns:

    >>> matchwood.check.check_communities(A, [0, 0, 0, 0])
    >>> matchwood.check.check_communities(A, [0, 0, 0, 0], replay="louvain")
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: communities: vertex 2 has label 0, but the replay gives 1
    """
    caller = "check_communities"
    resolution = arguments.real(caller, "resolution", resolution, 0)
    arguments.flag(caller, "settled", settled)
    if replay is None:
        no_replay(caller, options)
    else:
        arguments.one_of(caller, "replay", replay, (None, *FUNCTIONS))
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
        right = float_modularity(level, labels, resolution)
        stated("communities", right, answer.modularity)
    if replay is not None:
        options["resolution"] = resolution
        replayed(caller, "communities", answer, labels, G, FUNCTIONS[replay], options)
    elif settled and level.total:
        _few_gain(level, labels, given, resolution)


def _few_gain(level: Any, labels: Any, given: Any, resolution: float) -> None:
    """Raise if more vertices gain by moving than may; gains are as in reference.py."""
    xp = answers.module(labels)
    own, vertex, label, weight = weights_around(level, labels)
    strength = level.strength.astype(np.float64)
    volume = xp.bincount(labels, weights=strength)
    scale = resolution * strength / float(level.total)
    gain = weight - scale[vertex] * volume[label]
    gain -= (own - scale * (volume[labels] - strength))[vertex]
    gains = (weight > 0) & (gain > 0)
    count = int(xp.unique(vertex[gains]).size)
    if count > UNSETTLED * level.tied:
        at = answers.first(gains)
        v, c = int(vertex[at]), int(label[at])
        raise CheckFailed(
            f"communities: {count} of {level.tied} vertices gain by moving; vertex {v} does by "
            f"{float(gain[at]) / level.total * 2:.6g}, from community {given[v]} to "
            f"{given[int((labels == c).argmax())]}"
        )


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


def is_communities(A: Any, answer: Any, **options: Any) -> bool:
    """Whether these are connected, settled communities; `check_communities` says why not.

    Its options are those of `check_communities`.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.communities import is_communities
    >>> A = matchwood.generators.path(4)
    >>> is_communities(A, [0, 0, 1, 1]), is_communities(A, [0, 1, 1, 0])
    (True, False)
    """
    return answers.holds(check_communities, A, answer, **options)
