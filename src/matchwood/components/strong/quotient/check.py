"""Is this the condensation?  Decided from the definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import csr, engines
from matchwood.components.strong.check import check_strongly_connected_components
from matchwood.components.strong.quotient import levels
from matchwood.errors import CheckFailed


def check_condensation(A: Any, answer: Any) -> None:
    """Raise `CheckFailed` unless `answer` is the condensation of `A` in its order.

    Parameters
    ----------
    A : as given to `condensation`
    answer : Condensation or (graph, labels)

    Examples
    --------
    >>> import matchwood
    >>> A = (3, [[0, 1], [1, 0], [2, 1]])
    >>> graph, labels = matchwood.condensation(A)
    >>> matchwood.check.check_condensation(A, (graph, labels))
    >>> matchwood.check.check_condensation(A, (graph, 1 - labels))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: condensation: arc (0, 1) of the condensation has no arc ...
    """
    G = csr.as_graph(A, "check_condensation").on("cpu")
    graph, numbers = tuple(answer)
    Q = csr.as_graph(graph, "check_condensation").on("cpu")
    labels = np.asarray(engines.moved(numbers, "cpu"), np.int64)
    if labels.shape != (G.n,) or not np.isin(labels, np.arange(Q.n)).all():
        raise CheckFailed(f"condensation: labels must be {G.n} numbers within 0..{Q.n - 1}")
    found, first = np.unique(labels, return_index=True)
    number = np.empty(Q.n, np.int64)
    number[found[np.argsort(first)]] = np.arange(found.size)
    check_strongly_connected_components(G, (Q.n, number[labels]))
    view, arcs = G.directed_pattern(), Q.directed_pattern()
    u = labels[np.repeat(np.arange(G.n), np.diff(view.indptr))]
    v = labels[view.indices]
    expected = np.unique((u * Q.n + v)[u != v])
    given = np.repeat(np.arange(Q.n), np.diff(arcs.indptr)) * Q.n + arcs.indices
    wrong = np.setdiff1d(given, expected)
    if wrong.size:
        raise CheckFailed(
            f"condensation: arc {_arc(wrong[0], Q.n)} of the condensation has no arc of the graph"
        )
    lost = np.setdiff1d(expected, given)
    if lost.size:
        raise CheckFailed(f"condensation: arc {_arc(lost[0], Q.n)} is missing")
    key = levels(arcs.indptr, arcs.indices).astype(np.int64) * (G.n + 1) + first
    late = np.flatnonzero(np.diff(key) < 0)
    if late.size:
        k = int(late[0])
        raise CheckFailed(f"condensation: component {k + 1} must come before component {k}")


def _arc(key: Any, count: int) -> tuple[int, int]:
    return int(key) // count, int(key) % count
