"""Is this the condensation?  Decided from the definition.

The labels must be the strong components, the arcs just those that lead from one component to
another, each once and of value one, the levels those of the arcs, and the components in the order
of (level, smallest vertex).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers
from matchwood.arguments import one_of
from matchwood.components.answers import NUMBERINGS, Labels, smallest
from matchwood.components.strong.check import check_parts
from matchwood.components.strong.condensation import levels
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr


def check_condensation(A: Any, answer: Any, *, numbering: str = "exact") -> None:
    """Raise `CheckFailed` unless `answer` is the condensation of `A` in its order.

    Parameters
    ----------
    A : as given to `condensation`
    answer : Condensation, (graph, labels) or (graph, labels, levels)
        The graph is a sparse matrix of ones, or anything `graph` takes; levels are checked where
        there are any.
    numbering : {"exact", "any"}
        ``"exact"``: components are in the order of (level, smallest vertex), as `condensation`
        returns them.  ``"any"``: in any order, which `graph`, `labels` and `levels` share.

    Raises
    ------
    CheckFailed
        If the answer is wrong; says what and where.
    TypeError
        If it cannot be an answer: labels or levels do not hold integers.

    Notes
    -----
    Runs where `A` lives; what lives elsewhere of the answer is moved there.  Memory as for
    `check_strongly_connected_components`, and the arcs of the condensation twice.

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
    caller = "check_condensation"
    one_of(caller, "numbering", numbering, NUMBERINGS)
    G = csr.as_graph(A, caller)
    graph, numbers, level = _unpacked(caller, answer)
    Q = _graph(caller, graph, G.engine)
    found = _labels(caller, numbers, G, Q.n)
    _check_arcs(Q, *check_parts(G, found, caller))
    view = Q.directed_pattern()
    true_level = levels(view.indptr, view.indices)
    if level is not None:
        level = answers.integers(caller, "condensation", "levels", level, (Q.n,), G.engine)
        k = answers.first(level != true_level)
        if k is not None:
            raise CheckFailed(
                f"condensation: the level of component {k} is {level[k]}, but the longest way to "
                f"it has {true_level[k]} arcs"
            )
    if numbering == "exact":
        key = true_level.astype(np.int64) * (G.n + 1) + found.first
        k = answers.first(key[1:] < key[:-1])
        if k is not None:
            raise CheckFailed(f"condensation: component {k + 1} must come before component {k}")


def is_condensation(A: Any, answer: Any, *, numbering: str = "exact") -> bool:
    """Whether this is the condensation of `A`; `check_condensation` says why not.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.components import is_condensation
    >>> A = (3, [[0, 1], [1, 0], [2, 1]])
    >>> graph, labels = matchwood.condensation(A)
    >>> is_condensation(A, (graph, labels)), is_condensation(A, (graph.T, labels))
    (True, False)
    """
    return answers.holds(check_condensation, A, answer, numbering=numbering)


def _unpacked(caller: str, answer: Any) -> tuple[Any, Any, Any]:
    if hasattr(answer, "graph") and hasattr(answer, "labels"):
        return answer.graph, answer.labels, getattr(answer, "levels", None)
    if not isinstance(answer, (tuple, list)) or len(answer) not in (2, 3):
        kind = type(answer).__name__
        raise TypeError(f"{caller}: answer must be a Condensation or (graph, labels), got {kind}")
    return answer[0], answer[1], answer[2] if len(answer) == 3 else None


def _graph(caller: str, graph: Any, place: str) -> csr.Graph:
    """The graph of the answer, each arc once and of value one."""
    _check_stored(caller, graph)
    try:
        Q = csr.as_graph(graph, caller).on(place)
    except TypeError as error:
        raise TypeError(str(error).replace(": A must", ": graph must")) from None
    except ValueError as error:  # not square, an index out of range, ...
        raise CheckFailed(f"condensation: the graph is none: {error}") from None
    if Q.nnz != Q.directed_pattern().nnz:
        raise CheckFailed("condensation: the graph has an arc twice")
    values = Q.given_values(caller)
    if values is not None and values.shape != (Q.nnz,):
        raise CheckFailed(
            f"condensation: the graph has {Q.nnz} entries, but values of shape {values.shape}"
        )
    at = None if values is None else answers.first(~(values == 1))
    if at is not None:
        raise CheckFailed(f"condensation: entry {at} of the graph is {values[at]}, not 1")
    return Q


def _check_stored(caller: str, graph: Any) -> None:
    """Raise unless the arrays of a matrix, perhaps put together by hand, are consistent."""
    for part in ("indptr", "indices", "data"):
        stored: Any = getattr(graph, part, None)
        if not hasattr(stored, "dtype"):
            continue
        kinds, what = ("biuf", "real numbers") if part == "data" else ("iu", "integers")
        if stored.dtype.kind not in kinds:
            raise TypeError(f"{caller}: {part} must hold {what}, got dtype {stored.dtype}")
        if stored.ndim != 1:
            raise CheckFailed(f"condensation: {part} of the graph has shape {stored.shape}")


def _labels(caller: str, numbers: Any, G: csr.Graph, count: int) -> Labels:
    """The labels, if every component has at least one vertex."""
    labels = answers.integers(caller, "condensation", "labels", numbers, (G.n,), G.engine)
    at = answers.first((labels < 0) | (labels >= count))
    if at is not None:
        raise CheckFailed(
            f"condensation: labels must be {G.n} numbers within 0..{count - 1}, "
            f"got {labels[at]} at vertex {at}"
        )
    first = smallest(labels, count)
    empty = answers.first(first == G.n)
    if empty is not None:
        raise CheckFailed(f"condensation: the count is {count}, but no vertex has label {empty}")
    return Labels(labels, first, labels)


def _check_arcs(Q: csr.Graph, indptr: Any, indices: Any) -> None:
    """Raise unless Q has just these arcs."""
    expected, given = _keys(csr.View(indptr, indices)), _keys(Q.directed_pattern())
    parted = answers.first_difference(expected, given)
    if parted is None:
        return
    k, missing = parted
    arc = divmod(int(expected[k] if missing else given[k]), Q.n)
    says = "is missing" if missing else "of the condensation has no arc of the graph"
    raise CheckFailed(f"condensation: arc {arc} {says}")


def _keys(view: csr.View) -> Any:
    """One number for each arc; they ascend."""
    xp = answers.module(view.indices)
    keys = [u.astype(np.int64) * view.n + v for _, u, v in answers.arcs(view)]
    return xp.concatenate([xp.empty(0, np.int64), *keys])
