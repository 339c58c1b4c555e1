"""Are these labels settled: does every vertex have one of the heaviest around it?"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, arguments, csr, engines
from matchwood.calls import agreed, is_distributed
from matchwood.communities.answers import counted, graph_and_level, stated
from matchwood.components.answers import numbered
from matchwood.errors import CheckFailed

PACKAGE = __name__.rpartition(".")[0]


def check_label_propagation(
    A: Any, answer: Any, *, settled: bool = True, numbering: str = "exact"
) -> None:
    """Raise `CheckFailed` unless no vertex has a heavier label around it than its own.

    Parameters
    ----------
    A : as given to `label_propagation`
    answer : Communities, (count, labels), labels or sets of vertices
        Where it has a `modularity`, that must be the one of the labels, to 1e-9.
    settled : bool
        False: only numbers and modularity are looked at, for runs that were cut short by
        `max_rounds` or `tol`.
    numbering : {"exact", "any"}
        As for `check_communities`.

    Raises
    ------
    CheckFailed
        If the answer is wrong; says what and where.
    TypeError, ValueError
        If it cannot be an answer: labels do not hold integers; or `A` has negative weights.

    Notes
    -----
    Runs where `A` lives.  Entries are sorted by vertex and label: memory for some arrays of them.

    Of a `DistributedGraph` all ranks call it, each with its part of the answer.  Nothing is
    gathered, and what one rank finds wrong, all raise.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> matchwood.check.check_label_propagation(A, [0, 0, 1, 1])
    >>> matchwood.check.check_label_propagation(A, [0, 1, 1, 1])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: label propagation: vertex 0 has label 0 of weight 0, but label \
1 around it weighs 1
    """
    caller = "check_label_propagation"
    agreed(A, lambda: arguments.flag(caller, "settled", settled))
    if is_distributed(A):
        engines.load(PACKAGE, "dist_check").check(A, answer, caller, settled, numbering)
        return
    G, level = graph_and_level(A, caller)
    labels, _, given = numbered(caller, "label propagation", answer, G.n, G.engine, numbering)
    if settled and G.n:
        _heaviest(level, labels, given)
    counted(caller, "label propagation", answer)
    if hasattr(answer, "modularity") and not callable(answer.modularity):
        stated("label propagation", level, labels, 1.0, answer.modularity)


def _heaviest(level: Any, labels: Any, given: Any) -> None:
    """Add up the weights of each pair (vertex, label of a neighbour), and compare."""
    xp, n = answers.module(labels), level.n
    pairs = [
        u.astype(np.int64) * n + labels[v]
        for _, u, v in answers.arcs(csr.View(level.indptr, level.indices))
    ]
    if not pairs:
        return
    distinct, at = xp.unique(xp.concatenate(pairs), return_inverse=True)
    weights = None if level.data is None else level.data.astype(np.float64)
    sums = xp.bincount(at.reshape(-1), weights=weights).astype(np.int64)
    vertex, label = distinct // n, distinct % n
    own = xp.zeros(n, np.int64)
    mine = labels[vertex] == label
    own[vertex[mine]] = sums[mine]
    worse = answers.first(sums > own[vertex])
    if worse is not None:
        v, c = int(vertex[worse]), int(label[worse])
        other = given[int((labels == c).argmax())]
        raise CheckFailed(
            f"label propagation: vertex {v} has label {given[v]} of weight {own[v]}, "
            f"but label {other} around it weighs {sums[worse]}"
        )


def is_label_propagation(
    A: Any, answer: Any, *, settled: bool = True, numbering: str = "exact"
) -> bool:
    """Whether these labels are settled; `check_label_propagation` says why not.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.communities import is_label_propagation
    >>> A = matchwood.generators.path(4)
    >>> is_label_propagation(A, [0, 0, 1, 1]), is_label_propagation(A, [0, 1, 1, 1])
    (True, False)
    """
    return answers.holds(check_label_propagation, A, answer, settled=settled, numbering=numbering)
