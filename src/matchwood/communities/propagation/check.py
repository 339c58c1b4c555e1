"""Are these labels settled: does every vertex have one of the heaviest around it?"""

from __future__ import annotations

from typing import Any

from matchwood import answers, arguments, engines
from matchwood.calls import agreed, is_distributed
from matchwood.communities.answers import (
    counted,
    graph_and_level,
    no_replay,
    replayed,
    stated,
    weights_around,
)
from matchwood.communities.propagation import label_propagation
from matchwood.components.answers import numbered
from matchwood.errors import CheckFailed

PACKAGE = __name__.rpartition(".")[0]


def check_label_propagation(
    A: Any,
    answer: Any,
    *,
    settled: bool = True,
    numbering: str = "exact",
    replay: bool = False,
    **options: Any,
) -> None:
    """Raise `CheckFailed` unless no vertex has a heavier label around it than its own.

    That is how label propagation ends.  Many labels are settled, all in one among them where the
    graph is connected; which of them a seed leads to, `replay` decides.

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
    replay : bool
        Also let the reference find the labels once more, with the `options` of the call
        (`max_rounds`, `tol`, `rng`); labels, modularity and rounds must be its.  In plain Python,
        some microseconds for an edge and round.  `settled` is not asked then.

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

    def checked() -> None:
        arguments.flag(caller, "settled", settled)
        if not arguments.flag(caller, "replay", replay):
            no_replay(caller, options)
        elif is_distributed(A):
            raise ValueError(f"{caller}: replay must be False for a DistributedGraph, got True")

    agreed(A, checked)
    if is_distributed(A):
        engines.load(f"{PACKAGE}.ranks", "check").check(A, answer, caller, settled, numbering)
        return
    G, level = graph_and_level(A, caller)
    labels, _, given = numbered(caller, "label propagation", answer, G.n, G.engine, numbering)
    if settled and not replay and G.n:
        _heaviest(level, labels, given)
    counted(caller, "label propagation", answer)
    if hasattr(answer, "modularity") and not callable(answer.modularity):
        stated("label propagation", level, labels, 1.0, answer.modularity)
    if replay:
        replayed(caller, "label propagation", answer, labels, G, label_propagation, options)


def _heaviest(level: Any, labels: Any, given: Any) -> None:
    """Compare the weights of all labels around each vertex."""
    own, vertex, label, sums = weights_around(level, labels)
    worse = answers.first(sums > own[vertex])
    if worse is not None:
        v, c = int(vertex[worse]), int(label[worse])
        other = given[int((labels == c).argmax())]
        raise CheckFailed(
            f"label propagation: vertex {v} has label {given[v]} of weight {own[v]}, "
            f"but label {other} around it weighs {sums[worse]}"
        )


def is_label_propagation(A: Any, answer: Any, **options: Any) -> bool:
    """Whether these labels are settled; `check_label_propagation` says why not.

    Its options are those of `check_label_propagation`.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.communities import is_label_propagation
    >>> A = matchwood.generators.path(4)
    >>> is_label_propagation(A, [0, 0, 1, 1]), is_label_propagation(A, [0, 1, 1, 1])
    (True, False)
    """
    return answers.holds(check_label_propagation, A, answer, **options)
