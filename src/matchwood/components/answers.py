"""What the checks of components take as an answer, and how they are numbered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood import answers, engines
from matchwood.arguments import one_of, shown
from matchwood.errors import CheckFailed

NUMBERINGS = ("exact", "any")
SPREAD = 4  # labels within SPREAD * n numbers are counted in a table, others are sorted


class Labels(NamedTuple):
    """Labels 0, 1, ... in the order of their smallest vertices, these vertices, and those given."""

    labels: Any
    first: Any  # the smallest vertex of each label
    given: Any


def numbered(
    caller: str, problem: str, answer: Any, n: int, place: str, numbering: str
) -> Labels:  # fmt: skip
    """The labels of an answer, if they are numbered as asked; arrays are on `place`.

    An answer is `Components`, a pair (count, labels) as SciPy's, labels, an object with a
    `membership` as igraph's, or sets of vertices as NetworkX's, which have no numbers.
    """
    one_of(caller, "numbering", numbering, NUMBERINGS)
    count, labels, loose = _unpacked(caller, problem, answer, n)
    given = answers.integers(caller, problem, "labels", labels, (n,), place)
    if numbering == "any" or loose:
        labels, first = _renumbered(given)
    else:
        labels, first = given, _in_order(problem, given)
    if count is not None and answers.whole(caller, "count", count) != first.size:
        raise CheckFailed(f"{problem}: count is {count}, but there are {first.size} labels")
    return Labels(labels, first, given)


def _unpacked(caller: str, problem: str, answer: Any, n: int) -> tuple[Any, Any, bool]:
    """Count or None, labels, and whether their numbers mean nothing."""
    if hasattr(answer, "labels"):
        return getattr(answer, "count", None), answer.labels, False
    if hasattr(answer, "membership"):
        return None, answer.membership, False
    if isinstance(answer, Iterator):
        answer = list(answer)
    if isinstance(answer, (list, tuple)) and answer and _is_set(answer[0]):
        return len(answer), _labels_of_sets(caller, problem, answer, n), True
    if isinstance(answer, tuple):
        if len(answer) != 2:
            raise TypeError(
                f"{caller}: answer must be Components, (count, labels) or labels, "
                f"got a tuple of {len(answer)}"
            )
        return answer[0], answer[1], False
    return None, answer, False


def _is_set(value: Any) -> bool:
    return isinstance(value, (set, frozenset))


def _labels_of_sets(caller: str, problem: str, sets: Any, n: int) -> Any:
    labels = np.full(n, -1, np.int64)
    for k, members in enumerate(sets):
        if not _is_set(members) or not members:
            raise TypeError(f"{caller}: answer must hold sets of vertices, got {shown(members)}")
        for member in members:
            v = answers.vertex(caller, problem, "answer", member, n)
            if labels[v] >= 0:
                raise CheckFailed(f"{problem}: vertex {v} is in two sets, {labels[v]} and {k}")
            labels[v] = k
    lost = answers.first(labels < 0)
    if lost is not None:
        raise CheckFailed(f"{problem}: vertex {lost} is in no set")
    return labels


def _in_order(problem: str, labels: Any) -> Any:
    """The smallest vertex of each label, if labels are numbered by it, without gaps."""
    n = labels.size
    at = answers.first((labels < 0) | (labels >= n))
    if at is not None:
        raise CheckFailed(
            f"{problem}: labels must be 0, 1, ... without gaps, got {labels[at]} at vertex {at}"
        )
    count = int(labels.max()) + 1 if n else 0
    first = smallest(labels, count)
    gap = answers.first(first == n)
    if gap is not None:
        raise CheckFailed(
            f"{problem}: labels must be 0..{count - 1} without gaps, but no vertex has {gap}"
        )
    k = answers.first(first[1:] < first[:-1])
    if k is not None:
        raise CheckFailed(
            f"{problem}: label {k + 1} (smallest vertex {first[k + 1]}) must come before "
            f"label {k} (smallest vertex {first[k]})"
        )
    return first


def _renumbered(given: Any) -> tuple[Any, Any]:
    """The same parts, numbered by their smallest vertices, and these."""
    xp = answers.module(given)
    n = given.size
    if n == 0:
        return given, given
    least, most = int(given.min()), int(given.max())
    if most - least < SPREAD * n:
        labels, count = given - least, most - least + 1
    else:
        distinct, labels = xp.unique(given, return_inverse=True)
        count = int(distinct.size)
    begin = smallest(labels, count)
    starts = xp.zeros(n, bool)
    starts[begin[begin < n]] = True
    number = xp.cumsum(starts.astype(np.int64)) - 1
    return number[begin[labels]], xp.flatnonzero(starts)


def smallest(labels: Any, count: int) -> Any:
    """The smallest vertex of each label 0..count-1; n where no vertex has it."""
    xp, n = answers.module(labels), labels.size
    found = xp.full(count, n, np.int64)
    if engines.location(labels) == "gpu":
        order = xp.argsort(labels, kind="stable")  # vertices of a label ascend
        ascending = labels[order]
        new = xp.ones(n, bool)
        new[1:] = ascending[1:] != ascending[:-1]
        found[ascending[new]] = order[new]
        return found
    for begin, end in reversed(list(answers.pieces(n))):
        # of several values for one place the last stays: backwards, the smallest vertex
        found[labels[begin:end][::-1]] = np.arange(end - 1, begin - 1, -1)
    return found
